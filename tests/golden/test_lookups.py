"""Lookups by time over golden folders: always the first record at or after the target, also where the real broker was wrong."""

from pathlib import Path

import pytest

from horolog.broker.log.partition import lookups
from tests.golden.test_reading import STAGES, UNFINISHED, as_golden
from tests.support.golden import Case, GoldenRecord
from tests.support.logs import open_logs, read_all

CASES = sorted({name for name, _ in STAGES})
EARLIEST, LATEST = -2, -1

# Where the broker that wrote the case answered otherwise than the rule; every other answer of every case must be the rule's, which
# proves that the rule as written here is the one that real brokers follow.
BROKER_WAS_WRONG = {
    "v0-then-v1": "a leading segment without times swallowed the query (finding 12)",
    "v1-compacted-none": "a segment emptied by the cleaner swallowed the query (finding 12)",
    "v1-compacted-gzip": "a segment emptied by the cleaner swallowed the query (finding 12)",
    "v2-compacted-zstd": "a segment emptied by the cleaner swallowed the query (finding 12)",
    "v2-compacted-txn": "a segment emptied by the cleaner swallowed the query, and markers answered (findings 12 and 13)",
    "v2-txn": "transaction markers answered (finding 13)",
    "v2-txn-multiseg": "transaction markers answered (finding 13)",
}


def linear_scan(records: list[GoldenRecord], target: int) -> tuple[int, int]:
    """(offset, timestamp) of the first record in log order whose time is at or after the target; (-1, -1) without one."""
    for record in records:
        if record.timestamp >= max(target, 0) and record.timestamp_type != "NoTimestampType":
            return record.offset, record.timestamp
    return -1, -1


def targets(case: Case, records: list[GoldenRecord]) -> list[int]:
    """Every target that the real broker was asked, and both sides of every time that occurs."""
    times = {record.timestamp for record in records if record.timestamp >= 0}
    asked = {target for target, _, _ in case.answers() if target >= 0}
    return sorted(asked | {time + step for time in times for step in (-1, 0, 1)} | {0, 1, 2**62})


@pytest.mark.parametrize(("case", "stage"), STAGES, indirect=["case"], ids=str)
def test_every_look_up_is_a_linear_scan(case: Case, stage: str, tmp_path: Path) -> None:
    case.copy(stage, tmp_path)
    logs = open_logs(tmp_path, case.topic_config)
    partition = logs.partitions["topic", 0]
    records = [as_golden(record) for record in read_all(partition)] if stage in UNFINISHED else case.records()
    for target in targets(case, records):
        found = lookups.first_at_or_after(partition, target)
        answer = (found.offset, found.timestamp) if found else (-1, -1)
        assert answer == linear_scan(records, target), f"target {target}"
    logs.close()


@pytest.mark.parametrize("case", CASES, indirect=True)
def test_the_real_broker_answered_by_the_same_rule(case: Case) -> None:
    records = case.records()
    wrong = []
    for target, offset, timestamp in case.answers():
        if target >= 0 and (offset, timestamp) != linear_scan(records, target):
            wrong.append((target, offset, timestamp))
    assert bool(wrong) == (case.name in BROKER_WAS_WRONG), wrong


@pytest.mark.parametrize("case", CASES, indirect=True)
def test_the_largest_time_is_that_of_its_first_record(case: Case, tmp_path: Path) -> None:
    case.copy("clean", tmp_path)
    logs = open_logs(tmp_path, case.topic_config)
    found = lookups.largest_timestamp(logs.partitions["topic", 0])
    timed = [
        record for record in case.records() if record.timestamp_type != "NoTimestampType" and record.timestamp >= 0
    ]
    if not timed:
        assert found is None
    else:
        largest = max(record.timestamp for record in timed)
        first = next(record for record in timed if record.timestamp == largest)
        assert found is not None
        assert (found.timestamp, found.offset) == (largest, first.offset)
    logs.close()


@pytest.mark.parametrize("case", [name for name in CASES if name != "v0-broker09-gzip"], indirect=True)
def test_the_oldest_look_up_lists_segments(case: Case, tmp_path: Path) -> None:
    """ListOffsets v0 as the running broker answered: its latest counts the end of the log, its earliest is the first segment."""
    case.copy("clean", tmp_path)
    logs = open_logs(tmp_path, case.topic_config)
    partition = logs.partitions["topic", 0]
    now_ms = max(case.mtimes_ms("clean").values()) + 1000
    answers = case.manifest["list_offsets_v0"]
    assert lookups.offsets_before(partition, LATEST, 1000, now_ms) == answers["latest"]
    assert lookups.offsets_before(partition, EARLIEST, 1000, now_ms) == answers["earliest"]
    assert lookups.offsets_before(partition, LATEST, 1, now_ms) == answers["latest"][:1]
    logs.close()
