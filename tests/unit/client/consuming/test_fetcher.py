"""Records are fetched ahead of the consumer, one fetch to each leader; faults are retried, or raised by the poll."""

import asyncio

import pytest

from horolog.client.consuming.fetcher import SHORT_WAIT_MS, Fetcher, FetchOptions
from horolog.client.consuming.positions import Positions
from horolog.client.values.errors import ConnectionFailed, KafkaError
from horolog.client.values.types import TopicPartition
from horolog.client.wire.client import Client
from horolog.client.wire.retry import RetryPolicy
from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from horolog.protocol.records.batch import encode_batch
from horolog.protocol.records.record import Record
from tests.support.fake_peer import HangUp, Scripted
from tests.support.waiting import until

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def batch(*offsets):
    return bytes(encode_batch([Record(offset, 7, 0, None, b"%d" % offset, ()) for offset in offsets]))


class Place:
    """A fetcher at a scripted broker; `logs` has the records of each partition by offset, `codes` their next errors."""

    def __init__(self, **options):
        self.broker = Scripted(partitions=2)
        self.broker.scripts[ApiKey.FETCH] = self.fetch
        self.logs = {0: range(10), 1: range(10)}
        self.codes = {}
        self.asked = []
        self.found = {A: 0, B: 0}
        self.lookups = []
        self.options = FetchOptions(**{"max_wait_ms": 30, "partition_max_bytes": 200, **options})
        self.positions = Positions(self.options.partition_max_bytes)

    async def find(self, partitions):
        self.lookups.append(list(partitions))
        return {each: self.found[each] for each in partitions}

    def fetch(self, request):
        self.asked.append(request)
        parts = []
        for each in request.topics[0].partitions:
            codes = self.codes.get(each.partition)
            code = codes.pop(0) if codes else 0
            if code is HangUp:
                raise HangUp
            log = self.logs[each.partition]
            records = batch(each.fetch_offset) if each.fetch_offset in log and not code else b""
            parts.append(
                PartitionData(
                    partition_index=each.partition,
                    error_code=int(code),
                    high_watermark=10,
                    last_stable_offset=9,
                    log_start_offset=1,
                    records=records,
                )
            )
        return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=parts)])

    async def __aenter__(self):
        self.serving = self.broker.serving()
        policy = RetryPolicy(1, 2, 20)
        self.client = Client(await self.serving.__aenter__(), retry=policy, request_timeout_ms=5000)
        self.fetcher = Fetcher(self.client, self.positions, self.options, self.find)
        return self

    async def __aexit__(self, *error):
        await self.fetcher.stop()
        await self.client.close()
        await self.serving.__aexit__(*error)

    def begin(self, *partitions):
        self.positions.assign(partitions)
        self.fetcher.start()
        self.fetcher.start()
        self.fetcher.wake()

    async def until(self, holds):
        await until(holds)

    async def take(self, count):
        """So many records, or the fault that came before."""
        taken = []
        async with asyncio.timeout(30):
            while len(taken) < count:
                self.fetcher.raise_fault()
                part = self.positions.take(count - len(taken))
                taken += part
                self.fetcher.wake()
                if not part:
                    await self.fetcher.arrived.wait()
                    self.fetcher.arrived.clear()
        return taken


async def test_records_of_all_partitions_come_in_their_order():
    async with Place() as place:
        place.begin(A, B)
        taken = await place.take(20)
        for partition in (0, 1):
            assert [each.offset for each in taken if each.partition == partition] == list(range(10))
        assert place.lookups == [[A, B]]
        state = place.positions.get(A)
        assert (state.high_watermark, state.last_stable_offset, state.log_start_offset) == (10, 9, 1)


async def test_a_request_says_what_the_options_say():
    async with Place(isolation="read_committed", min_bytes=3, max_bytes=999) as place:
        place.begin(A)
        await place.take(1)
        first = place.asked[0]
        assert (first.isolation_level, first.min_bytes, first.max_bytes, first.max_wait_ms) == (1, 3, 999, 30)
        assert first.topics[0].partitions[0].partition_max_bytes == 200


async def test_a_fetch_waits_less_while_records_are_there():
    async with Place() as place:
        place.begin(A, B)
        await place.fetcher.arrived.wait()
        place.fetcher.wake()
        await place.until(lambda: len(place.asked) >= 3)
        assert min(request.max_wait_ms for request in place.asked) == SHORT_WAIT_MS


async def test_fetching_ahead_has_a_bound():
    async with Place() as place:
        place.logs[0] = range(10**6)
        place.begin(A)
        await place.until(lambda: place.positions.get(A).buffered_bytes >= 200)
        asked = len(place.asked)
        for _ in range(5):
            place.fetcher.wake()
            await asyncio.sleep(0.001)
        assert len(place.asked) == asked
        await place.take(6)
        assert len(place.asked) > asked


@pytest.mark.parametrize("fault", [HangUp, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.REQUEST_TIMED_OUT])
async def test_what_may_pass_is_tried_again(fault):
    async with Place() as place:
        place.codes[0] = [fault]
        place.begin(A)
        assert [each.offset for each in await place.take(2)] == [0, 1]


async def test_what_does_not_pass_is_raised_once():
    async with Place() as place:
        place.codes[0] = [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
        place.begin(A)
        with pytest.raises(KafkaError, match="not authorized for topic 't'"):
            await place.take(1)
        place.fetcher.raise_fault()
        assert len(await place.take(1)) == 1


async def test_what_lasts_too_long_is_raised():
    async with Place() as place:
        place.codes[0] = [HangUp] * 1000
        place.begin(A)
        with pytest.raises(ConnectionFailed):
            await place.take(1)


async def test_one_partition_that_fails_does_not_keep_the_others():
    async with Place() as place:
        place.codes[0] = [ErrorCode.NOT_LEADER_OR_FOLLOWER]
        place.begin(A, B)
        assert {each.partition for each in await place.take(20)} == {0, 1}


async def test_an_offset_that_is_not_there_is_looked_up_anew():
    async with Place() as place:
        place.codes[0] = [ErrorCode.OFFSET_OUT_OF_RANGE]
        place.begin(A)
        place.found[A] = 4
        assert [each.offset for each in await place.take(1)] == [4]
        assert place.lookups == [[A], [A]]


async def test_a_position_that_cannot_be_found_is_raised_or_tried_again():
    async with Place() as place:
        faults = [KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, "no position"), ConnectionFailed("gone")]

        async def find(partitions):
            if faults:
                raise faults.pop()
            return dict.fromkeys(partitions, 5)

        place.fetcher._find_positions = find
        place.begin(A)
        with pytest.raises(KafkaError, match="no position"):
            await place.take(1)
        assert [each.offset for each in await place.take(1)] == [5]


async def test_records_of_a_position_that_was_left_are_dropped():
    async with Place() as place:
        right = place.broker.scripts[ApiKey.FETCH]

        def moved(request):
            if len(place.asked) == 0:
                place.positions.get(A).seek(7)
            return right(request)

        place.broker.scripts[ApiKey.FETCH] = moved
        place.begin(A)
        assert [each.offset for each in await place.take(2)] == [7, 8]


async def test_records_of_a_partition_that_was_taken_away_are_dropped():
    async with Place() as place:
        right = place.broker.scripts[ApiKey.FETCH]

        def revoked(request):
            place.positions.assign([B])
            return right(request)

        place.broker.scripts[ApiKey.FETCH] = revoked
        place.begin(A)
        assert {each.partition for each in await place.take(2)} == {1}


async def test_a_position_found_too_late_does_not_undo_a_seek():
    async with Place() as place:

        async def find(partitions):
            place.positions.get(A).seek(6)
            return dict.fromkeys(partitions, 0)

        place.fetcher._find_positions = find
        place.begin(A)
        assert [each.offset for each in await place.take(1)] == [6]


@pytest.mark.parametrize("largest", [1600, 400])
async def test_a_record_that_old_versions_cut_off_is_asked_for_with_more_room(largest):
    async with Place(largest_record_bytes=largest) as place:

        def cut(request):
            place.asked.append(request)
            (part,) = request.topics[0].partitions
            data = batch(part.fetch_offset)[: 20 if part.partition_max_bytes < 1600 else None]
            answer = PartitionData(partition_index=0, high_watermark=10, records=data)
            return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[answer])])

        place.broker.scripts[ApiKey.FETCH] = cut
        place.begin(A)
        if largest == 400:
            with pytest.raises(KafkaError, match="t-0 at offset 0: a record is larger than 400 bytes"):
                await place.take(1)
            return
        await place.take(1)
        limits = [request.topics[0].partitions[0].partition_max_bytes for request in place.asked]
        assert limits[:4] == [200, 400, 800, 1600]


async def test_a_partition_without_a_leader_does_not_keep_others_from_being_read():
    async with Place() as place:

        def metadata(request):
            answer = place.broker.metadata(request)
            answer.topics[0].partitions[0].leader_id = -1
            return answer

        place.broker.scripts[ApiKey.METADATA] = metadata
        place.begin(A, B)
        assert {each.partition for each in await place.take(10)} == {1}


async def test_the_end_takes_its_connection_along():
    async with Place() as place:
        place.begin(A)
        await place.take(1)
        lane = place.fetcher._lane
        assert place.client.channels.is_open(lane, *place.client.addresses[0])
        await place.fetcher.stop()
        assert not place.client.channels.is_open(lane, *place.client.addresses[0])
