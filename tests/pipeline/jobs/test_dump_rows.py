"""Facts about a dump before it is read, and its rows in the order of their times, piece after piece."""

import asyncio
import datetime as dt
import time
from dataclasses import replace

import pyarrow as pa
import pytest

from horolog.client.wire.client import Client
from horolog.pipeline.jobs import dump_rows
from horolog.pipeline.jobs.dump_files import SparkRows, WholeRows
from horolog.pipeline.jobs.dump_pieces import GRAINS, RowsPiece
from horolog.pipeline.jobs.dump_rows import PiecedRows, look, rows_of_pieces, size_of, with_grains
from horolog.pipeline.jobs.lanes import Lanes, begin, end_sum, noted_of
from horolog.pipeline.jobs.topic_rules import Counts, rules_at
from tests.pipeline.spark_here import Frame
from tests.support.names import unique

NOW_MS = time.time_ns() // 1_000_000
FIRST_MS = NOW_MS - 100_000
COUNT = 40


def at(n):
    return dt.datetime.fromtimestamp((FIRST_MS + n * 1000) / 1000, dt.UTC)


def micros(n):
    return (FIRST_MS + n * 1000) * 1000


@pytest.fixture
def dump(spark, tmp_path):
    """Two files that overlap in time."""
    rows = spark.createDataFrame(
        [(f"k{n}".encode(), b"v" * n, at(n)) for n in range(COUNT)], "key binary, value binary, timestamp timestamp"
    )
    rows.where("key in ('k0', 'k1', 'k39')").coalesce(1).write.parquet(str(tmp_path / "dump"))
    rows.where("key not in ('k0', 'k1', 'k39')").coalesce(1).write.mode("append").parquet(str(tmp_path / "dump"))
    return SparkRows(spark.read.parquet(str(tmp_path / "dump")))


def times(rows):
    from pyspark.sql import functions as f

    return rows.times("timestamp", f.col("timestamp"))


@pytest.fixture
def target(produce, session_broker):
    topic = unique("dumped")
    produce(topic, [])
    lanes = Lanes.of("bootstrap", (topic,), session_broker.address, topic, 1)
    ask(lanes, lambda client: begin(client, lanes, range(1), {"rows": COUNT}))
    return lanes, asyncio.run(rules_at(session_broker.address, topic))


def ask(lanes, question):
    async def asked():
        async with Client(lanes.bootstrap) as client:
            return await question(client)

    return asyncio.run(asked())


def test_a_look_tells_counts_times_and_what_the_topic_would_drop(dump, target):
    rules = replace(target[1], retention_ms=NOW_MS - FIRST_MS - 9_500)
    looked = look(times(dump), rules, NOW_MS)
    assert (looked.counts.records, looked.counts.expired, looked.missing) == (COUNT, 10, 0)
    assert (looked.counts.first_ms, looked.counts.last_ms) == (FIRST_MS, FIRST_MS + 39_000)
    small, large = sorted(looked.units, key=lambda one: one.rows)
    assert (small.rows, small.first_us, small.last_us) == (3, micros(0), micros(39))
    assert (large.rows, large.first_us, large.last_us) == (37, micros(2), micros(38))
    assert look(times(dump), rules, NOW_MS + 5).fingerprint == looked.fingerprint


def test_a_sample_tells_how_the_rows_of_a_file_lie_in_time(dump, target, monkeypatch):
    units = look(times(dump), target[1], NOW_MS).units
    monkeypatch.setattr("horolog.pipeline.jobs.dump_rows.SAMPLE_SHARE", 1.0)
    small, large = sorted(with_grains(times(dump), units), key=lambda one: one.rows)
    assert set(small.grains) == {micros(0), micros(1), micros(39)}
    assert (len(large.grains), large.grains[-1], list(large.grains)) == (GRAINS, micros(38), sorted(large.grains))
    monkeypatch.setattr("horolog.pipeline.jobs.dump_rows.SAMPLE_SHARE", 0.0)
    assert with_grains(times(dump), units) == units


def test_rows_without_a_time_are_counted_and_a_dump_without_rows_has_no_units(spark, dump, target):
    none = SparkRows(dump.all.where("key = 'nobody'"))
    assert look(times(none), target[1], NOW_MS)[:3] == ([], Counts(), 0)
    untimed = dump.all.selectExpr("key", "value", "if(key < 'k2', null, timestamp) as timestamp")
    assert look(times(WholeRows(untimed)), target[1], NOW_MS).missing == 12


def test_a_change_of_any_row_changes_the_fingerprint_of_rows_that_do_not_tell_their_file(dump, target):
    def fingerprint(value):
        return look(times(WholeRows(dump.all.selectExpr("key", f"{value} as value", "timestamp"))), target[1], 0)[3]

    assert fingerprint("value") == fingerprint("value")
    assert fingerprint("value") != fingerprint("if(key = 'k7', binary('x'), value)")


def test_the_size_is_exact_if_the_topic_bounds_it(dump, target, monkeypatch):
    exact = sum(range(COUNT)) + sum(len(f"k{n}") for n in range(COUNT)) + 12 * COUNT
    assert size_of(dump.all, COUNT, target[1]) == exact
    monkeypatch.setattr("horolog.pipeline.jobs.dump_rows.SAMPLE_ROWS", 2)
    assert size_of(dump.all, COUNT, target[1]) != exact
    assert size_of(dump.all, COUNT, replace(target[1], retention_bytes=10**9)) == exact


PIECES = [
    RowsPiece(None, micros(2)),
    RowsPiece(micros(2), micros(20)),
    RowsPiece(micros(20), micros(39)),
    RowsPiece(micros(39), None),
]


def test_the_rows_of_pieces_are_counted(dump):
    assert rows_of_pieces(times(dump), PIECES) == [2, 18, 19, 1]
    assert rows_of_pieces(times(dump), PIECES[:1]) == [COUNT]


def test_a_piece_is_sent_before_the_next_one_is_read(dump, target):
    lanes, _ = target
    seen = []

    def read(piece):
        seen.append(ask(lanes, lambda client: end_sum(client, lanes.topic)))
        return dump.all

    rows = PiecedRows(read, PIECES, 0, Counts(COUNT))
    sent = rows.in_tasks(lanes, range(1)).collect()
    assert [each.records for each in sent] == [2, 18, 19, 1]
    assert seen == [0, 2, 20, 39]
    assert asyncio.run(noted_of(lanes, range(1)))[0][:2] == (COUNT, COUNT)
    assert rows.counts(None, 0, exactly=True) == Counts(COUNT)
    again = PiecedRows(read, PIECES[2:], 20, Counts())
    repeated = [each.records for each in again.in_tasks(lanes, range(1)).collect()]
    assert repeated == [0, 0], "rows that were noted are skipped"


def test_rows_are_the_same_in_this_process(dump):
    ((lane, rows),) = PiecedRows(lambda _: dump.all, PIECES[1:], 2, Counts()).here(range(1))
    found = list(rows)
    assert (lane, [row.position for row in found]) == (0, list(range(2, COUNT)))
    assert [(bytes(row.key), row.timestamp_ms) for row in found] == [
        (b"k%d" % n, FIRST_MS + n * 1000) for n in range(2, COUNT)
    ]


class Times(Frame):
    """Times in microseconds, as Spark gives them to a task."""

    def __init__(self, *micros):
        super().__init__(
            [pa.RecordBatch.from_pydict({"t": list(micros[:2])}), pa.RecordBatch.from_pydict({"t": list(micros[2:])})]
        )

    def select(self, *_):
        return self


def test_a_task_counts_the_rows_of_each_piece(spark):
    pieces = [RowsPiece(None, 10), RowsPiece(10, 20), RowsPiece(20, None)]
    assert rows_of_pieces(Times(1, 10, 19, 20, 99), pieces) == [1, 2, 2]
    assert rows_of_pieces(Times(5, 6, 7), [RowsPiece()]) == [3]


class Sorted:
    """The rows of a piece, in order."""

    def __init__(self, *members):
        self.members = members

    def mapInArrow(self, function, schema):
        columns = [list(column) for column in zip(*self.members, strict=True)] or [[], [], []]
        names = ["key", "value", "timestamp_ms"]
        return Frame(function(iter([pa.RecordBatch.from_pydict(dict(zip(names, columns, strict=True)))])))

    def toLocalIterator(self):
        return iter(self.members)


def test_a_piece_begins_where_the_one_before_it_has_ended(monkeypatch):
    members = {"first": [(b"a", b"1", 5), (None, b"2", 6)], "second": [(b"b", None, 7)]}
    taken = []

    def send(lanes, lane, rows):
        found = list(rows)
        taken.extend((row.position, row.key, row.value, row.timestamp_ms) for row in found)
        return pa.RecordBatch.from_pylist([{"lane": lane, "records": len(found), "size_bytes": 1, "last_ms": 7}])

    monkeypatch.setattr(dump_rows, "sent_batch", send)
    monkeypatch.setattr(PiecedRows, "in_order", lambda self, piece: Sorted(*members[piece]))
    rows = PiecedRows(None, ["first", "second"], 40, Counts(3))
    sent = rows.in_tasks("lanes", [0]).collect()
    assert [(one.lane, one.records) for one in sent] == [(0, 2), (0, 1)]
    assert taken == [(40, b"a", b"1", 5), (41, None, b"2", 6), (42, b"b", None, 7)]
    ((lane, here),) = rows.here([0])
    assert (lane, [(row.position, row.value) for row in here]) == (0, [(40, b"1"), (41, b"2"), (42, None)])
    assert rows.counts(None, 0, exactly=True) == Counts(3)
