"""Fetch requests, and what their answers say of each partition."""

import pytest

from horolog.client.values.errors import KafkaError, MalformedAnswer
from horolog.client.values.types import TopicPartition
from horolog.client.wire.fetch import RawFetch, build_fetch, isolation_level, split_answer
from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.fetch import AbortedTransaction, FetchableTopicResponse, FetchResponse, PartitionData
from tests.support.fake_peer import Scripted
from tests.support.scripted_client import Time, client_of

A, B, C = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)


@pytest.fixture
def time():
    return Time()


def fetched(error_code=0, partition=0, records=None, **more):
    data = PartitionData(partition_index=partition, error_code=error_code, high_watermark=0, records=records, **more)
    return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[data])])


def test_partitions_of_a_topic_are_asked_for_together():
    request = build_fetch(
        {A: 5, C: 7, B: 6}, partition_max_bytes=10, max_bytes=20, max_wait_ms=30, min_bytes=2, isolation=1
    )
    asked = {each.topic: [(one.partition, one.fetch_offset) for one in each.partitions] for each in request.topics}
    assert asked == {"t": [(0, 5), (1, 6)], "u": [(0, 7)]}
    assert {one.partition_max_bytes for each in request.topics for one in each.partitions} == {10}
    assert (request.max_bytes, request.max_wait_ms, request.min_bytes, request.isolation_level) == (20, 30, 2, 1)


def test_isolation_has_two_names():
    assert [isolation_level(name) for name in ("read_uncommitted", "read_committed")] == [0, 1]
    with pytest.raises(ValueError, match="isolation 'serializable': expected one of read_uncommitted, read_committed"):
        isolation_level("serializable")


def test_each_partition_has_its_records_or_its_error():
    aborted = [AbortedTransaction(producer_id=5, first_offset=6)]
    answer = fetched(records=[b"ab", memoryview(b"cd")], last_stable_offset=1, aborted_transactions=aborted)
    answer.responses += fetched(ErrorCode.OFFSET_OUT_OF_RANGE, partition=1).responses
    found = split_answer(answer, [A, B, C])
    assert found[A] == RawFetch(0, 1, -1, [(5, 6)], memoryview(b"abcd"))
    assert found[B].code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert str(found[B]).endswith(f"t-1: {ErrorCode.OFFSET_OUT_OF_RANGE.message}")
    assert C not in found


def test_records_that_nobody_asked_for_are_a_broken_answer():
    with pytest.raises(MalformedAnswer, match="records of t-0, which was not requested"):
        split_answer(fetched(), [B])


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (fetched(), None),
        (fetched(ErrorCode.OFFSET_OUT_OF_RANGE), ErrorCode.OFFSET_OUT_OF_RANGE),
        (fetched(partition=5), ErrorCode.CORRUPT_MESSAGE),  # which nobody asked for
        (FetchResponse(), ErrorCode.UNKNOWN_SERVER_ERROR),  # nothing about what was asked
        (FetchResponse(error_code=int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)), ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    ],
)
async def test_raw_fetches(time, answer, expected):
    broker = Scripted()
    broker.scripts[ApiKey.FETCH] = lambda _: answer
    async with broker.serving() as address, client_of(address, time) as client:
        if expected is None:
            assert (await client.fetch_raw(A, 3)).high_watermark == 0
            return
        with pytest.raises(KafkaError) as caught:
            await client.fetch_raw(A, 3)
        assert caught.value.code == expected


async def test_a_fetch_waits_as_long_as_it_says_on_a_connection_of_its_own(time):
    asked = []
    broker = Scripted()
    broker.scripts[ApiKey.FETCH] = lambda request: asked.append(request) or fetched(records=b"x")
    async with broker.serving() as address, client_of(address, time) as client:
        found = await client.fetch_raw(A, 3, 100, "read_committed", max_wait_ms=40, min_bytes=7)
        assert broker.count(ApiKey.API_VERSIONS) == 2
    assert bytes(found.records) == b"x"
    (one,) = asked[0].topics[0].partitions
    assert (one.fetch_offset, one.partition_max_bytes) == (3, 100)
    assert (asked[0].isolation_level, asked[0].max_wait_ms, asked[0].min_bytes) == (1, 40, 7)
