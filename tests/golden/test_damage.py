"""Index files that are gone, cut, stale, shuffled or plainly wrong cost time, never an answer: lookups stay a linear scan."""

import os
import struct
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from horolog.broker.log.partition import lookups
from horolog.broker.log.storage import RealStorage
from tests.golden.test_lookups import linear_scan, targets
from tests.golden.test_reading import as_golden
from tests.support import golden
from tests.support.golden import Case, entries
from tests.support.logs import open_logs, read_all

CASES = sorted({name for name, _ in golden.names()})
LATE = 4_102_444_800_000  # 2100-01-01
TIME_ENTRY, OFFSET_ENTRY = 12, 8

Damage = Callable[[Path], None]


def each(folder: Path, suffix: str) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.suffix == suffix)


def remove(*suffixes: str) -> Damage:
    def damage(folder: Path) -> None:
        for suffix in suffixes:
            for path in each(folder, suffix):
                path.unlink()

    return damage


def rewrite(suffix: str, change: Callable[[bytes], bytes]) -> Damage:
    """Change every file of a kind and give it back its old modification time, which no check may rely on."""

    def damage(folder: Path) -> None:
        for path in each(folder, suffix):
            times = path.stat()
            path.write_bytes(change(path.read_bytes()))
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    return damage


def shuffled(data: bytes) -> bytes:
    return b"".join(sorted(entries(data, TIME_ENTRY), key=lambda entry: entry[::-1]))


def later(data: bytes) -> bytes:
    """Still increasing, every time a second too late: searching it starts too early at best and skips segments at worst."""
    return b"".join(struct.pack(">qi", *_shifted(entry, 1000, 0)) for entry in entries(data, TIME_ENTRY))


def earlier(data: bytes) -> bytes:
    return b"".join(struct.pack(">qi", *_shifted(entry, -1000, 0)) for entry in entries(data, TIME_ENTRY))


def offsets_behind(data: bytes) -> bytes:
    """Still increasing, every offset too large: a search that believes it starts behind the answer."""
    return b"".join(struct.pack(">qi", *_shifted(entry, 0, 3)) for entry in entries(data, TIME_ENTRY))


def _shifted(entry: bytes, time: int, offset: int) -> tuple[int, int]:
    own_time, own_offset = struct.unpack(">qi", entry)
    return own_time + time, own_offset + offset


def wrong_positions(data: bytes) -> bytes:
    """Increasing entries of the right size that point into the middle of batches."""
    found = [struct.unpack(">ii", entry) for entry in entries(data, OFFSET_ENTRY)]
    return b"".join(struct.pack(">ii", offset, position + 7) for offset, position in found)


def too_many_offsets(data: bytes) -> bytes:
    found = [struct.unpack(">ii", entry) for entry in entries(data, OFFSET_ENTRY)]
    return b"".join(struct.pack(">ii", offset + 2, position) for offset, position in found)


@cache
def answers(case: Case) -> list[tuple[int, tuple[int, int]]]:
    """Targets, and what a linear scan of the case's records answers: the same for every damage."""
    records = case.records()
    return [(target, linear_scan(records, target)) for target in targets(case, records)]


VARIANTS: dict[str, Damage] = {
    "time indexes gone": remove(".timeindex"),
    "offset indexes gone": remove(".index"),
    "all indexes gone": remove(".timeindex", ".index"),
    "time indexes empty": rewrite(".timeindex", lambda _: b""),
    "time indexes a byte short": rewrite(".timeindex", lambda data: data[:-1]),
    "time indexes without their last entry": rewrite(".timeindex", lambda data: data[:-TIME_ENTRY]),
    "time indexes with only their last entry": rewrite(".timeindex", lambda data: data[-TIME_ENTRY:]),
    "time indexes zeroed": rewrite(".timeindex", lambda data: bytes(len(data))),
    "time indexes padded with zeros": rewrite(".timeindex", lambda data: data + bytes(TIME_ENTRY * 4)),
    "time indexes shuffled": rewrite(".timeindex", shuffled),
    "times too late": rewrite(".timeindex", later),
    "times too early": rewrite(".timeindex", earlier),
    "time index offsets too large": rewrite(".timeindex", offsets_behind),
    "a time from the future": rewrite(".timeindex", lambda data: data + struct.pack(">qi", LATE, 1)),
    "offset indexes empty": rewrite(".index", lambda _: b""),
    "offset indexes zeroed": rewrite(".index", lambda data: bytes(len(data))),
    "positions inside batches": rewrite(".index", wrong_positions),
    "offset index offsets too large": rewrite(".index", too_many_offsets),
    "random offset indexes": rewrite(".index", lambda data: bytes((7 * at + 13) & 255 for at in range(len(data)))),
    "other files gone": remove(".snapshot", ".txnindex"),
}


@pytest.mark.one_in(8)
@pytest.mark.parametrize("clean", [True, False], ids=["clean shutdown", "crash"])
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("case", CASES, indirect=True)
def test_damaged_indexes_answer_right(case: Case, variant: str, *, clean: bool, tmp_path: Path) -> None:
    folder = case.copy("clean", tmp_path)
    VARIANTS[variant](folder)
    marker = tmp_path / ".kafka_cleanshutdown"
    if clean:
        marker.write_bytes(b"")
    else:
        marker.unlink(missing_ok=True)
    storage = RealStorage()
    logs = open_logs(tmp_path, case.topic_config, storage=storage)
    partition = logs.partitions["topic", 0]
    records = case.records()
    assert [as_golden(record) for record in read_all(partition)] == records
    for target, answer in answers(case):
        found = lookups.first_at_or_after(partition, target)
        assert ((found.offset, found.timestamp) if found else (-1, -1)) == answer, f"target {target}"
    for record in records[:: max(1, len(records) // 10)]:
        assert read_all(partition, record.offset)[0].offset == record.offset, "reading may start anywhere"
    logs.close()
    assert storage.open_files == 0, "whatever was opened on the way was closed"


@pytest.mark.parametrize("case", CASES, indirect=True)
def test_modification_times_mean_nothing_where_records_have_times(case: Case, tmp_path: Path) -> None:
    """A folder copied to another machine: every modification time is new."""
    folder = case.copy("clean", tmp_path)
    for path in folder.iterdir():
        os.utime(path, (LATE / 1000, LATE / 1000))
    logs = open_logs(tmp_path, case.topic_config)
    partition = logs.partitions["topic", 0]
    for target, answer in answers(case):
        found = lookups.first_at_or_after(partition, target)
        assert ((found.offset, found.timestamp) if found else (-1, -1)) == answer, f"target {target}"
    logs.close()
