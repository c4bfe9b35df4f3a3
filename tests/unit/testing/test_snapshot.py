"""The text of a topic: people read it, and whatever was written comes back as it was."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horolog.testing.reading import Producer, Seen
from horolog.testing.snapshot import SnapshotError, parse, read_back, write, written

START = 1_700_000_000_000
DATA = st.one_of(
    st.none(),
    st.binary(),
    st.text().map(lambda text: text.encode("utf-8", "replace")),
    st.sampled_from([b"null", b"base64:AA", b'"']),
)
RECORDS = st.lists(
    st.builds(
        Seen,
        st.just("t"),
        st.integers(0, 2),
        st.integers(0, 2**40),
        st.integers(0, 2**42),
        DATA,
        DATA,
        st.lists(st.tuples(DATA.filter(lambda name: name is not None), DATA), max_size=3).map(tuple),
    ),
    max_size=5,
)
TEXT = """horolog snapshot 1
topic: orders
partitions: 2
times: since the start

[0/0] +0.000s
key: alice
header trace: 4bf9
value: {"id": 1}
producer: 7 epoch 0 sequence 0
transaction: open

[1/0] -90.250s
key: null
value: base64:/wE=
"""


def test_it_reads_as_the_page_says():
    records = [
        Seen("orders", 0, 0, START, b"alice", b'{"id": 1}', ((b"trace", b"4bf9"),), Producer(7, 0, 0), "open"),
        Seen("orders", 1, 0, START - 90_250, None, b"\xff\x01"),
    ]
    assert write("orders", 2, records, start_ms=START, marks=True) == TEXT
    parsed = parse("# a remark\n" + TEXT, start_ms=START)
    assert (parsed.topic, parsed.partitions) == ("orders", 2)
    assert parsed.records[1] == (Seen("orders", 1, 0, -1, None, b"\xff\x01"), START - 90_250)
    absolute = write("orders", 2, records, start_ms=0, times="absolute")
    assert "[0/0] 2023-11-14T22:13:20.000+00:00" in absolute
    assert parse(absolute).records[0][1] == START
    assert "\n[0/0]\n" in write("orders", 2, records, start_ms=0, times="none")
    far = [Seen("orders", 0, 0, 2**60, None, None), Seen("orders", 0, 1, -1, None, None)]
    assert [time for _, time in parse(write("orders", 1, far, start_ms=0, times="absolute")).records] == [2**60, None]
    with pytest.raises(ValueError, match="relative, absolute, none"):
        write("orders", 1, [], start_ms=0, times="local")


@given(DATA)
def test_bytes_come_back(data):
    text = written(data)
    assert read_back(text) == data
    assert text.splitlines() == [text]


@given(RECORDS, st.sampled_from(["relative", "absolute", "none"]))
def test_records_come_back(records, times):
    parsed = parse(write("t", 3, records, start_ms=START, times=times), start_ms=START)
    assert [(one.partition, one.offset, one.key, one.value, one.headers) for one, _ in parsed.records] == [
        (one.partition, one.offset, one.key, one.value, one.headers) for one in records
    ]
    expected = [None if times == "none" else one.timestamp_ms for one in records]
    assert [time for _, time in parsed.records] == expected


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("horolog snapshot 1", "horolog snapshot 9"), "line 1: expected 'horolog snapshot 1'"),
        (("partitions: 2\n", ""), "the head has no line 'partitions'"),
        (("partitions: 2", "partitions: two"), "is not a number"),
        (("times: since the start", "times: later"), "is not one of"),
        (("topic: orders", "subject: orders"), "line 2: 'subject: orders' is not a line of the head"),
        (("[1/0]", "[2/0]"), "line 13: the topic has 2 partitions, numbered from 0"),
        (("[1/0]", "[1]"), "line 13: .* does not begin a record"),
        (("-90.250s", "yesterday"), "line 13: "),
        (("key: alice", "keys: alice"), "line 7: 'keys: alice' does not belong to a record"),
        (("base64:/wE=", "base64:?"), "line 15: "),
        (('{"id": 1}', '"open'), "line 9: "),
        (("header trace", "header null"), "line 8: the name of a header is null"),
        (("key: alice", 'key: "a" 1'), "line 7: "),
    ],
)
def test_what_is_no_snapshot_is_refused(change, message):
    with pytest.raises(SnapshotError, match=re.compile(message)):
        parse(TEXT.replace(*change))


def test_an_empty_file_is_none():
    with pytest.raises(SnapshotError, match="line 1"):
        parse("")
