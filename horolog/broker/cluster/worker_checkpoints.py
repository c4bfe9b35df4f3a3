"""One worker's knowledge of the partitions that it serves: `horolog-checkpoint.<node>`, one per worker and data folder.

Kafka's checkpoints have one writer each. While several processes serve a folder each of them writes a file of its own, and when they
have stopped, or at the next start, these are merged under Kafka's names (`united`). Text, lines ended by a newline, fields
separated by a space; the recovery point is -1 if it is unknown:

    horolog-checkpoint 2 <stopped | running> <base of the journal> <number of its last entry that was applied>
    <topic> <partition> <topic id> <recovery point> <high watermark> <log start>
    checksum <crc32c of everything before this line, 8 hex digits>

The last two numbers show that a journal which ends earlier was cut, or is an older copy; version 1 had neither of them.

**Which line counts.** A topic may have been deleted and made again under its name: a line counts for the topic whose id it has. Of several
lines (a partition was handed over) the highest log start and high watermark count, and the lowest recovery point.
"""

import logging
import re
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from crc32c import crc32c

from horolog.broker.cluster.left_folders import DAMAGED_CHECKPOINTS
from horolog.broker.log.files import CheckpointError, checkpoints
from horolog.broker.log.storage import FileMissing, Storage, StorageFault
from horolog.protocol.topic_partition import TopicPartition
from horolog.protocol.uuids import parse_uuid, show_uuid

log = logging.getLogger(__name__)

NAME = "horolog-checkpoint"
UNKNOWN = -1
NO_ID = bytes(16)
"""Of a partition whose folder does not have its topic's id: the line counts for any topic of its name."""


_HEAD = "horolog-checkpoint 2"
_HEAD_BEFORE = "horolog-checkpoint 1"
_STOPPED, _RUNNING = "stopped", "running"
_CHECKSUM = "checksum "
_FILE = re.compile(rf"{NAME}\.(\d+)")


class PartitionRow(NamedTuple):
    """The known state of one partition."""

    topic_id: bytes
    recovery_point: int
    high_watermark: int
    log_start: int


class JournalPlace(NamedTuple):
    """How far a worker had applied the journal, which continues version `base` of `horolog-cluster`."""

    base: int
    number: int


NOWHERE = JournalPlace(-1, 0)


class WorkerCheckpoint(NamedTuple):
    """One worker's file. `has_stopped`: every partition of this folder was closed cleanly, and nothing has been written since."""

    rows: Mapping[TopicPartition, PartitionRow]
    has_stopped: bool
    at: JournalPlace = NOWHERE


def name_of(node: int) -> str:
    return f"{NAME}.{node}"


def encode(found: WorkerCheckpoint) -> bytes:
    state = _STOPPED if found.has_stopped else _RUNNING
    lines = [f"{_HEAD} {state} {found.at.base} {found.at.number}"]
    for (topic, index), row in found.rows.items():
        assert checkpoints.is_possible(topic, index, row.log_start), f"{topic}-{index} from {row.log_start}"
        lines.append(
            f"{topic} {index} {show_uuid(row.topic_id)} {row.recovery_point} {row.high_watermark} {row.log_start}"
        )
    body = "".join(f"{line}\n" for line in lines).encode()
    return body + f"{_CHECKSUM}{crc32c(body):08x}\n".encode()


def decode(data: bytes) -> WorkerCheckpoint:
    """Raises CheckpointError."""
    end = data.rfind(b"\n", 0, -1) + 1
    if data[end:] != f"{_CHECKSUM}{crc32c(data[:end]):08x}\n".encode():
        raise CheckpointError("the checksum does not match")
    head, *lines = data[:end].decode().split("\n")[:-1] or [""]
    state, at = _read_head(head)
    rows: dict[TopicPartition, PartitionRow] = {}
    for line in lines:
        topic, index, topic_id, *numbers = line.split(" ")
        rows[topic, int(index)] = PartitionRow(parse_uuid(topic_id), *map(int, numbers))
    return WorkerCheckpoint(rows, state == _STOPPED, at)


def _read_head(head: str) -> tuple[str, JournalPlace]:
    for version, count in ((_HEAD, 2), (_HEAD_BEFORE, 0)):
        state, *numbers = head.removeprefix(f"{version} ").split(" ")
        if head.startswith(f"{version} ") and state in (_STOPPED, _RUNNING) and len(numbers) == count:
            return state, JournalPlace(*map(int, numbers)) if numbers else NOWHERE
    raise CheckpointError(f"{head!r} is not {_HEAD!r}")


def load(storage: Storage, path: str) -> WorkerCheckpoint | None:
    """None where there is no such file. Raises CheckpointError and StorageFault."""
    try:
        return decode(storage.read_all(path))
    except FileMissing:
        return None


class LoadedCheckpoints(NamedTuple):
    """The readable files of a folder, by node, and why others cannot be read."""

    found: dict[int, WorkerCheckpoint]
    faults: list[str]


def load_all(storage: Storage, data_dir: str) -> LoadedCheckpoints:
    """Raises StorageFault if one of them cannot be read: without it deleted records would be there again."""
    loaded = LoadedCheckpoints({}, [])
    for node in nodes_in(storage, data_dir):
        path = f"{data_dir}/{name_of(node)}"
        try:
            checkpoint = load(storage, path)
        except CheckpointError as damage:
            loaded.faults.append(f"{path}: {damage}")
        else:
            if checkpoint is not None:
                loaded.found[node] = checkpoint
    return loaded


def keep_damaged(storage: Storage, data_dir: str, nodes: Iterable[int]) -> None:
    """Keep copies of damaged files for the owner, as far as possible."""
    try:
        data = b"".join(storage.read_all(f"{data_dir}/{name_of(node)}") for node in nodes)
        if data:
            storage.write_atomically(f"{data_dir}/{DAMAGED_CHECKPOINTS}", data)
    except StorageFault as fault:
        log.error("%s: damaged checkpoints of workers cannot be kept: %s", data_dir, fault)


def nodes_in(storage: Storage, data_dir: str) -> list[int]:
    """The workers that have files. Raises StorageFault."""
    return sorted(int(match[1]) for name in storage.list_dir(data_dir) if (match := _FILE.fullmatch(name)))


def united(
    files: Iterable[WorkerCheckpoint], id_of: Callable[[TopicPartition], bytes | None]
) -> dict[TopicPartition, PartitionRow]:
    """The rows of several files, merged by partition; `id_of` returns None for a partition that does not exist."""
    rows: dict[TopicPartition, PartitionRow] = {}
    for each in files:
        for key, row in each.rows.items():
            topic_id = id_of(key)
            if topic_id is None or row.topic_id not in (topic_id, NO_ID):
                continue
            known = rows.get(key)
            rows[key] = row if known is None else united_rows(known, row)
    return rows


def united_rows(one: PartitionRow, other: PartitionRow) -> PartitionRow:
    """Two rows of one partition, merged."""
    points = [row.recovery_point for row in (one, other) if row.recovery_point != UNKNOWN]
    return PartitionRow(
        one.topic_id,
        min(points, default=UNKNOWN),
        max(one.high_watermark, other.high_watermark),
        max(one.log_start, other.log_start),
    )
