"""Finds the partition folders in the data folders, the topics that they belong to, and those that have to be renamed.

A folder of no served topic is set aside as in Kafka: `<topic>-<n>.<32 hex digits>-stray`. It is never deleted. Kafka renames the
folders of topics created here like this, because its own log does not have them; they get their names back.
"""

import re
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from horolog.broker.log.files import CheckpointError, checkpoints
from horolog.broker.log.manager import partition_of
from horolog.broker.log.segments import LOG_SUFFIX
from horolog.broker.log.storage import Storage, StorageFault

STRAY_SUFFIX = "-stray"
MAX_FILLED_PARTITIONS = 1_000
"""Partitions without a folder that a topic may have below its last one: a folder named like a partition of a far higher number is
something else, and left alone."""

_STRAY = re.compile(r"(.+-\d+)\.[0-9a-f]{32}-stray")


@dataclass(frozen=True, slots=True)
class AdoptedFolder:
    data_dir: str
    name: str
    topic: str
    index: int

    @property
    def path(self) -> str:
        return f"{self.data_dir}/{self.name}"


@dataclass(frozen=True, slots=True)
class Renaming:
    folder: AdoptedFolder
    name: str
    reason: str

    def carry_out(self, storage: Storage) -> None:
        """Raises StorageFault."""
        storage.rename(self.folder.path, f"{self.folder.data_dir}/{self.name}")
        storage.sync_dir(self.folder.data_dir)


@dataclass(slots=True)
class Folders:
    """The folders by topic and partition."""

    found: dict[str, dict[int, AdoptedFolder]]
    strays: dict[str, dict[int, list[AdoptedFolder]]]


def look(storage: Storage, data_dirs: Sequence[str]) -> Folders:
    """Find all partition folders; a partition with folders in several data folders counts where it is found first."""
    folders = Folders({}, {})
    for data_dir in data_dirs:
        for name in sorted(storage.list_dir(data_dir)):
            stray = _STRAY.fullmatch(name)
            key = partition_of(stray[1] if stray else name)
            if key is None or not storage.is_dir(f"{data_dir}/{name}"):
                continue
            folder = AdoptedFolder(data_dir, name, *key)
            if stray:
                folders.strays.setdefault(folder.topic, {}).setdefault(folder.index, []).append(folder)
            else:
                folders.found.setdefault(folder.topic, {}).setdefault(folder.index, folder)
    return folders


def count_and_foreign(stored_count: int, found: Iterable[int]) -> tuple[int, list[int]]:
    """The partition count of a topic by its record and its folders, and the folders that cannot be its partitions."""
    numbers = sorted(found)
    limit = stored_count + len(numbers) + MAX_FILLED_PARTITIONS
    foreign = [number for number in numbers if number >= limit]
    return max(stored_count, max((number for number in numbers if number < limit), default=-1) + 1), foreign


def topic_id_of(storage: Storage, folder: AdoptedFolder) -> bytes | None:
    """The topic's id in a folder; None also if it cannot be read."""
    try:
        return checkpoints.load_topic_id(storage, folder.path)
    except (CheckpointError, StorageFault):
        return None


def is_blank(storage: Storage, folder: AdoptedFolder) -> bool:
    """Whether a folder has neither an id nor records, as after a power cut before anything was written."""
    try:
        if checkpoints.load_topic_id(storage, folder.path) is not None:
            return False
    except CheckpointError:
        pass
    except StorageFault:
        return False
    logs = (name for name in storage.list_dir(folder.path) if name.endswith(LOG_SUFFIX))
    return not any(storage.stat(f"{folder.path}/{name}")[0] for name in logs)


def aside(folder: AdoptedFolder, reason: str) -> Renaming:
    return Renaming(folder, f"{folder.topic}-{folder.index}.{uuid.uuid4().hex}{STRAY_SUFFIX}", reason)


def back(folder: AdoptedFolder) -> Renaming:
    return Renaming(
        folder, f"{folder.topic}-{folder.index}", "Kafka had set it aside because it did not know the topic"
    )
