"""One worker's share of the data folders: the partitions that it leads, and its own names for the files that it writes there."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from horolog.broker.log.manager.folder_checkpoints import FolderCheckpoints
from horolog.broker.log.partition import Partition
from horolog.broker.log.storage import Storage
from horolog.protocol.topic_partition import TopicPartition


class Mine(NamedTuple):
    """A partition that this worker opens."""

    topic_id: bytes
    is_settled: bool
    """Whether it existed when the workers were started, so that Kafka's checkpoints include it."""


def nothing(_topic: str, _index: int) -> Mine | None:
    """The `find` before the leaders are known."""
    return None


@dataclass(slots=True)
class Share:
    """The process that started the workers has locked the folders, which belong to the node `owner`."""

    node: int
    owner: int
    is_first: bool
    """Whether this worker removes what was deleted before the start."""
    checkpoints: "Callable[[str, Storage, Mapping[TopicPartition, Partition], Share], FolderCheckpoints]"
    """Makes the object that reads and writes the checkpoints of one folder."""
    find: Callable[[str, int], Mine | None] = nothing
    journal_at: Callable[[], tuple[int, int]] = lambda: (-1, 0)
    """Which record the workers' journal goes on from, and the last of its entries that was applied here."""

    def named(self, name: str) -> str:
        return f"{name}.{self.node}"


class HeldByAnother:
    """A folder's lock that the parent process holds."""

    def release(self) -> None:
        """Do nothing: the lock is the parent's."""
