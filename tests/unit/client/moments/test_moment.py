"""Records of partitions merged by time, against a full read of the same partitions that is sorted afterwards."""

import asyncio
import random
from contextlib import asynccontextmanager, suppress

import pytest

from horolog.client.consuming.consumer import Consumer
from horolog.client.moments.look_ahead import QUIET_RECORDS, TO_THE_END, Ended, LookAhead
from horolog.client.moments.moment import Offsets, Open, Report, merge
from horolog.client.moments.sorting import Hold
from horolog.client.producing.producer import Producer
from horolog.client.values.types import TopicPartition
from horolog.client.wire.client import Client
from horolog.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from horolog.protocol.records.batch import encode_batch
from horolog.protocol.records.compression import Codec
from horolog.protocol.records.record import Record
from horolog.testing import horolog_broker

NOW_MS = 1_700_000_000_000
SPAN_MS = 10_000
PARTITIONS = [TopicPartition("t", index) for index in range(3)]


class Abandoned(Exception):
    """Leaves a transaction."""


@asynccontextmanager
async def running(**settings):
    async with (
        horolog_broker(clock=NOW_MS, log_retention_ms=-1, **settings) as broker,
        Client(broker.bootstrap) as client,
    ):
        yield broker, client


async def fill(client, seed, records=300, spread_ms=3000):
    """Records out of order in batches of all kinds, some of them in transactions that end in either way."""
    rolled = random.Random(seed)
    for number in range(6):
        codec = rolled.choice(["none", "gzip", "zstd"])
        transactional = f"x{seed}-{number}" if rolled.random() < 0.5 else None
        async with Producer(client, compression=codec, transactional_id=transactional) as producer:
            if transactional is None:
                await send(producer, rolled, number, records // 6, spread_ms)
                continue
            with suppress(Abandoned):
                await send_together(producer, rolled, number, records // 6, spread_ms)


async def send_together(producer, rolled, *what):
    async with producer.transaction():
        await send(producer, rolled, *what)
        if rolled.random() < 0.4:
            raise Abandoned


async def send(producer, rolled, number, count, spread_ms):
    for each in range(count):
        regular = NOW_MS - SPAN_MS + (number * count + each) * SPAN_MS // (6 * count)
        time_ms = regular - (rolled.randrange(spread_ms) if rolled.random() < 0.5 else 0)
        await producer.send("t", b"%d" % each, timestamp_ms=time_ms, partition=rolled.randrange(3))
        if rolled.random() < 0.1:
            await producer.flush()


async def read_all(client, isolation, partitions=PARTITIONS):
    """The full read: record by record with the lateness of each."""
    found = []
    async with Consumer(client, isolation=isolation) as consumer:
        consumer.assign(partitions)
        ends = await consumer.end_offsets(partitions)
        largest = {}
        while any([await consumer.position(each) < end for each, end in ends.items()]):
            for record in await consumer.poll(200):
                place = record.partition
                if record.timestamp_ms >= 0:
                    largest[place] = max(largest.get(place, -1), record.timestamp_ms)
                    found.append((record, largest[place] - record.timestamp_ms))
    return found


def place(record):
    return record.timestamp_ms, record.topic, record.partition, record.offset


async def collect(moment):
    async with moment:
        return [(each.record, each.late_ms) async for each in moment]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
async def test_it_is_a_full_read_and_sort(seed, isolation):
    async with running() as (broker, client):
        broker.create_topic("t", 3, segment_bytes=4096)
        await fill(client, seed)
        everything = await read_all(client, isolation)
        times = sorted({record.timestamp_ms for record, _ in everything})
        rolled = random.Random(seed)
        borders = [(None, None), (times[0], times[-1]), (times[-1], times[-1] + 1), (0, times[0])]
        borders += [tuple(sorted(rolled.sample(times, 2))) for _ in range(8)]
        for since, until in borders:
            in_range = [
                each
                for each in everything
                if (since is None or each[0].timestamp_ms >= since) and (until is None or each[0].timestamp_ms < until)
            ]
            expected = sorted(in_range, key=lambda each: place(each[0]))
            for look_ahead in (TO_THE_END, LookAhead(3000, None)):
                moment = merge(client, PARTITIONS, since, until, isolation=isolation, look_ahead=look_ahead)
                assert await collect(moment) == expected
                assert moment.report.records == len(expected)
                assert moment.report.late == sum(late_ms > 0 for _, late_ms in expected)
                assert moment.report.most_late_ms == max((late_ms for _, late_ms in expected), default=0)
                assert moment.report.out_of_place == moment.report.lost == 0
            unsorted = await collect(merge(client, PARTITIONS, since, until, isolation=isolation, in_order=False))
            assert [(one.partition, one.offset) for one, _ in unsorted] == sorted(
                (one.partition, one.offset) for one, _ in expected
            )


async def write_raw(client, *times, key=None, codec=Codec.NONE):
    """One batch as it is: -1 is not a time."""
    records = [Record(n, time_ms, 0, key, b"v" * 200) for n, time_ms in enumerate(times)]
    data = PartitionProduceData(index=0, records=encode_batch(records, codec))
    await client.request(
        ProduceRequest(acks=-1, timeout_ms=5000, topic_data=[TopicProduceData(name="t", partition_data=[data])]),
        leader_of=PARTITIONS[0],
        at_most=11,
    )


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
async def test_records_without_a_time_are_in_no_range(codec):
    async with running() as (broker, client):
        broker.create_topic("t", 1)
        await write_raw(client, -1, NOW_MS + 1, -1, NOW_MS, -1, codec=codec)
        await write_raw(client, -1, -1, codec=codec)
        for borders in ((None, None), (NOW_MS, NOW_MS + 2)):
            moment = merge(client, PARTITIONS[:1], *borders)
            assert [record.offset for record, _ in await collect(moment)] == [3, 1]
            assert 4 <= moment.report.without_time <= 5
            assert "without a time" in moment.report.notes()[0]


async def cleaned(broker, client):
    """All records, once the cleaner has come and changes nothing any more."""
    lengths = [800]
    for _ in range(200):
        broker.broker.upkeep.compact()
        await asyncio.sleep(0.05)
        everything = await read_all(client, "read_uncommitted", PARTITIONS[:1])
        lengths.append(len(everything))
        if lengths[-1] < 800 and len(set(lengths[-5:])) == 1:
            return everything
    raise AssertionError(lengths)


@pytest.mark.parametrize("seed", range(3))
async def test_gaps_of_compaction_and_deleted_records_change_nothing(seed):
    rolled = random.Random(seed)
    async with running(log_cleaner_backoff_ms=10) as (broker, client):
        settings = {"cleanup_policy": "compact", "min_cleanable_dirty_ratio": 0, "segment_bytes": 1 << 14}
        broker.create_topic("t", 1, min_compaction_lag_ms=0, **settings)
        for _ in range(40):
            times = [NOW_MS - rolled.randrange(5000) for _ in range(20)]
            await write_raw(
                client, *times, key=b"%d" % rolled.randrange(30), codec=rolled.choice([Codec.NONE, Codec.GZIP])
            )
        everything = await cleaned(broker, client)
        assert len(everything) < 800
        times = sorted(record.timestamp_ms for record, _ in everything)
        for since, until in [(times[0], times[-1]), *(sorted(rolled.sample(times, 2)) for _ in range(5))]:
            expected = [each for each in everything if since <= each[0].timestamp_ms < until]
            expected.sort(key=lambda each: place(each[0]))
            assert await collect(merge(client, PARTITIONS[:1], since, until, look_ahead=TO_THE_END)) == expected


async def write(client, *times, partition=0):
    async with Producer(client) as producer:
        for time_ms in times:
            await producer.send("t", b"v" * 100, timestamp_ms=time_ms, partition=partition)


async def test_what_was_not_read_is_said_only_where_records_come_late():
    async with running() as (broker, client):
        broker.create_topic("t", 1)
        await write(client, NOW_MS, NOW_MS + 100, *range(NOW_MS + 700_000, NOW_MS + 703_000))
        moment = merge(client, PARTITIONS[:1], NOW_MS, NOW_MS + 50)
        assert [record.offset for record, _ in await collect(moment)] == [0]
        assert [one.ended for one in moment.report.open] == [Ended.QUIET]
        assert not moment.report.complete
        assert moment.report.sentences() == []


async def test_a_partition_that_goes_on_in_order_is_not_read_to_its_end_and_that_is_said():
    async with running() as (broker, client):
        broker.create_topic("t", 1)
        late = [NOW_MS + 5, NOW_MS + 2_000_000]
        await write(client, NOW_MS, NOW_MS + 100, *late, *range(NOW_MS + 700_000, NOW_MS + 703_000), NOW_MS + 7)
        moment = merge(client, PARTITIONS[:1], NOW_MS, NOW_MS + 50)
        assert [record.offset for record, _ in await collect(moment)] == [0, 2]
        (one,) = moment.report.open
        assert one.ended == Ended.QUIET
        assert QUIET_RECORDS < one.offset < one.end_offset == 3005
        assert not moment.report.complete
        assert "came more than 10m late" in moment.report.sentences()[0]
        everything = merge(client, PARTITIONS[:1], NOW_MS, NOW_MS + 50, look_ahead=TO_THE_END)
        assert [record.offset for record, _ in await collect(everything)] == [0, 2, 3004]
        assert everything.report.complete
        assert everything.report.sentences() == []


async def test_a_record_of_the_future_does_not_hide_those_behind_it():
    async with running() as (broker, client):
        broker.create_topic("t", 1, message_timestamp_after_max_ms=2**63 - 1)
        await write(client, NOW_MS + 10**12, *range(NOW_MS, NOW_MS + 5000))
        moment = merge(client, PARTITIONS[:1], NOW_MS + 1000, NOW_MS + 2000)
        assert [record.timestamp_ms for record, _ in await collect(moment)] == list(range(NOW_MS + 1000, NOW_MS + 2000))
        assert moment.report.late == 1000


async def test_a_range_far_behind_a_record_of_the_future_is_found_by_halving():
    async with running() as (broker, client):
        broker.create_topic("t", 1, message_timestamp_after_max_ms=2**63 - 1)
        early = NOW_MS - 100_000_000
        await write(client, NOW_MS + 10**12, *range(early, early + 60_000_000, 3000), *range(NOW_MS, NOW_MS + 100))
        moment = merge(client, PARTITIONS[:1], NOW_MS + 10, NOW_MS + 20, look_ahead=LookAhead(0, 1))
        assert [record.timestamp_ms for record, _ in await collect(moment)] == list(range(NOW_MS + 10, NOW_MS + 20))
        assert [one.ended for one in moment.report.open] == [Ended.PASSED_OVER]
        assert "of t-0 without a look-ahead" in moment.report.warnings()[0]


async def test_bytes_behind_the_range_are_bounded_and_that_is_said():
    async with running() as (broker, client):
        broker.create_topic("t", 1)
        times = [NOW_MS, *[NOW_MS + 60] * 20_000, NOW_MS + 1]
        await write(client, *times)
        moment = merge(client, PARTITIONS[:1], NOW_MS, NOW_MS + 50, look_ahead=LookAhead(600_000, 1))
        assert [record.offset for record, _ in await collect(moment)] == [0]
        assert [one.ended for one in moment.report.open] == [Ended.BYTES]
        assert "used up in t-0" in moment.report.sentences()[0]


@pytest.mark.parametrize(
    "settings",
    [
        {"message_timestamp_type": "LogAppendTime"},
        {"message_timestamp_before_max_ms": 1000, "message_timestamp_after_max_ms": 1000},
    ],
)
async def test_a_topic_that_takes_nothing_so_late_leaves_nothing_open(settings):
    async with running() as (broker, client):
        broker.create_topic("t", 1, **settings)
        await write(client, NOW_MS)
        broker.clock.advance(seconds=5)
        await write(client, *[NOW_MS + 5000] * 10_000)
        moment = merge(client, PARTITIONS[:1], NOW_MS, NOW_MS + 1)
        assert [record.offset for record, _ in await collect(moment)] == [0]
        assert moment.report.complete


async def test_no_more_is_held_than_it_may_and_what_is_later_than_that_is_said():
    async with running() as (broker, client):
        broker.create_topic("t", 2)
        await write(client, *range(NOW_MS, NOW_MS + 1000), NOW_MS + 3)
        await write(client, *range(NOW_MS, NOW_MS + 1000), partition=1)
        moment = merge(client, PARTITIONS[:2], NOW_MS, NOW_MS + 2000, hold=Hold(records=100))
        found = await collect(moment)
        assert len(found) == moment.report.records == 2001
        assert moment.report.out_of_place == 1
        assert "at most 100 records" in moment.report.sentences()[0]
        in_place = [record for record, late_ms in found if not late_ms]
        assert in_place == sorted(in_place, key=place)


async def test_what_is_left_early_is_closed():
    async with running() as (broker, client):
        broker.create_topic("t", 1)
        await write(client, *[NOW_MS] * 30_000)
        async with merge(client, PARTITIONS[:1], None, None) as moment:
            async for each in moment:
                assert each.record.offset == 0
                break
        await asyncio.sleep(0)
        assert "1 records so far" in repr(moment)


async def test_nothing_there_is_nothing_found():
    async with running() as (broker, client):
        broker.create_topic("t", 3)
        assert await collect(merge(client, PARTITIONS, NOW_MS, NOW_MS + 1)) == []
        assert await collect(merge(client, PARTITIONS, None, None)) == []


async def test_settings_that_may_not_be_seen_prove_nothing(monkeypatch):
    async def refused(self, *_):
        raise ValueError("no")

    monkeypatch.setattr("horolog.client.admin.admin_configs.ConfigAdmin.describe_configs", refused)
    async with running() as (broker, client):
        broker.create_topic("t", 1, message_timestamp_type="LogAppendTime")
        await write(client, NOW_MS)
        broker.clock.advance(hours=1)
        await write(client, *[NOW_MS] * 2000)
        moment = merge(client, PARTITIONS[:1], NOW_MS, NOW_MS + 1, look_ahead=LookAhead(0, None))
        assert len(await collect(moment)) == 1
        assert not moment.report.complete


def test_a_range_that_ends_before_it_begins_is_refused():
    with pytest.raises(ValueError, match="until 1 is before since 2"):
        merge(None, [], 2, 1)


def test_the_report_says_each_thing_that_was_left_out():
    report = Report(LookAhead(60_000, 1 << 20), Hold(), without_time=2, lost=3)
    report.open = [Open(TopicPartition("t", index), 5, 10, Ended.BYTES, had_late=True) for index in range(4)]
    assert report.sentences() == [
        "left out 2 records without a time",
        (
            "the look-ahead of 1024 KiB was used up in t-0, t-1, t-2, ...: late records of the range may be among"
            " 20 unread offsets"
        ),
        "offsets deleted while they were read: 3",
    ]


async def test_offsets_may_stand_in_place_of_times():
    """Each record between two offsets is read once, whatever its time; to the end where no end is named."""
    async with running() as (broker, client):
        broker.create_topic("t", 3)
        await fill(client, 3)
        everything = {partition: [] for partition in PARTITIONS}
        for placed in await read_all(client, "read_uncommitted"):
            everything[TopicPartition(placed[0].topic, placed[0].partition)].append(placed[0].offset)
        between = {
            partition: Offsets(offsets[5], None if number == 2 else offsets[20])
            for number, (partition, offsets) in enumerate(everything.items())
        }
        found = {partition: [] for partition in PARTITIONS}
        async with merge(client, PARTITIONS, None, None, in_order=False, between=between) as moment:
            async for placed in moment:
                found[TopicPartition(placed.record.topic, placed.record.partition)].append(placed.record.offset)
        first, second, third = everything.values()
        assert list(found.values()) == [first[5:20], second[5:20], third[5:]]
        assert moment.report.complete
