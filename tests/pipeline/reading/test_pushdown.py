"""What filters leave of a read is never less than what passes them."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pyspark")
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
)

from horolog.client.values.types import TopicPartition
from horolog.pipeline.base.positions import OffsetRange
from horolog.pipeline.reading.pushdown import EVERYTHING, wanted_of

KINDS = {
    EqualTo: lambda a, b: a == b,
    EqualNullSafe: lambda a, b: a == b,
    GreaterThan: lambda a, b: a > b,
    GreaterThanOrEqual: lambda a, b: a >= b,
    LessThan: lambda a, b: a < b,
    LessThanOrEqual: lambda a, b: a <= b,
    In: lambda a, b: a in b,
}


class Logs:
    """Times of records by partition, answered as a broker would."""

    def __init__(self, times):
        self.times = {TopicPartition("t", n): each for n, each in enumerate(times)}
        self.asked = 0

    def ends(self, partitions, which):
        return {one: 0 if which == -2 else len(self.times[one]) for one in partitions}

    def at_times(self, times):
        self.asked += 1
        return {
            one: next((n for n, each in enumerate(self.times[one]) if each >= time), None)
            for one, time in times.items()
        }

    def ranges(self):
        return [OffsetRange(one, 0, len(each)) for one, each in self.times.items()]


def moment(ms):
    return datetime.fromtimestamp(ms / 1000, UTC)


def compared(column, values):
    def one(kind, several):
        value = tuple(several) if kind is In else several[0]
        return kind((column,), value)

    return st.builds(one, st.sampled_from(list(KINDS)), st.lists(values, min_size=1, max_size=3))


FILTERS = st.lists(
    st.one_of(
        compared("timestamp", st.integers(1, 60).map(moment)),
        compared("offset", st.integers(-3, 12)),
        compared("partition", st.integers(-1, 3)),
        compared("topic", st.sampled_from(["t", "other"])),
        compared("value", st.integers(0, 3)),
        st.just(IsNotNull(("timestamp",))),
    ),
    max_size=4,
)


def passes(filters, row):
    return all(KINDS[type(one)](row[one.attribute[0]], one.value) for one in filters if type(one) in KINDS)


@given(st.lists(st.lists(st.integers(0, 60), max_size=10), min_size=1, max_size=3), FILTERS, st.booleans())
def test_every_record_that_passes_is_in_what_is_left(times, filters, lateness_is_known):
    logs = Logs(times)
    lateness = 60 if lateness_is_known else None  # none comes later than that
    left = {one.partition: one for one in wanted_of(filters).ranges(logs, logs.ranges(), lateness)}
    for name, each in logs.times.items():
        for offset, time in enumerate(each):
            row = {"timestamp": moment(time), "offset": offset, "partition": name.partition, "topic": "t", "value": 1}
            if passes(filters, row):
                assert left[name].start <= offset < left[name].end


def test_what_cannot_pass_is_left_out():
    logs = Logs([range(0, 1000, 10), range(0, 1000, 10), []])
    between = [GreaterThanOrEqual(("timestamp",), moment(500)), LessThanOrEqual(("timestamp",), moment(590))]
    chosen = [In(("partition",), (0, 2)), LessThan(("offset",), 58)]
    assert wanted_of(between).ranges(logs, logs.ranges(), None)[0][1:] == (50, 100)
    assert wanted_of(between).ranges(logs, logs.ranges(), 0)[0][1:] == (50, 60)
    assert wanted_of(between).ranges(logs, logs.ranges(), 100)[0][1:] == (50, 70)
    assert [one[1:] for one in wanted_of(between + chosen).ranges(logs, logs.ranges(), 0)] == [(50, 58), (0, 0)]
    assert wanted_of([EqualTo(("topic",), "other")]).ranges(logs, logs.ranges(), 0) == []
    assert wanted_of([GreaterThan(("timestamp",), moment(5000))]).ranges(logs, logs.ranges(), 0)[0].size == 0
    logs.asked = 0
    assert wanted_of([EqualTo(("partition",), 1)]).ranges(logs, logs.ranges(), 0) == [logs.ranges()[1]]
    assert logs.asked == 0


@pytest.mark.parametrize(
    "other",
    [
        IsNotNull(("timestamp",)),
        EqualTo(("value",), b"x"),
        EqualTo(("timestamp", "second"), 4),
        EqualTo(("timestamp",), "no time"),
        GreaterThan(("offset",), "no number"),
        GreaterThan(("partition",), 1),
    ],
)
def test_what_is_not_understood_leaves_everything(other):
    assert wanted_of([other]) == EVERYTHING


def test_times_without_a_zone_are_of_this_machine():
    naive = datetime.fromtimestamp(100)  # noqa: DTZ006 - as Spark may give it
    assert wanted_of([EqualTo(("timestamp",), naive)]).times.low == 100_000
