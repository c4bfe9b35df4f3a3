"""One partition is read from an offset on: what its broker says at each step, scripted."""

import asyncio

import pytest

from horolog.base.clock import ManualClock
from horolog.client.moments.look_ahead import Ended, Search
from horolog.client.moments.strand import LARGEST_RECORD_BYTES, Strand
from horolog.client.values.errors import KafkaError
from horolog.client.values.types import TopicPartition
from horolog.client.wire.fetch import RawFetch
from horolog.protocol.errors import ErrorCode
from horolog.protocol.records.batch import encode_batch
from horolog.protocol.records.record import Record

HERE = TopicPartition("t", 0)


def batch(first, *times):
    return bytes(encode_batch([Record(first + n, time, 0, None, b"v") for n, time in enumerate(times)]))


def raw(data):
    return RawFetch(100, 100, 0, [], memoryview(data))


class ScriptedClient:
    """Answers fetches one after the other; an exception is raised. The partition begins at 3."""

    request_timeout_ms = 1000

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []
        self.clock = ManualClock()

    async def offsets_at(self, time_ms, partitions, isolation):
        return dict.fromkeys(partitions, 3)

    async def fetch_raw(self, partition, offset, max_bytes, isolation, *, max_wait_ms):
        self.asked.append((offset, max_bytes, max_wait_ms))
        self.clock.advance(max_wait_ms)
        answer = self.answers.pop(0) if self.answers else raw(b"")
        if isinstance(answer, Exception):
            raise answer
        return answer


def strand(client, start=0, end=10, times=(100, 200), late_end=None, most_bytes=None):
    search = Search(
        range_end=end if late_end is None else late_end,
        late_end=end if late_end is None else late_end,
        end=end,
        quiet_from_ms=times[1],
        most_bytes=most_bytes,
        proven=False,
    )
    return Strand(client, HERE, start, end, times, search, isolation="read_uncommitted", fetch_bytes=1000)


async def read_all(one, step=2):
    found = []
    while True:
        found += [(each.record.offset, each.late_ms) for each in await one.read(step)]
        if one.ended is not None:
            return found


async def test_it_gives_the_records_of_the_range_with_their_lateness():
    one = strand(ScriptedClient(raw(batch(0, 100, 90, 150, 250)), raw(batch(4, 199, 200, -1, 120, 300, 10))))
    assert await read_all(one) == [(0, 0), (2, 0), (4, 51), (7, 130)]
    assert (one.ended, one.position, one.without_time, one.reached_ms) == (Ended.AT_END, 10, 1, 10)
    assert repr(one) == "<Strand of t-0 at 10, to 10>"


async def test_what_lies_behind_the_end_that_was_seen_first_is_left_out():
    one = strand(ScriptedClient(raw(batch(0, 100, 110, 120))), end=2)
    assert await read_all(one, step=10) == [(0, 0), (1, 0)]


async def test_the_next_fetch_is_under_way_while_one_is_read_and_closing_ends_it():
    client = ScriptedClient(raw(batch(0, 100, 110)), raw(batch(2, 120)))
    one = strand(client)
    one.start()
    one.start()
    await one.read(1)
    await asyncio.sleep(0)
    assert [offset for offset, *_ in client.asked] == [0, 2]
    await one.close()
    await one.close()


async def test_bytes_behind_the_range_are_bounded():
    client = ScriptedClient(*(raw(batch(n, 300)) for n in range(10)))
    one = strand(client, late_end=2, most_bytes=100)
    assert await read_all(one) == []
    assert one.ended == Ended.BYTES
    assert one.position == 4


class WholeLog(ScriptedClient):
    """A record at each offset, with these times."""

    def __init__(self, times):
        super().__init__()
        self.times = times

    async def offsets_at(self, time_ms, partitions, isolation):
        return dict.fromkeys(partitions, 3)

    async def fetch_raw(self, partition, offset, max_bytes, isolation, *, max_wait_ms):
        self.asked.append((offset, max_bytes, max_wait_ms))
        return raw(batch(offset, *self.times[offset : offset + 3]))


async def test_what_a_record_of_the_future_hides_is_looked_for_by_halving():
    minute = 60_000
    times = [10**12, *range(0, 1000 * minute, minute // 2), -1, *range(1000 * minute, 1100 * minute, minute // 2)]
    client = WholeLog(times)
    borders = 1050 * minute, 1051 * minute
    one = strand(client, end=len(times), times=borders, late_end=0, most_bytes=200)
    assert [times[offset] for offset, _ in await read_all(one)] == [borders[0], borders[0] + minute // 2]
    start, end = one.passed_over
    assert start < 20
    assert borders[0] - 2 * minute <= times[end] < borders[0]
    assert len(client.asked) < 40
    assert one.ended == Ended.BYTES


async def test_it_waits_for_what_a_new_leader_does_not_show_yet_but_not_for_ever():
    client = ScriptedClient(raw(b""), raw(b""), raw(batch(0, 100)))
    assert await read_all(strand(client, end=1)) == [(0, 0)]
    assert [wait for *_, wait in client.asked] == [0, 500, 500]
    with pytest.raises(KafkaError, match=r"t-0 gives no records from offset 0 on, though it ended at 1"):
        await read_all(strand(ScriptedClient(), end=1))


async def test_a_record_that_is_cut_off_is_asked_for_again_with_more_room():
    whole = batch(0, 100)
    client = ScriptedClient(raw(whole[:-3]), raw(whole))
    assert await read_all(strand(client, end=1)) == [(0, 0)]
    assert [size for _, size, _ in client.asked] == [1000, 2000]
    too_large = strand(ScriptedClient(raw(whole[:-3])), end=1)
    too_large._fetch_bytes = LARGEST_RECORD_BYTES
    with pytest.raises(KafkaError, match="a record is larger than"):
        await read_all(too_large)


async def test_what_is_deleted_while_it_is_read_is_counted():
    gone = KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
    one = strand(ScriptedClient(gone, raw(batch(3, 100))), end=4)
    assert await read_all(one) == [(3, 0)]
    assert one.lost == 3
    with pytest.raises(KafkaError, match="OFFSET_OUT_OF_RANGE"):
        await read_all(strand(ScriptedClient(gone), start=5))
    with pytest.raises(KafkaError, match="UNKNOWN_SERVER_ERROR"):
        await read_all(strand(ScriptedClient(KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR))))
