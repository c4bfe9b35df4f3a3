"""One small fetch shows how large records are at a position, and which times come next."""

import asyncio
from types import SimpleNamespace

import pytest

from horolog.client.values.errors import ConnectionFailed
from horolog.client.values.types import TopicPartition
from horolog.pipeline.reading.sampling import Sample, samples
from horolog.protocol.records.batch import encode_batch
from horolog.protocol.records.head import heads_in
from horolog.protocol.records.record import Record

PLACE = TopicPartition("t", 0)


def batch(first, *times, gap=1):
    return bytes(encode_batch([Record(first + gap * n, ms, 0, None, b"v" * 10, ()) for n, ms in enumerate(times)]))


class FakeClient:
    def __init__(self, answers):
        self.answers = answers

    async def fetch_raw(self, partition, position, size, isolation, max_wait_ms):
        answer = self.answers[partition]
        if isinstance(answer, Exception):
            raise answer
        return SimpleNamespace(records=answer)


def sampled(data, position=0):
    return asyncio.run(samples(FakeClient({PLACE: data}), {PLACE: position}, "read_committed")).get(PLACE)


def test_sizes_and_times_are_of_the_records_behind_the_position():
    data = batch(0, 500, 100) + batch(2, 300, 400)
    found = sampled(data, 1)
    assert (found.first_time_ms, found.earliest_ms) == (100, 100)
    assert found.bytes_per_offset == pytest.approx(len(data) / 4)
    found = sampled(data, 2)
    assert (len(found.heads), found.first_time_ms) == (1, 300)


def test_a_record_of_the_future_in_front_does_not_count_for_all():
    found = sampled(batch(0, 9_000_000) + batch(1, 100, 200))
    assert (found.first_time_ms, found.earliest_ms) == (9_000_000, 200)


def test_records_without_times_have_none():
    found = sampled(batch(0, -1, -1))
    assert (found.first_time_ms, found.earliest_ms) == (None, None)


def test_offsets_that_compaction_has_emptied_count():
    data = batch(0, 100, 200, gap=50)
    assert sampled(data).bytes_per_offset == pytest.approx(len(data) / 51)


@pytest.mark.parametrize("answer", [b"", batch(0, 100), ConnectionFailed("reset")])
def test_where_nothing_comes_there_is_no_sample(answer):
    assert sampled(answer, 5) is None


def test_a_batch_of_a_stream_ends_before_a_time():
    heads = tuple(heads_in(batch(0, 100) + batch(1, 200, 300) + batch(3, 400)))
    sample = Sample(0, heads, 100)
    assert [sample.end_before(ms) for ms in (50, 100, 250, 350, 400, 500)] == [1, 1, 1, 3, 3, 4]
    assert Sample(2, heads[1:], 300).end_before(0) == 3
    assert Sample(7, heads[:1], None).end_before(0) == 8
