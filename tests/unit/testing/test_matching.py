"""Which records an expectation is about, and the words of a failure."""

import pytest

from horolog.testing.matching import MOST_SHOWN, Conditions, ExpectedRecord, failure, table
from horolog.testing.reading import Seen

RECORD = Seen("t", 1, 7, 1_700_000_000_000, b"alice", b'{"id": 1, "to": {"city": "Ulm"}, "ok": true}', ((b"h", b"v"),))


@pytest.mark.parametrize(
    "wanted",
    [
        ExpectedRecord(),
        ExpectedRecord(key="alice"),
        ExpectedRecord(key=b"alice", partition=1),
        ExpectedRecord(value={"id": 1}),
        ExpectedRecord(value={"to": {"city": "Ulm"}, "ok": True}),
        ExpectedRecord(headers={"h": "v"}),
        ExpectedRecord(where=lambda record: record.offset == 7),
    ],
)
def test_a_record_that_matches(wanted):
    assert wanted.misses(RECORD) == []


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        (ExpectedRecord(key="bob"), "the key is alice, not bob"),
        (ExpectedRecord(key=None), "the key is alice, not null"),
        (ExpectedRecord(partition=0), "the partition is 1, not 0"),
        (ExpectedRecord(value={"id": 2}), "the value's id is 1, not 2"),
        (ExpectedRecord(value={"to": {"city": "Bonn"}}), 'the value\'s to.city is "Ulm", not Bonn'),
        (ExpectedRecord(value={"from": 1}), "the value's from is missing"),
        (ExpectedRecord(value={"ok": 1}), "the value's ok is true, not 1"),
        (ExpectedRecord(value=[1]), 'the value is {"id": 1'),
        (ExpectedRecord(key={"id": 1}), "the key is alice, which is not JSON"),
        (ExpectedRecord(headers={"h": b"w"}), "the header h is v, not w"),
        (ExpectedRecord(headers={"i": None}), "there is no header i"),
        (ExpectedRecord(where=lambda _: False), "`where` is false for it"),
    ],
)
def test_a_record_that_does_not(wanted, why):
    (said,) = wanted.misses(RECORD)
    assert said.startswith(why)


def test_nulls_and_transactions():
    tombstone = Seen("t", 0, 0, -1, b"k", None, transaction="open")
    assert ExpectedRecord(value=None).misses(tombstone) == []
    assert ExpectedRecord(value="x").misses(tombstone) == ["the value is null, not x"]
    assert ExpectedRecord(committed=True).misses(tombstone) == ["its transaction is open"]


def test_two_headers_of_one_name():
    record = RECORD._replace(headers=((b"h", b"a"), (b"h", b"b")))
    assert ExpectedRecord(headers={"h": "b"}).misses(record) == []
    assert ExpectedRecord(headers={"h": "c"}).misses(record) == ["the header h is a, not c"]


def test_the_words_of_a_failure():
    wanted = ExpectedRecord(key="bob", value={"id": 1}, headers={"h": "v"}, partition=1, where=bool, committed=True)
    assert wanted.told() == (
        ' in partition 1, with key bob, with value {"id": 1}, with header h=v, that are committed, that `where` accepts'
    )
    assert ExpectedRecord().told() == ""
    other = RECORD._replace(offset=8, key=b"\xff" * 300, headers=(), transaction="aborted")
    said = str(failure("t", "2 records expected", [RECORD, other], ExpectedRecord(key="alice"), [RECORD])).splitlines()
    assert said[0] == "t: 2 records expected"
    assert said[1].split() == ["time", "partition", "offset", "key", "value", "headers", "transaction"]
    assert said[2].split()[:5] == ["*", "2023-11-14T22:13:20.000+00:00", "1", "7", "alice"]
    assert said[4].startswith("nearest: t-1 at offset 8: the key is b'")
    assert "…" in said[3]
    assert "no records" in str(failure("t", "x", [], ExpectedRecord(), []))
    assert "null" in ExpectedRecord(key=None).told()
    assert ExpectedRecord(key=b"x").told() == " with key x"


def test_many_records_are_cut():
    records = [RECORD._replace(offset=number, timestamp_ms=-1) for number in range(MOST_SHOWN + 5)]
    lines = table(records)
    assert lines[0] == "(5 records before these)"
    assert len(lines) == MOST_SHOWN + 2


def test_a_test_names_the_conditions_by_their_fields():
    assert tuple(Conditions.__annotations__) == ExpectedRecord._fields
