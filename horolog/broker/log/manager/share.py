"""What one worker of several has of the data folders: which partitions are its own, and its own names for what it writes there."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from horolog.broker.log.manager.folder_checkpoints import FolderCheckpoints, TopicPartition
from horolog.broker.log.partition import Partition
from horolog.broker.log.storage import Storage


class Mine(NamedTuple):
    """A partition that this worker opens."""

    topic_id: bytes
    is_settled: bool
    """Whether it was there when the workers were started, so that Kafka's checkpoints speak of it."""


def nothing(_topic: str, _index: int) -> Mine | None:
    """Before it is known who leads."""
    return None


@dataclass(slots=True)
class Share:
    """The folders are locked by whoever started the workers; they belong to the node `owner`."""

    node: int
    owner: int
    is_first: bool
    """This one removes what was deleted before the start."""
    checkpoints: "Callable[[str, Storage, Mapping[TopicPartition, Partition], Share], FolderCheckpoints]"
    """What reads and writes the checkpoints of one folder."""
    find: Callable[[str, int], Mine | None] = nothing
    journal_at: Callable[[], tuple[int, int]] = lambda: (-1, 0)
    """Which record the workers' journal goes on from, and the last of its entries that was applied here."""

    def named(self, name: str) -> str:
        return f"{name}.{self.node}"


class HeldByAnother:
    """The lock of a folder that whoever started this process holds."""

    def release(self) -> None:
        """It is not ours."""
