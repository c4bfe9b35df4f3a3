"""Finds the partitions in a path: a data folder, one partition's folder, or a folder with copies of such, and opens them for reading."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from horolog.broker.cluster.left_folders import as_left
from horolog.broker.config.settings import Settings
from horolog.broker.config.topic_settings import resolve
from horolog.broker.log.files import checkpoints
from horolog.broker.log.manager import partition_of
from horolog.broker.log.partition import Partition, Resources
from horolog.broker.log.recovery import Circumstances, PartitionFolder, open_partition
from horolog.broker.log.segments import LOG_SUFFIX
from horolog.broker.log.storage import Storage, parent_of
from horolog.client.values.types import TopicPartition
from horolog.pipeline.base.positions import OptionError
from horolog.pipeline.options.options import Selection
from horolog.pipeline.stores.object_stores import is_url


def find_partitions(path: str, storage: Storage) -> dict[TopicPartition, str]:
    """The partition folders in a path, by what they hold."""
    root = path.rstrip("/") if is_url(path) else str(Path(path.removeprefix("file://")).absolute())
    if not storage.is_dir(root):
        raise OptionError(f"{path} is not a folder")
    inside = (f"{root}/{name}" for name in sorted(storage.list_dir(root)))
    folders = [root] if _is_partition(root, storage) else [one for one in inside if _is_partition(one, storage)]
    if not folders:
        raise OptionError(f"{path} is neither a data folder nor the folder of a partition (topic-0 with .log files)")
    return {_name_of(folder): folder for folder in folders}


def _is_partition(folder: str, storage: Storage) -> bool:
    named = partition_of(folder.rpartition("/")[2]) is not None
    return named and storage.is_dir(folder) and any(name.endswith(LOG_SUFFIX) for name in storage.list_dir(folder))


def _name_of(folder: str) -> TopicPartition:
    name = partition_of(folder.rpartition("/")[2])
    assert name is not None, "looked at before"
    return TopicPartition(*name)


class Look(NamedTuple):
    """What a read needs to know of partitions."""

    is_partial: bool
    """Only a part of them is wanted: the index files of unsealed segments are trusted if they match."""
    with_transactions: bool


def open_partitions(
    path: str, selection: Selection, resources: Resources, look: Look
) -> dict[TopicPartition, Partition]:
    """The wanted partitions, opened as their broker would open them, with nothing written; internal topics only by name."""
    found = find_partitions(path, resources.storage)
    unknown = [str(one) for one in selection.partitions if one not in found]
    unknown += [topic for topic in selection.topics if topic not in {one.topic for one in found}]
    if unknown:
        raise OptionError(f"{path} has no {', '.join(unknown)}; it has {_listed(found)}")
    wanted = {
        partition: folder
        for partition, folder in found.items()
        if selection.takes(partition) and not (selection.is_everything and partition.topic.startswith("__"))
    }
    parents = {parent_of(folder) for folder in wanted.values()}
    starts = {parent: _starts(resources.storage, parent) for parent in parents}
    return {
        partition: _open(partition, folder, resources, starts[parent_of(folder)].get(partition, 0), look)
        for partition, folder in wanted.items()
    }


def _starts(storage: Storage, data_folder: str) -> Mapping[tuple[str, int], int]:
    """Where logs start, also in a folder that several workers serve or have left."""
    left = as_left(storage, [data_folder])
    return checkpoints.load_offsets(left, f"{data_folder}/{checkpoints.LOG_START_OFFSETS}").offsets


def _listed(found: dict[TopicPartition, str]) -> str:
    return ", ".join(sorted({partition.topic for partition in found})[:20])


def _open(partition: TopicPartition, folder: str, resources: Resources, start_offset: int, look: Look) -> Partition:
    known = Circumstances(
        was_clean=True,
        log_start_offset=start_offset,
        now_ms=time.time_ns() // 1_000_000,
        records_only=not look.with_transactions,
        believes_indexes=look.is_partial and not look.with_transactions,
        presumes_copies=look.is_partial and not is_url(folder),  # a store fetches the ends of all logs at once
    )
    config = resolve({}, Settings())
    return open_partition(PartitionFolder(*partition, folder), config, resources, known)
