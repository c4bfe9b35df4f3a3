"""Broken records go where the options say, with their bytes and the reason; the time of an event comes from a field."""

from datetime import UTC, date, datetime

import numpy as np
import pytest

from horolog.client.values.types import TopicPartition
from horolog.pipeline.arrow.columns import Source, plain_batch
from horolog.pipeline.base.positions import OffsetRange, OptionError
from horolog.pipeline.reading.dead_letters import name_of, outgoing
from horolog.pipeline.typed import ddl
from horolog.pipeline.typed.decoding import BrokenRecordError, Decoding, EventTime
from horolog.pipeline.typed.readers import JsonReader, TextReader
from horolog.protocol.records.record import Record

MS = 1_763_000_000_000
KIND = ddl.parse(
    "o", "id INT, at STRUCT<ms: BIGINT, text: STRING, day: DATE, local: TIMESTAMP_NTZ, us: TIMESTAMP, x: DOUBLE>"
)


class Post:
    """What a task would write."""

    def __init__(self):
        self.letters, self.ended = [], None

    def send(self, letters):
        self.letters.append(letters)

    def close(self):
        self.ended = "closed"

    def give_up(self):
        self.ended = "given up"


def batch(*values, headers=True):
    records = [
        Record(n, MS + n, 0, b"k%d" % n if n else b"\xff", value, ((b"h", b"%d" % n),) if n else ())
        for n, value in enumerate(values)
    ]
    return plain_batch(records, Source("orders", 3, headers))


def decoding(mode="permissive", path=None, unit="auto", **more):
    event_time = None if path is None else EventTime.of(path, unit, KIND)
    return Decoding(TextReader(), JsonReader(KIND), mode, event_time, **more)


def test_permissive_has_the_reason_and_the_bytes():
    (found,) = decoding().batches([batch(b'{"id":1}', b'{"id":2}', b"{", None)])
    assert found.schema == decoding().schema(batch(headers=False).schema)
    rows = found.to_pylist()
    assert [row["value"] and row["value"]["id"] for row in rows] == [1, 2, None, None]
    assert [row["key"] for row in rows] == [None, "k1", "k2", "k3"]
    corrupt = [row["_corrupt"] for row in rows]
    assert corrupt[0] == {"reason": "key: byte 1 is not UTF-8", "key": b"\xff", "value": b'{"id":1}'}
    assert corrupt[2]["reason"].startswith("value: not JSON: ")
    assert corrupt[2]["value"] == b"{"
    assert corrupt[1] is corrupt[3] is None
    (fine,) = decoding().batches([batch(b'{"id":1}').slice(0, 0), batch(None, None).slice(1)])
    assert fine.to_pylist()[0]["_corrupt"] is None


def test_decoded_columns_come_beside_the_bytes():
    made = decoding(path="at.ms", keeps_raw=True, include_headers=True)
    (found,) = made.batches([batch(b'{"id":1,"at":{"ms":%d}}' % MS, b"{", None)])
    assert found.schema == made.schema(batch().schema)
    names = ["headers", "key_decoded", "value_decoded", "event_time", "lateness_ms", "_corrupt"]
    assert found.schema.names[-6:] == names
    rows = found.to_pylist()
    assert [(row["key"], row["key_decoded"]) for row in rows] == [(b"\xff", None), (b"k1", "k1"), (b"k2", "k2")]
    assert [row["value"] for row in rows[1:]] == [b"{", None]
    assert (rows[0]["value_decoded"]["id"], rows[0]["lateness_ms"]) == (1, 0)
    assert [(row["_corrupt"] or "").partition(":")[0] for row in rows] == ["key", "value", ""]
    (fine,) = made.batches([batch(b"{}", b"{}").slice(1)])
    assert fine.to_pylist()[0]["_corrupt"] is None


def test_dropped_records_are_counted_and_said(caplog):
    found = list(decoding("dropmalformed").batches([batch(b"{"), batch(b"{", b'{"id":2}', b"{")]))
    assert [row["value"]["id"] for one in found for row in one.to_pylist()] == [2]
    assert "_corrupt" not in found[0].schema.names
    assert "3 of 4 records cannot be read and are left out; orders-3, offset 0: key: byte 1" in caplog.text
    caplog.clear()
    list(decoding("dropmalformed").batches([batch(b"{}", b"{}").slice(1)]))
    assert not caplog.text


def test_failfast_names_the_first():
    with pytest.raises(BrokenRecordError, match=r"^orders-3, offset 2: value: not JSON.*mode failfast"):
        list(decoding("failfast").batches([batch(b"{}", b"{}", b"{", b"{").slice(1)]))


def test_letters_have_the_record_as_it_came_and_the_reason():
    post = Post()
    made = decoding("dropmalformed", dead_letters="d")
    assert made.reads_headers
    found = list(made.batches([batch(b"{}", b"{}", b"{"), batch(b"{}", b"{}").slice(1)], post))
    assert [one.num_rows for one in found] == [1, 1]
    assert "headers" not in found[0].schema.names
    assert post.ended == "closed"
    records = outgoing(post.letters[0])
    assert (records.keys.to_pylist(), records.values.to_pylist()) == ([b"\xff", b"k2"], [b"{}", b"{"])
    assert list(records.times_ms) == [MS, MS + 2]
    names = ["topic", "partition", "offset", "stage", "exception.class.name", "exception.message"]
    first, second = records.headers
    assert [name.decode().removeprefix("__connect.errors.") for name, _ in first] == names
    assert dict(first)[b"__connect.errors.stage"] == b"KEY_CONVERTER"
    assert second[0] == (b"h", b"2")
    assert [value for _, value in second[1:5]] == [b"orders", b"3", b"2", b"VALUE_CONVERTER"]


def test_a_task_that_ends_early_writes_no_letters():
    post = Post()
    running = decoding(dead_letters="d").batches([batch(b"{"), batch(b"{")], post)
    next(running)
    running.close()
    assert post.ended == "given up"


def test_a_range_has_one_name():
    wanted = OffsetRange(TopicPartition("t", 1), 5, 9)
    name = name_of("d", wanted, "id")
    assert name == name_of("d", wanted, "id")
    others = [
        name_of("e", wanted, "id"),
        name_of("d", wanted, "other"),
        name_of("d", wanted._replace(end=8), "id"),
        name_of("d", wanted._replace(partition=TopicPartition("t", 2)), "id"),
    ]
    assert len({name, *others}) == 5


@pytest.mark.parametrize(
    ("path", "unit", "value"),
    [
        ("at.ms", "auto", str(MS - 5000)),
        ("at.ms", "s", str(MS // 1000 - 5)),
        ("at.ms", "ns", str((MS - 5000) * 10**6)),
        ("at.text", "auto", '"2025-11-13T03:13:15+01:00"'),
        ("at.us", "auto", '"2025-11-13T02:13:15Z"'),
        ("at.local", "auto", '"2025-11-13T02:13:15"'),
    ],
)
def test_event_time_of_a_field(path, unit, value):
    name = path.partition(".")[2]
    made = decoding(path=path, unit=unit)
    (found,) = made.batches([batch(b"{}", f'{{"at":{{"{name}":{value}}}}}'.encode(), b"{}")])
    rows = found.to_pylist()
    assert rows[1]["event_time"] == datetime.fromtimestamp(MS / 1000 - 5, UTC)
    assert rows[1]["lateness_ms"] == 5001
    assert rows[1]["timestamp"] == datetime.fromtimestamp((MS + 1) / 1000, UTC)
    assert rows[2]["event_time"] is rows[2]["lateness_ms"] is rows[2]["_corrupt"] is None


def test_event_time_of_a_day():
    (found,) = decoding(path="at.day").batches([batch(b"{}", b'{"at":{"day":"2025-11-13"}}')])
    assert found.to_pylist()[1]["event_time"] == datetime(2025, 11, 13, tzinfo=UTC)
    assert date(2025, 11, 13) == found.to_pylist()[1]["value"]["at"]["day"]


@pytest.mark.parametrize(("path", "value"), [("at.text", '"soon"'), ("at.ms", str(2**62))])
def test_a_field_that_is_no_time_is_a_fault_of_its_record(path, value):
    name = path.partition(".")[2]
    made = decoding(path=path, unit="s" if name == "ms" else "auto")
    (found,) = made.batches([batch(b"{}", f'{{"id":7,"at":{{"{name}":{value}}}}}'.encode())])
    row = found.to_pylist()[1]
    assert (row["value"]["id"], row["event_time"], row["lateness_ms"]) == (7, None, None)
    assert row["_corrupt"]["reason"].startswith("value: timestamp.field: ")


@pytest.mark.parametrize(
    ("path", "unit", "said"),
    [
        ("id.ms", "auto", "no field id.ms; in place of 'ms' it has none"),
        ("ta", "auto", "in place of 'ta' it has id, at"),
        ("at.x", "auto", "at.x is double, not a number"),
        ("at.text", "ms", "timestamp.unit is only for a number, but at.text is string"),
    ],
)
def test_fields_that_cannot_be_times(path, unit, said):
    with pytest.raises(OptionError, match=said):
        EventTime.of(path, unit, KIND)


def test_headers_stay_where_they_are_wanted():
    (found,) = decoding(include_headers=True).batches([batch(b"{}", b"{}")])
    assert found.schema.names[7] == "headers"
    assert found.column("headers")[1].as_py() == [{"key": "h", "value": b"1"}]
    assert np.array(found.column("offset")).tolist() == [0, 1]
