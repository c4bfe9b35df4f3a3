"""What index entries promise holds for every file that horolog writes or leaves in place, whoever wrote the log."""

import struct
from pathlib import Path

import pytest

from horolog.broker.log.partition import lookups
from tests.golden.test_reading import as_golden
from tests.golden.test_recreation import CASES, full_stage, produce_again
from tests.support import golden
from tests.support.golden import Case, GoldenRecord
from tests.support.logs import open_logs, read_all, topic_config
from tests.support.produced import entries as log_entries

OFFSET_ENTRY, TIME_ENTRY = struct.Struct(">ii"), struct.Struct(">qi")


def check_segment(folder: Path, base: int, end: int, records: list[GoldenRecord]) -> None:
    """Entries increase, point to the start of batches, and no later record in the segment lies before a time's offset."""
    log = (folder / f"{base:020}.log").read_bytes()
    starts = {}
    position = 0
    for entry in log_entries(log):
        starts[position] = entry
        position += len(entry)
    offsets = [OFFSET_ENTRY.unpack(one) for one in golden.entries((folder / f"{base:020}.index").read_bytes(), 8)]
    assert offsets == sorted(set(offsets))
    assert [position for _, position in offsets] == sorted({position for _, position in offsets})
    for offset, position in offsets:
        assert position in starts, f"{offset} -> {position} points into the middle of a batch"
        first = struct.unpack_from(">q", starts[position])[0]
        assert base + offset <= last_offset(starts[position]), "a reader that starts there has not passed the offset"
        assert base <= first or starts[position][16] < 2
    own = [
        record
        for record in records
        if base <= record.offset < end and record.timestamp >= 0 and record.timestamp_type != "NoTimestampType"
    ]
    times = [TIME_ENTRY.unpack(one) for one in golden.entries((folder / f"{base:020}.timeindex").read_bytes(), 12)]
    assert [time for time, _ in times] == sorted({time for time, _ in times}), "times grow inside one file"
    for time, offset in times:
        assert all(record.offset > base + offset for record in own if record.timestamp > time), (
            "later records lie behind"
        )
        deleted = base + offset < records[0].offset
        assert deleted or any(record.timestamp == time for record in own), "the time of a record"
    if own and log:
        assert times[-1][0] == max(record.timestamp for record in own), "the last entry holds the largest time"
    if not own:
        assert times == [], "no times, no entries"


def last_offset(entry: bytearray) -> int:
    base = struct.unpack_from(">q", entry)[0]
    delta = struct.unpack_from(">i", entry, 23)[0] if entry[16] == 2 else 0
    return int(base + delta)


def check_folder(folder: Path, records: list[GoldenRecord]) -> None:
    bases = sorted(int(path.name[:20]) for path in folder.iterdir() if path.suffix == ".log")
    for base, end in zip(bases, [*bases[1:], 2**63 - 1], strict=True):
        check_segment(folder, base, end, records)


@pytest.mark.parametrize("case", CASES, indirect=True)
def test_written_indexes_keep_their_promises(case: Case, tmp_path: Path) -> None:
    logs = open_logs(tmp_path)
    partition = logs.create("topic", 0, topic_config(case.topic_config), None)
    produce_again(case, full_stage(case), partition)
    records = [as_golden(record) for record in read_all(partition)]
    logs.close()
    check_folder(tmp_path / "topic-0", records)


@pytest.mark.parametrize("damaged", [".timeindex", ".index"])
@pytest.mark.parametrize("case", sorted({name for name, _ in golden.names()}), indirect=True)
def test_rebuilt_indexes_keep_their_promises(case: Case, damaged: str, tmp_path: Path) -> None:
    folder = case.copy("clean", tmp_path)
    for path in folder.iterdir():
        if path.suffix == damaged:
            path.unlink()
    logs = open_logs(tmp_path, case.topic_config)
    partition = logs.partitions["topic", 0]
    records = [as_golden(record) for record in read_all(partition)]
    for target in (0, 10**12, 2**62):
        lookups.first_at_or_after(partition, target)
    logs.close()
    check_folder(folder, records)
