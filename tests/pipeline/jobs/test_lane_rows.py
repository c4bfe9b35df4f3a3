"""Rows in lanes: what tasks read of segment files and of tables, count and send, without Spark."""

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from horolog.pipeline import plan
from horolog.pipeline.jobs import lane_rows
from horolog.pipeline.jobs.lane_rows import (
    FileTables,
    ReadRows,
    SegmentTables,
    SortedRows,
    Stretch,
    counted,
    look_at_files,
    unsent,
)
from horolog.pipeline.jobs.lanes import Row
from horolog.pipeline.jobs.merging import Times
from horolog.pipeline.jobs.topic_rules import OVERHEAD_BYTES, Counts, TopicRules
from horolog.pipeline.reading.offline import Piece
from horolog.pipeline.stores.store import LocalStore
from horolog.protocol.records.timestamps import NO_TIMESTAMP
from tests.pipeline import samples
from tests.pipeline.reading.test_offline import log_of
from tests.pipeline.spark_here import Here
from tests.pipeline.tables.test_row_files import DAY_US, FIRST_DAY, rows, written

LONGEST = 2**63 - 1
NOW_MS = samples.BASE_MS + 10_000


def rules(retention_ms=-1, before_ms=LONGEST, after_ms=LONGEST, *, size=-1, append_time=False):
    return TopicRules(retention_ms, size, before_ms, after_ms, append_time, deletes=True, partitions=1)


@pytest.fixture(scope="module")
def segments(tmp_path_factory):
    """A record a second in two segments of 200."""
    folder, _ = log_of(tmp_path_factory.mktemp("lane"), segments=2)
    pieces = [piece for part in plan(str(folder)).parts for piece in part]
    return SegmentTables({0: pieces, 3: []}, Times(), samples.BASE_MS + 399_000)


@pytest.fixture
def files(tmp_path):
    """Six rows of one partition in two files."""
    store = LocalStore(tmp_path)
    names = [
        written(store, rows(FIRST_DAY, FIRST_DAY, FIRST_DAY))[0].name,
        written(store, rows(*[FIRST_DAY] * 3, offset=pa.array([3, 4, 5], pa.int64())))[0].name,
    ]
    groups = look_at_files(Here(), [(store, names)], Times(), "t")
    return FileTables([store], {0: groups}, Times())


def table(times_ms, **columns):
    micros = pa.array([1000 * ms for ms in times_ms], pa.timestamp("us", tz="UTC"))
    return pa.table({"timestamp": micros, **columns})


def test_rows_are_counted_by_what_a_topic_would_do_with_them():
    times = [NOW_MS, NOW_MS - 100, NOW_MS + 100, NO_TIMESTAMP]
    found = counted(table(times, key=[b"k", None, None, None], value=[b"vv"] * 4), rules(50, 50, 50), NOW_MS)
    assert found == Counts(4, 9 + 4 * OVERHEAD_BYTES, NOW_MS - 100, NOW_MS + 100, 1, 1, 1)
    bare = counted(table(times), rules(50, 50, 50, append_time=True), NOW_MS)
    assert bare == Counts(4, 4 * OVERHEAD_BYTES, NOW_MS - 100, NOW_MS + 100, 0, 0, 0)
    assert counted(table([NO_TIMESTAMP]), rules(), NOW_MS) == Counts(1, OVERHEAD_BYTES, None, None)
    assert counted(table([]), rules(), NOW_MS) == Counts()


def positions(reading):
    return [row.position for row in reading]


def test_a_lane_of_segment_files_is_read_from_where_it_was_sent(segments):
    read = ReadRows(Here(), segments, keeps_partitions=True)
    lanes = {lane: list(members) for lane, members in read.here([0, 3])}
    assert (positions(lanes[0]), lanes[3]) == (list(range(400)), [])
    assert (lanes[0][7].partition, lanes[0][7].timestamp_ms) == (0, samples.BASE_MS + 7000)
    left = segments.unsent({0: 250})
    assert len(left.pieces[0]) == 1
    ((_, members),) = ReadRows(Here(), left, keeps_partitions=False).here([0])
    rest = list(members)
    assert (positions(rest), rest[0].partition) == (list(range(250, 400)), None)


def test_files_that_end_before_a_position_are_not_opened():
    def piece(name, first, end):
        return Piece(("t", 0), f"/t-0/{name:020}.log", 0, 9, first, end)

    pieces = [piece(0, 0, 10), piece(10, 10, 20), piece(20, 20, 30)]
    assert [one.first_offset for one in unsent(pieces, 15)] == [15, 20]
    assert unsent(pieces, 30) == []
    assert unsent(pieces, 0) == pieces


def test_rows_are_looked_at_only_if_their_bounds_do_not_tell(segments):
    read = ReadRows(Here(), segments, keeps_partitions=True)
    known = read.counts(rules(), NOW_MS, exactly=False)
    assert (known.records, known.first_ms, known.last_ms) == (400, None, samples.BASE_MS + 399_000)
    exact = read.counts(rules(9_000), NOW_MS, exactly=False)
    assert (exact.records, exact.first_ms, exact.expired) == (400, samples.BASE_MS, 1)
    assert exact.size_bytes >= known.size_bytes
    assert read.counts(rules(), NOW_MS, exactly=True).records == 400
    later = SegmentTables(segments.pieces, Times(since_ms=samples.BASE_MS + 10**9), segments.latest_ms)
    assert ReadRows(Here(), later, keeps_partitions=True).counts(rules(), NOW_MS, exactly=True) == Counts()
    nothing = SegmentTables({0: []}, Times(), -1)
    assert ReadRows(Here(), nothing, keeps_partitions=True).counts(rules(), NOW_MS, exactly=True) == Counts()


def test_each_task_sends_a_lane(segments, monkeypatch):
    sent = {}

    def send(lanes, lane, members):
        sent[lane] = len(list(members))
        return pa.RecordBatch.from_pylist([{"lane": lane, "records": sent[lane]}])

    monkeypatch.setattr(lane_rows, "sent_batch", send)
    assert ReadRows(Here(), segments, keeps_partitions=True).in_tasks("lanes", [0, 3]).collect() == [(0, 400), (3, 0)]
    assert sent == {0: 400, 3: 0}


class Ordered:
    """A data frame that Spark has put in order."""

    def __init__(self, *members):
        self.members = members

    def mapInArrow(self, function, schema):
        return list(function(iter(self.members))), schema

    def toLocalIterator(self, **_):
        return iter(self.members)


def test_rows_that_spark_has_sorted_are_sent_as_they_come(monkeypatch):
    members = [Row(lane, position, None, b"v", None, None, 0) for lane, position in ((0, 1), (0, 2), (1, 5))]
    found = SortedRows(Ordered(*map(tuple, members)), lambda rules, now_ms, exactly: (rules, now_ms, exactly))
    assert {lane: positions(some) for lane, some in found.here([0, 1])} == {0: [1, 2], 1: [5]}
    assert found.counts("rules", 7, exactly=True) == ("rules", 7, True)
    assert SortedRows(None).counts(None, 0, exactly=False) == Counts()
    monkeypatch.setattr(lane_rows.headers, "without_nulls", lambda frame: frame)
    monkeypatch.setattr(lane_rows, "send_batches", lambda lanes, batches: (lanes, *batches))
    sending, _ = found.in_tasks("lanes", [0])
    assert sending == ["lanes", *map(tuple, members)]


def test_groups_of_a_table_are_read_in_order_from_a_position(files):
    assert [offset for rows in files.of_lane(0) for offset in rows["offset"].to_pylist()] == list(range(6))
    left = files.unsent({0: 4})
    assert [offset for rows in left.of_lane(0) for offset in rows["offset"].to_pylist()] == [4, 5]
    assert list(files.of_lane(9)) == []
    assert (files.end(0), files.end(9)) == (6, 0)
    known = files.known
    assert (known.records, known.first_ms) == (6, DAY_US * FIRST_DAY // 1000)
    assert FileTables([], {}, Times()).known == Counts()
    counts = ReadRows(Here(), files, keeps_partitions=True).counts(rules(), NOW_MS, exactly=True)
    assert counts.records == 6


def test_only_groups_that_lie_in_a_stretch_partly_are_read(files):
    stretches = [Stretch(0, 0, 3), Stretch(0, 1, 5), Stretch(0, 9, 12), Stretch(7, 0, 9)]
    assert files.rows_in(Here(), stretches) == [3, 4, 0, 0]
    assert files.rows_in(None, stretches[:1]) == [3]


def test_no_files_have_no_groups():
    assert look_at_files(None, [(None, [])], Times(), None) == []
