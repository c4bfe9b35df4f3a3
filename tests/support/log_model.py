"""A partition and a plain list of its expected content: the oracle of the log's property tests."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from horolog.broker.config.settings import load
from horolog.broker.config.topic_settings import TopicConfig, resolve
from horolog.broker.log.partition import Partition, Resources, closing, lookups
from horolog.broker.log.recovery import Circumstances, PartitionFolder, create_partition, open_partition
from horolog.broker.log.segments import Found
from horolog.broker.log.storage import MemoryStorage
from horolog.protocol.records import message_set
from horolog.protocol.records.batch import encode_batch
from horolog.protocol.records.compression import Codec
from horolog.protocol.records.entries import iter_records
from horolog.protocol.records.head import heads_in
from horolog.protocol.records.record import Record

NOW_MS = 1_700_000_000_000
DIRECTORY = "/data/t-0"
CODECS = {0: (0, 1, 2, 3), 1: (0, 1, 2, 3), 2: (0, 1, 2, 3, 4)}
OLD, NEW = 2, 9  # versions of Produce

Row = tuple[int, int, bytes | None]  # offset, timestamp, value


def small_config(**changes: object) -> TopicConfig:
    """A config with segments of a few batches and indexes of a few entries."""
    config = resolve({}, load(None, {}, {})[0])
    small = {
        "segment_bytes": 1200,
        "index_interval_bytes": 150,
        "segment_index_bytes": 96,
        "retention_ms": -1,
        "file_delete_delay_ms": 0,
    }
    return replace(config, **{**small, **changes})  # type: ignore[arg-type]


def encode(magic: int, codec: int, timestamps: list[int], values: list[bytes]) -> bytes:
    """A record set as a producer sends it, offsets from 0 on."""
    pairs = enumerate(zip(timestamps, values, strict=True))
    records = [Record(n, timestamp if magic else -1, 0, b"k", value) for n, (timestamp, value) in pairs]
    if magic == 2:
        return bytes(encode_batch(records, Codec(codec)))
    if codec:
        return message_set.encode_wrapper(records, magic, Codec(codec))
    return message_set.encode_set(records, magic)


def new_storage() -> MemoryStorage:
    storage = MemoryStorage(lambda: NOW_MS * 1_000_000)
    storage.make_dir("/data")
    storage.sync_dir("/")
    return storage


class Model:
    """`rows` is the content the partition must have; rows before `synced` must survive a power cut."""

    def __init__(self, config: TopicConfig | None = None) -> None:
        self.config = config or small_config()
        self.storage = new_storage()
        self.rows: list[Row] = []
        self.written = 0  # offsets
        self.synced = 0
        self.partition = create_partition(
            PartitionFolder("t", 0, DIRECTORY), None, self.config, Resources(self.storage), NOW_MS
        )
        self.storage.sync_dir("/data")

    def append(self, magic: int, codec: int, timestamps: list[int], values: list[bytes]) -> None:
        data = encode(magic, codec, timestamps, values)
        version = NEW if magic == 2 else OLD
        result = self.partition.append(data, NOW_MS, produce_version=version)
        base = len(self.rows) if not self.rows else self.rows[-1][0] + 1
        assert (result.base_offset, result.last_offset) == (
            max(base, result.base_offset),
            result.base_offset + len(values) - 1,
        )
        for n, (timestamp, value) in enumerate(zip(timestamps, values, strict=True)):
            self.rows.append((result.base_offset + n, timestamp if magic else -1, value))

    def flush(self) -> None:
        self.partition.flush()
        self.written = self.partition.high_watermark

    def sync(self) -> None:
        self.partition.sync()
        self.synced = self.partition.sync_state.recovery_point

    def forget_unwritten(self) -> None:
        self.rows = [row for row in self.rows if row[0] < self.written]

    def reopen(self, *, was_clean: bool) -> None:
        start = self.partition.log_start_offset
        known = Circumstances(was_clean, start, NOW_MS, may_be_unsynced=not was_clean)
        self.partition = open_partition(PartitionFolder("t", 0, DIRECTORY), self.config, Resources(self.storage), known)

    def close_and_open(self) -> None:
        closing.close(self.partition)
        self.written = self.synced = self.partition.high_watermark
        self.reopen(was_clean=True)

    def kill_and_open(self) -> None:
        """Kill the process: unwritten data is lost."""
        self.forget_unwritten()
        self.reopen(was_clean=False)

    def cut_power_and_open(self, chance: random.Random) -> None:
        """Cut the power: synced data remains; of the rest any part may remain, and nothing else."""
        self.storage.crash(chance)
        self.reopen(was_clean=False)
        survived = read_all(self.partition)
        assert [row for row in self.rows if row[0] < self.synced] == survived[: self._count_synced()]
        known = set(self.rows)
        assert all(row in known for row in survived)
        assert [row[0] for row in survived] == sorted({row[0] for row in survived})
        self.rows = survived
        self.written = self.partition.high_watermark

    def _count_synced(self) -> int:
        return sum(1 for row in self.rows if row[0] < self.synced)

    def visible(self) -> list[Row]:
        start = self.partition.log_start_offset
        return [row for row in self.rows if start <= row[0] < self.written]

    def check(self, max_bytes: int = 1 << 20) -> None:
        assert read_all(self.partition, max_bytes) == self.visible()
        self.check_look_ups()

    def check_look_ups(self) -> None:
        rows = self.visible()
        times = sorted({row[1] for row in rows if row[1] >= 0})
        for target in sorted(
            {0, 1 << 40, *times, *(time + 1 for time in times), *(time - 1 for time in times if time)}
        ):
            assert place(lookups.first_at_or_after(self.partition, target)) == first_at_or_after(rows, target), target
        largest = first_at_or_after(rows, times[-1]) if times else None
        assert place(lookups.largest_timestamp(self.partition)) == largest


def append_at(model: Model, timestamp: int) -> Any:
    """A record of 900 bytes, so that the next one begins a segment."""
    return model.partition.append(encode(2, 0, [timestamp], [b"v" * 900]), NOW_MS, produce_version=NEW)


def fill(model: Model, timestamps: Iterable[int]) -> None:
    """One segment for each time."""
    for timestamp in timestamps:
        append_at(model, timestamp)
    model.flush()


def send(model: Model, sequence: int, producer_id: int = 7, epoch: int = 0) -> int:
    """Append an idempotent producer's batch of two records; returns its offset."""
    records = [Record(n, NOW_MS, 0, b"k", b"v%d" % sequence) for n in range(2)]
    data = bytes(encode_batch(records, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence))
    base_offset = model.partition.append(data, NOW_MS, produce_version=NEW).base_offset
    model.partition.flush()
    return base_offset


def place(found: Found | None) -> tuple[int, int] | None:
    return None if found is None else (found.offset, found.timestamp)


def first_at_or_after(rows: list[Row], target: int) -> tuple[int, int] | None:
    """The linear scan that every lookup must equal."""
    return next(((offset, timestamp) for offset, timestamp, _ in rows if timestamp >= target), None)


def read_all(partition: Partition, max_bytes: int = 1 << 20, start: int | None = None) -> list[Row]:
    """Everything from an offset on, as a consumer reads it."""
    offset = partition.log_start_offset if start is None else start
    rows: list[Row] = []
    while offset < partition.high_watermark:
        data = partition.read(offset, max_bytes)
        if not data:
            break
        rows += [(one.offset, one.timestamp, one.value) for one in iter_records(data) if one.offset >= offset]
        offset = list(heads_in(data))[-1].last_offset + 1
    return rows
