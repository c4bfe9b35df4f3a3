"""Finds the partitions in a path: a data folder, one partition's folder, or a folder with copies of such, and opens them for reading."""

import time
from collections.abc import Mapping
from pathlib import Path

from horolog.broker.left_folders import as_left
from horolog.broker.log.files import checkpoints
from horolog.broker.log.manager import partition_of
from horolog.broker.log.partition import Partition, Resources
from horolog.broker.log.recovery import Circumstances, Place, open_partition
from horolog.broker.log.storage import Storage
from horolog.broker.settings import Settings
from horolog.broker.topic_settings import resolve
from horolog.client.types import TopicPartition
from horolog.pipeline.options import Selection
from horolog.pipeline.positions import OptionError


def find_partitions(path: str) -> dict[TopicPartition, Path]:
    """The partition folders in a path, by what they hold."""
    root = Path(path.removeprefix("file://"))
    if not root.is_dir():
        raise OptionError(f"{path}: there is no such folder")
    folders = [root] if _is_partition(root.absolute()) else sorted(one for one in root.iterdir() if _is_partition(one))
    if not folders:
        raise OptionError(f"{path}: neither a data folder nor that of a partition (topic-0 with .log files)")
    return {_name_of(folder): folder.absolute() for folder in folders}


def _is_partition(folder: Path) -> bool:
    return folder.is_dir() and partition_of(folder.name) is not None and any(folder.glob("*.log"))


def _name_of(folder: Path) -> TopicPartition:
    name = partition_of(folder.absolute().name)
    assert name is not None, "looked at before"
    return TopicPartition(*name)


def open_partitions(path: str, selection: Selection, resources: Resources) -> dict[TopicPartition, Partition]:
    """The wanted partitions, opened as their broker would open them, with nothing written; internal topics only by name."""
    found = find_partitions(path)
    unknown = [str(one) for one in selection.partitions if one not in found]
    unknown += [topic for topic in selection.topics if topic not in {one.topic for one in found}]
    if unknown:
        raise OptionError(f"{path}: nothing there of {', '.join(unknown)}; there is {_listed(found)}")
    wanted = {
        partition: folder
        for partition, folder in found.items()
        if selection.takes(partition) and not (selection.is_everything and partition.topic.startswith("__"))
    }
    starts = {
        parent: _starts(resources.storage, parent) for parent in {str(folder.parent) for folder in wanted.values()}
    }
    return {
        partition: _open(partition, folder, resources, starts[str(folder.parent)].get(partition, 0))
        for partition, folder in wanted.items()
    }


def _starts(storage: Storage, data_folder: str) -> Mapping[tuple[str, int], int]:
    """Where logs start, also in a folder that several workers serve or have left."""
    left = as_left(storage, [data_folder])
    return checkpoints.load_offsets(left, f"{data_folder}/{checkpoints.LOG_START_OFFSETS}").offsets


def _listed(found: dict[TopicPartition, Path]) -> str:
    return ", ".join(sorted({partition.topic for partition in found})[:20])


def _open(partition: TopicPartition, folder: Path, resources: Resources, start_offset: int) -> Partition:
    known = Circumstances(was_clean=True, log_start_offset=start_offset, now_ms=time.time_ns() // 1_000_000)
    config = resolve({}, Settings())
    return open_partition(Place(*partition, str(folder)), config, resources, known)
