"""The files of a data folder that is written as a whole: the list of complete partitions, and at the end those beside the partitions.

`horolog-export` in the folder says which partitions are complete, so that an attempt that was interrupted goes on behind them. It goes
when the folder is whole; the record of the cluster comes last.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from horolog.broker.config.settings import Settings
from horolog.broker.log.files import MetaProperties, checkpoints, log_starts, meta_properties
from horolog.broker.log.storage import LOCK_FILE, FileMissing, Storage
from horolog.broker.on_record.cluster_file import ClusterFile, StoredTopic
from horolog.broker.on_record.stored_rules import StoredRule
from horolog.broker.transfer.folder_copy import Copied
from horolog.protocol.topic_partition import TopicPartition

FILE_NAME = "horolog-export"


class ExportTarget(NamedTuple):
    """The folder that is written, and whose it will be."""

    storage: Storage
    folder: str
    settings: Settings
    directory_id: str
    now_ms: int


class Record(NamedTuple):
    """What the record of the cluster will have."""

    cluster_id: str
    topics: Iterable[StoredTopic]
    broker_configs: Mapping[str, Mapping[str, str]]
    next_producer_id: int
    rules: Iterable[StoredRule]


class FolderTaken(Exception):
    """The folder has files of another origin."""


def begin(target: ExportTarget, source: Mapping[str, Any]) -> dict[TopicPartition, Copied]:
    """The partitions that an earlier attempt from the same source has completed. Raises FolderTaken."""
    storage, path = target.storage, f"{target.folder}/{FILE_NAME}"
    try:
        lines = storage.read_all(path).decode().split("\n")[:-1]
    except FileMissing:
        if set(storage.list_dir(target.folder)) - {LOCK_FILE}:
            raise FolderTaken(f"{target.folder} is not empty") from None
        storage.write_atomically(path, (json.dumps(source) + "\n").encode())
        return {}
    head, *rest = map(json.loads, lines)
    if head != source:
        raise FolderTaken(f"{target.folder} has a part of another copy, of cluster {head.get('cluster')}")
    return {(one["topic"], one["partition"]): Copied(*one["copied"]) for one in rest}


def note(target: ExportTarget, place: TopicPartition, copied: Copied) -> None:
    """The partition is complete."""
    target.storage.sync_dir(target.folder)
    file = target.storage.open(f"{target.folder}/{FILE_NAME}")
    line = {"topic": place[0], "partition": place[1], "copied": list(copied)}
    file.pwritev([(json.dumps(line) + "\n").encode()], file.size())
    file.datasync()
    file.close()


def complete(target: ExportTarget, copied: Mapping[TopicPartition, Copied], record: Record) -> None:
    """Write the files of the whole folder."""
    storage, folder, settings, directory_id, now_ms = target
    meta = MetaProperties(1, settings.node_id, record.cluster_id, directory_id)
    meta_properties.save(storage, folder, meta, now_ms)
    ends = {place: one.end_offset for place, one in copied.items()}
    starts = {place: one.start_offset for place, one in copied.items() if one.start_offset}
    for name, offsets in (
        (checkpoints.RECOVERY_POINTS, ends),
        (checkpoints.HIGH_WATERMARKS, ends),
        (checkpoints.LOG_START_OFFSETS, starts),
    ):
        checkpoints.save_offsets(storage, f"{folder}/{name}", offsets)
    storage.write_atomically(f"{folder}/{log_starts.LOG_STARTS}", log_starts.encode(starts))
    ClusterFile(storage, folder).save(
        [StoredTopic(one.name, one.id, one.partition_count, one.overrides) for one in record.topics],
        record.broker_configs,
        record.next_producer_id,
        {},
        rules=record.rules,
    )
    checkpoints.mark_clean_shutdown(storage, folder)
    storage.remove(f"{folder}/{FILE_NAME}")
    storage.sync_dir(folder)
