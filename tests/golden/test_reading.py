"""Golden folders are opened as they are and hold what the Java consumer read from the broker that wrote them."""

from pathlib import Path

import pytest

from horolog.protocol.records.record import Record
from tests.support import golden
from tests.support.golden import Case, GoldenRecord
from tests.support.logs import open_logs, read_all

AHEAD_OF_ITS_CHECKPOINT = ("v2-delete-records", "active")
"""Copied after the request and before the running broker wrote the new start of the log down: nothing in it says so."""

STAGES = [name for name in golden.names() if name != AHEAD_OF_ITS_CHECKPOINT]
UNFINISHED = ("before", "epoch0", "epoch1")
"""Stages that the consumer did not see: it read at the end of a case's life."""


def as_golden(record: Record) -> GoldenRecord:
    headers = tuple(
        (key if isinstance(key, str) else bytes(key).decode(), _bytes(value)) for key, value in record.headers
    )
    kind = ("CreateTime", "LogAppendTime")[record.timestamp_type] if record.timestamp_type >= 0 else "NoTimestampType"
    return GoldenRecord(record.offset, record.timestamp, kind, _bytes(record.key), _bytes(record.value), headers)


def _bytes(value: bytes | memoryview | None) -> bytes | None:
    return None if value is None else bytes(value)


def first_segment(case: Case, stage: str) -> int:
    return min(int(name[:20]) for name in case.files(stage) if name.endswith(".log"))


@pytest.mark.parametrize(("case", "stage"), STAGES, indirect=["case"], ids=str)
def test_records_are_those_the_java_consumer_read(case: Case, stage: str, tmp_path: Path) -> None:
    case.copy(stage, tmp_path)
    logs = open_logs(tmp_path, case.topic_config)
    partition = logs.partitions["topic", 0]
    read = [as_golden(record) for record in read_all(partition)]
    if stage in UNFINISHED:
        offsets = [record.offset for record in read]
        assert offsets == sorted(set(offsets)), "offsets grow"
        final = {record.offset: record for record in case.records()}
        seen = [record for record in read if record.offset in final]
        assert seen == [final[record.offset] for record in seen], "a record never changes"
        if stage == "before":
            assert {offset for offset in final if offset <= offsets[-1]} <= set(offsets), (
                "cleaning and retention only take away"
            )
    else:
        assert read == case.records()
    logs.close()


@pytest.mark.parametrize(
    ("case", "stage"),
    [name for name in STAGES if name[1] not in UNFINISHED],
    indirect=["case"],
    ids=str,
)
def test_start_and_end_of_the_log(case: Case, stage: str, tmp_path: Path) -> None:
    case.copy(stage, tmp_path)
    logs = open_logs(tmp_path, case.topic_config)
    partition = logs.partitions["topic", 0]
    consumed = case.consumed()
    assert (partition.log_start_offset, partition.log_end_offset) == (consumed["begin"], consumed["end"])
    assert partition.high_watermark == partition.log_end_offset
    assert partition.last_stable_offset == partition.log_end_offset, "no transaction was left open"
    logs.close()


@pytest.mark.parametrize("case", sorted({name for name, _ in STAGES}), indirect=True)
def test_opening_and_closing_changes_no_record(case: Case, tmp_path: Path) -> None:
    folder = case.copy("clean", tmp_path)
    open_logs(tmp_path, case.topic_config).close()
    after = {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix == ".log"}
    assert after == {name: data for name, data in case.files("clean").items() if name.endswith(".log")}
