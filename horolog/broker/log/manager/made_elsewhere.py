"""Partitions whose logs are made from elsewhere: the folder is dropped, made anew by the caller, and opened as after a clean stop."""

from collections.abc import Callable
from typing import NamedTuple

from horolog.broker.config.topic_settings import TopicConfig
from horolog.broker.log.manager.data_folder import place_in
from horolog.broker.log.manager.manager import LogManager
from horolog.broker.log.partition import OpenedPartition, Partition, closing, made
from horolog.broker.log.recovery import Circumstances, PartitionFolder, open_readable
from horolog.broker.log.storage import parent_of
from horolog.protocol.topic_partition import TopicPartition


class Held(NamedTuple):
    """The offsets that a folder has been made for."""

    start_offset: int
    end_offset: int


Complete = Callable[[OpenedPartition], OpenedPartition]


def as_it_is(opened: OpenedPartition) -> OpenedPartition:
    return opened


def clear(logs: LogManager, topic: str, index: int, config: TopicConfig) -> PartitionFolder:
    """Drop all that lies here of a partition; returns the folder that is to be made. Raises StorageFault.

    Nothing waits for the disk, since many partitions come and go at a time: what a power cut brings back is dropped before it is made again.
    """
    key = topic, index
    known = forget(logs, key)
    if known is not None:
        closing.close_files(known)
    holders = [one for one in logs.folders.usable() if one.holds(key)]
    for folder in holders:
        folder.drop(key, config)
    folder = holders[0] if holders else logs.folders.for_new(None)
    folder.checkpoints.make_room_for(key)
    return place_in(folder.path, key)


def forget(logs: LogManager, key: TopicPartition) -> Partition | None:
    """Serve a partition no more; the caller closes its files, which are still to be dropped."""
    known = logs.partitions.pop(key, None)
    if known is not None:
        logs.folders.of(known).partitions.pop(key, None)
        known.condition.delete()
    return known


def open_made(
    logs: LogManager,
    place: PartitionFolder,
    config: TopicConfig,
    held: Held,
    now_ms: int,
    complete: Complete = as_it_is,
) -> Partition:
    """Open a partition whose folder, which `clear` has named, holds these offsets of its log. Raises StorageFault.

    `complete` adds to what has been opened whatever does not lie in the folder.
    """
    folder = next(one for one in logs.folders.usable() if one.path == parent_of(place.directory))
    known = Circumstances(
        was_clean=True, log_start_offset=held.start_offset, now_ms=now_ms, recovery_point=held.end_offset, is_made=True
    )
    partition = made(complete(open_readable(place, config, logs.resources, known)))
    folder.partitions[place.topic, place.number] = logs.partitions[place.topic, place.number] = partition
    return partition
