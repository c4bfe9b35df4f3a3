"""How far a stream's next batch goes: shares by records and bytes, and a span of time, from samples of what waits."""

from hypothesis import given
from hypothesis import strategies as st

from horolog.client.values.types import TopicPartition
from horolog.pipeline.reading.batch_limits import before_horizon, horizon, limited
from horolog.pipeline.reading.sampling import Sample
from horolog.protocol.records.head import Head

SIZE = 100


def partitions(*offsets):
    return {TopicPartition("t", n): offset for n, offset in enumerate(offsets)}


def head(first, last, max_timestamp):
    return Head(0, SIZE * (last - first + 1), first, last, 2, 0, max_timestamp, -1, last - first + 1, -1)


def sample(position, times_ms, first_time_ms=None, batch=1):
    """Batches of so many records, each with the largest of its times."""
    heads = tuple(
        head(position + at, position + at + len(piece) - 1, max(piece))
        for at in range(0, len(times_ms), batch)
        if (piece := times_ms[at : at + batch])
    )
    return Sample(position, heads, times_ms[0] if first_time_ms is None else first_time_ms)


def test_a_limit_is_shared_by_what_waits():
    assert limited(partitions(0, 0), partitions(300, 100), 40) == partitions(30, 10)
    assert limited(partitions(0, 0), partitions(300, 100), 400) == partitions(300, 100)
    assert limited(partitions(0, 5), partitions(1000, 6), 10) == partitions(9, 6)
    assert limited(partitions(7, 5), partitions(7, 50), 10) == partitions(7, 15)


def test_a_limit_in_bytes_is_shared_by_bytes():
    weights = dict(zip(partitions(0, 0), (10.0, 30.0), strict=True))
    assert limited(partitions(0, 0), partitions(300, 100), 600, weights) == partitions(30, 10)
    del weights[TopicPartition("t", 1)]
    assert limited(partitions(0, 0), partitions(300, 100), 600, weights) == partitions(60, 100)


@given(st.lists(st.tuples(st.integers(0, 1000), st.floats(0.1, 1000)), min_size=1, max_size=5), st.integers(1, 10**6))
def test_every_batch_brings_the_stream_on(waiting, most):
    start, end = partitions(*[0] * len(waiting)), partitions(*(size for size, _ in waiting))
    weights = {one: weight for one, (_, weight) in zip(end, waiting, strict=True)}
    found = limited(start, end, most, weights)
    assert all(0 <= found[one] <= end[one] for one in end)
    assert found != start or end == start
    total = sum(size * weights[one] for one, size in found.items())
    assert total <= most + sum(weights.values())


def test_an_offset_counts_as_many_bytes_as_those_around_it():
    assert sample(7, [1, 2, 3]).bytes_per_offset == SIZE
    gap = Sample(7, (head(7, 7, 1), head(16, 16, 2)), 1)
    assert gap.bytes_per_offset == 2 * SIZE / 10
    wrapper = Head(0, 500, -1, 16, 1, 1, 5, -1, 1, -1)
    assert Sample(7, (wrapper,), 1).bytes_per_offset == 50


def test_the_horizon_is_a_span_after_the_earliest_that_comes_next():
    earliest = {TopicPartition("t", 0): sample(0, [70]), TopicPartition("t", 1): sample(0, [50])}
    assert horizon(earliest, 100) == 150
    assert horizon({TopicPartition("t", 0): Sample(0, (head(0, 0, -1),), None)}, 100) is None


def test_partitions_go_up_to_the_horizon_and_later_ones_wait():
    samples = dict(zip(partitions(0, 0, 0), (sample(0, [10]), sample(5, [900]), sample(0, [20])), strict=True))
    found = dict(zip(samples, (4, 2, None), strict=True))
    assert before_horizon(partitions(0, 5, 0), partitions(9, 9, 9), samples, found, 110) == partitions(4, 5, 9)


def test_what_is_behind_a_record_of_the_future_goes_by_the_sample():
    samples = {TopicPartition("t", 0): sample(5, [10, 20, 30, 400, 50])}
    found = {TopicPartition("t", 0): 2}
    assert before_horizon(partitions(5), partitions(9), samples, found, 110) == partitions(8)
    assert before_horizon(partitions(5), partitions(7), samples, found, 110) == partitions(7)


def test_a_record_of_the_future_in_front_keeps_nothing_back():
    one = TopicPartition("t", 0)
    samples = {one: sample(0, [5000, 10, 20, 400])}
    assert horizon(samples, 100) == 110
    assert before_horizon(partitions(0), partitions(4), samples, {one: 0}, 110) == partitions(3)


def test_records_without_a_time_are_not_limited_by_it():
    samples = {TopicPartition("t", 0): Sample(5, (head(5, 5, -1),), None)}
    assert before_horizon(partitions(5), partitions(9), samples, {TopicPartition("t", 0): 7}, 110) == partitions(9)


@given(st.lists(st.lists(st.integers(0, 50), min_size=1, max_size=20), min_size=1, max_size=3), st.integers(1, 60))
def test_a_stream_that_is_limited_in_time_comes_to_its_end(times, span):
    """However times are out of order: each batch goes on, and nothing of a partition in order is beyond the span."""
    start, end = partitions(*[0] * len(times)), partitions(*map(len, times))
    for _ in range(sum(map(len, times))):
        waiting = [one for one in end if end[one] > start[one]]
        if not waiting:
            break
        samples = {one: sample(start[one], times[one.partition][start[one] :]) for one in waiting}
        until = horizon(samples, span)
        found = {
            one: next((at for at, time in enumerate(times[one.partition]) if time >= until), None) for one in waiting
        }
        reached = before_horizon(start, end, samples, found, until)
        assert reached != start
        for one in waiting:
            taken = times[one.partition][start[one] : reached[one]]
            assert times[one.partition] != sorted(times[one.partition]) or all(time < until for time in taken)
        start = reached
    assert start == end
