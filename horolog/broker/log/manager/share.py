"""One process's share of the data folders: all of them, or the partitions that one worker leads and its own names for files there."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from horolog.broker.log.manager.folder_checkpoints import FolderCheckpoints
from horolog.broker.log.partition import Partition
from horolog.broker.log.storage import Lock, Storage
from horolog.protocol.topic_partition import TopicPartition


class Mine(NamedTuple):
    """A partition that this process opens."""

    topic_id: bytes
    is_settled: bool
    """Whether it existed when the workers were started, so that Kafka's checkpoints include it."""


def nothing(_topic: str, _index: int) -> Mine | None:
    """The `find` before the leaders are known."""
    return None


def anything(_topic: str, _index: int) -> Mine | None:
    """The `find` of a process that opens all that lies there."""
    return Mine(b"", is_settled=True)


class HeldByParent:
    """A folder's lock that the parent process holds."""

    def release(self) -> None:
        """Do nothing: the lock is the parent's."""


def held_by_parent(_storage: Storage, _path: str) -> Lock:
    return HeldByParent()


@dataclass(slots=True)
class Share:
    """What one process opens of folders that belong to the node `owner`."""

    node: int
    owner: int
    is_first: bool
    """Whether this process removes what was deleted before the start."""
    checkpoints: "Callable[[str, Storage, Mapping[TopicPartition, Partition], Share], FolderCheckpoints]"
    """Makes the object that reads and writes the checkpoints of one folder."""
    lock: Callable[[Storage, str], Lock]
    """Locks a folder at this path."""
    suffix: str
    """Of the names of this process's own files."""
    find: Callable[[str, int], Mine | None] = nothing
    journal_at: Callable[[], tuple[int, int]] = lambda: (-1, 0)
    """Which record the journal goes on from, and the last of its entries that was applied here."""

    def named(self, name: str) -> str:
        return f"{name}{self.suffix}"


def whole(node: int) -> Share:
    """All of the folders, for a broker alone."""
    return Share(node, node, True, _of_all, lambda storage, path: storage.lock(path), "", anything)


def _of_all(
    path: str, storage: Storage, partitions: Mapping[TopicPartition, Partition], _share: Share
) -> FolderCheckpoints:
    return FolderCheckpoints(path, storage, partitions)
