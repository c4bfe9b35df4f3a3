"""Offsets at times: each partition's leader is asked, and failures of some partitions do not hide the others."""

import re

import pytest

from horolog.client.values.errors import KafkaError, PartialFailure, UnsupportedVersion
from horolog.client.values.types import EARLIEST, LATEST, Found, TopicPartition
from horolog.client.wire.offsets import LARGEST_TIMESTAMP, ends, list_offsets
from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode
from tests.support.fake_peer import Scripted
from tests.support.scripted_client import Time, client_of, in_turn, offsets

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


class Place:
    """A broker with two partitions, and a client of it."""

    def __init__(self):
        self.broker = Scripted(partitions=2)
        self.time = Time()

    async def ask(self, times, script=None, **options):
        if script is not None:
            self.broker.scripts[ApiKey.LIST_OFFSETS] = script
        async with self.broker.serving() as address, client_of(address, self.time) as client:
            return await list_offsets(client, times, **options)


@pytest.fixture
def place():
    return Place()


def both(one, other):
    answer = one
    answer.topics += other.topics
    return answer


async def test_partitions_are_asked_for_in_one_request(place):
    asked = []

    def script(request):
        asked.append(request)
        return both(offsets(5), offsets(-1, partition=1))

    assert await place.ask({A: 10, B: 20}, script, isolation=1) == {A: Found(5, 7), B: None}
    assert [(each.partition_index, each.timestamp) for each in asked[0].topics[0].partitions] == [(0, 10), (1, 20)]
    assert asked[0].isolation_level == 1


async def test_only_what_failed_is_asked_again(place):
    asked = []

    def script(request):
        asked.append([each.partition_index for each in request.topics[0].partitions])
        if len(asked) == 1:
            return both(offsets(5), offsets(-1, ErrorCode.NOT_LEADER_OR_FOLLOWER, partition=1))
        return offsets(6, partition=1)

    assert await place.ask({A: 10, B: 20}, script) == {A: Found(5, 7), B: Found(6, 7)}
    assert asked == [[0, 1], [1]]


async def test_a_failure_that_stays_does_not_hide_what_was_found(place):
    with pytest.raises(PartialFailure) as caught:
        await place.ask(
            {A: 10, B: 20}, lambda _: both(offsets(5), offsets(-1, ErrorCode.TOPIC_AUTHORIZATION_FAILED, partition=1))
        )
    assert caught.value.results == {A: Found(5, 7)}
    assert caught.value.failures[B].message == "not authorized for topic 't'"
    assert place.time.pauses_ms == []


async def test_a_failure_that_lasts_names_its_partition_too(place):
    with pytest.raises(PartialFailure, match="t-1: "):
        await place.ask(
            {A: 10, B: 20}, lambda _: both(offsets(5), offsets(-1, ErrorCode.LEADER_NOT_AVAILABLE, partition=1))
        )
    assert sum(place.time.pauses_ms) >= 5000


async def test_a_leader_that_goes_on_refusing_is_named(place):
    with pytest.raises(KafkaError) as caught:
        await place.ask({A: 10}, lambda _: offsets(-1, ErrorCode.NOT_LEADER_OR_FOLLOWER))
    assert re.match(r"NOT_LEADER_OR_FOLLOWER: t-0: 127\.0\.0\.1:\d+ leads it and refuses: ", str(caught.value))
    assert sum(place.time.pauses_ms) >= 5000


async def test_a_partition_that_is_not_there(place):
    with pytest.raises(KafkaError, match="there is no partition t-7"):
        await place.ask({TopicPartition("t", 7): 1})


async def test_one_that_the_answer_leaves_out_has_failed(place):
    with pytest.raises(KafkaError, match="the broker's answer leaves t-0 out"):
        await place.ask({A: 10}, lambda _: offsets(5, partition=1))


async def test_records_of_old_formats_have_no_times(place):
    with pytest.raises(UnsupportedVersion, match="t-0: the format of its records has no times"):
        await place.ask({A: 10}, lambda _: offsets(-1, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT))


async def test_what_could_not_be_asked_at_all_is_raised(place):
    place.broker.versions[ApiKey.LIST_OFFSETS] = (0, 6)
    with pytest.raises(UnsupportedVersion, match="ListOffsets"):
        await place.ask({A: LARGEST_TIMESTAMP})
    place.broker.versions[ApiKey.LIST_OFFSETS] = (0, 0)
    with pytest.raises(UnsupportedVersion, match="ListOffsets"):
        await place.ask({A: 10})


async def test_the_oldest_brokers_give_offsets_without_times(place):
    place.broker.versions[ApiKey.LIST_OFFSETS] = (0, 0)
    script = in_turn(offsets(-1, old_style_offsets=[9], timestamp=-1))
    assert await place.ask({A: LATEST}, script, isolation=1) == {A: Found(9, -1)}


async def test_ends_are_plain_offsets(place):
    place.broker.scripts[ApiKey.LIST_OFFSETS] = in_turn(offsets(5, timestamp=-1), offsets(-1))
    async with place.broker.serving() as address, client_of(address, place.time) as client:
        assert await ends(client, {A: LATEST}) == {A: 5}
        assert await ends(client, {A: EARLIEST}) == {A: 0}
