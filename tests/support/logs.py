"""A log manager over a folder, for tests of partitions without a server."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from horolog.base.clock import ManualClock
from horolog.broker.config import settings, topic_settings
from horolog.broker.log.manager import LogManager
from horolog.broker.log.partition import Partition
from horolog.broker.log.storage import RealStorage
from horolog.broker.log.validation import Mark, Validated
from horolog.protocol.records.entries import iter_records
from horolog.protocol.records.record import Record

WALL_MS = 1_795_190_000_000
"""The clock of tests: a little after the golden brokers ran."""

READ_BYTES = 1 << 20


def topic_config(overrides: Mapping[str, str] | None = None) -> topic_settings.TopicConfig:
    return topic_settings.resolve(dict(overrides or {}), broker_settings())


def broker_settings(flags: Mapping[str, str] | None = None) -> settings.Settings:
    loaded, warnings = settings.load(None, {}, dict(flags or {}))
    assert not warnings
    return loaded


def open_logs(
    data: Path,
    overrides: Mapping[str, str] | None = None,
    *,
    wall_ms: int = WALL_MS,
    storage: RealStorage | None = None,
) -> LogManager:
    """Every partition folder in `data`, each with the same overrides."""
    config = topic_config(overrides)
    logs = LogManager([str(data)], storage or RealStorage(), ManualClock(wall_ms), broker_settings())
    logs.open(lambda _topic: config)
    return logs


def marks_of(checked: Validated) -> Sequence[Mark]:
    """The valid targets of index entries; one batch or wrapper is one place."""
    first, last = checked.first_offset, checked.last_offset
    return checked.marks or [Mark(0, first, last, checked.max_timestamp, checked.max_timestamp_offset)]


def read_all(partition: Partition, start: int | None = None) -> list[Record]:
    """Every data record, from the log's start on; markers are skipped."""
    records: list[Record] = []
    offset = partition.log_start_offset if start is None else start
    while offset < partition.high_watermark:
        data = partition.read(offset, READ_BYTES)
        assert data, f"nothing at {offset} below the high watermark {partition.high_watermark}"
        found, offset = _records_of(data, offset)
        records += found
    return records


def _records_of(data: bytes, offset: int) -> tuple[list[Record], int]:
    return [record for record in iter_records(data) if record.offset >= offset], next_offset(data)


def next_offset(data: bytes) -> int:
    """The offset after the last whole batch or message in `data`."""
    position, behind = 0, -1
    while position + 17 <= len(data):
        base = int.from_bytes(data[position : position + 8], "big")
        size = int.from_bytes(data[position + 8 : position + 12], "big")
        last_delta = int.from_bytes(data[position + 23 : position + 27], "big") if data[position + 16] == 2 else 0
        behind = base + last_delta + 1
        position += 12 + size
    return behind
