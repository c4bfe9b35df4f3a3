"""Records of a range are written, those outside of it are counted, and reading ends where it should."""

import asyncio
import io
from datetime import UTC

import pytest

from horolog.client.admin.admin import Admin
from horolog.client.consuming.consumer import Consumer
from horolog.client.decoding.where import compile_where
from horolog.client.producing.producer import Producer
from horolog.client.values.types import EARLIEST, LATEST, TopicPartition
from horolog.client.wire.client import Client
from horolog.client.wire.offsets import ends
from horolog.commands.console import Console
from horolog.commands.online import reading
from horolog.commands.online.decoding import Lens
from horolog.commands.online.reading import Reading, at_times, within
from horolog.testing import broker_in_thread

T0 = 1_700_000_000_000
TIMES = [0, 10, 30, 20, 40]
"""Of the records of partition 0, in seconds; those of partition 1 come 5 seconds later."""
BOTH = [TopicPartition("t", 0), TopicPartition("t", 1)]


@pytest.fixture(scope="module")
def address():
    async def write(bootstrap):
        async with Producer(bootstrap) as producer:
            for number, seconds in enumerate(TIMES):
                for partition in (0, 1):
                    time_ms = T0 + 1000 * (seconds + 5 * partition)
                    await producer.send("t", b"%d%d" % (partition, number), timestamp_ms=time_ms, partition=partition)

    with broker_in_thread(clock=T0 + 100_000, log_retention_ms=-1) as broker:
        broker.create_topic("t", 2)
        asyncio.run(write(broker.bootstrap))
        yield broker.bootstrap


@pytest.fixture
async def client(address):
    async with Client(address) as made:
        yield made


class Output:
    """What was read, and the reading."""

    def __init__(self, since=None, until=None, *, follow=False, late=False, most=None, now=100):
        self.values = []
        self.reading = Reading(
            None if since is None else T0 + 1000 * since,
            None if until is None else T0 + 1000 * until,
            follow,
            late,
            "read_committed",
            most,
            lambda: T0 + 1000 * now,
            self.add,
        )

    def add(self, data):
        self.values += data.decode().split()

    async def read(self, client):
        first, last = await ends(client, dict.fromkeys(BOTH, EARLIEST)), await ends(client, dict.fromkeys(BOTH, LATEST))
        await self.reading.of_partitions(client, first, last, write)
        return self


def write(record):
    return record.value + b" "


async def test_all_of_both_partitions_is_read_in_their_order(client):
    output = await Output().read(client)
    assert [value for value in output.values if value[0] == "0"] == ["00", "01", "02", "03", "04"]
    assert (output.reading.written, output.reading.outside) == (10, 0)


async def test_what_lies_outside_of_the_range_is_counted(client):
    output = await Output(since=10, until=30).read(client)
    assert sorted(output.values) == ["01", "03", "11", "13"]
    assert output.reading.outside == 6


async def test_enough_is_enough(client):
    output = await Output(most=3).read(client)
    assert (len(output.values), output.reading.has_enough) == (3, True)
    assert await output.reading.write([], write) == 0


async def test_records_that_are_not_wanted_do_not_count(client):
    wanted = compile_where("offset = 3", T0, UTC)
    output = Output(most=2)
    output.reading.lens = Lens(wanted, None, pytest.fail, shows_decoded=False)
    await output.read(client)
    assert sorted(output.values) == ["03", "13"]
    assert output.reading.has_enough


async def test_where_there_is_nothing_nothing_is_asked(client):
    output = Output()
    await output.reading.of_partitions(client, dict.fromkeys(BOTH, 5), dict.fromkeys(BOTH, 5), write)
    assert output.values == []


async def test_following_ends_once_each_partition_has_passed_the_end(client):
    output = await Output(until=30, follow=True).read(client)
    assert {"00", "01", "10", "11"} <= set(output.values)
    assert "04" not in output.values


async def test_following_ends_when_the_clock_has_passed_the_end(client, monkeypatch):
    monkeypatch.setattr(reading, "POLL_MS", 30)
    output = await Output(until=60, follow=True, late=True, now=61).read(client)
    assert len(output.values) == 10


async def test_following_can_sort_by_time(client, monkeypatch):
    monkeypatch.setattr(reading, "POLL_MS", 30)
    output = Output(until=60, follow=True, late=True, now=61)
    output.reading.merge_within(10_000)
    await output.read(client)
    assert output.values == ["00", "10", "01", "11", "03", "13", "02", "12", "04", "14"]


async def test_late_records_behind_the_range_are_counted(client):
    output = Output(since=15, until=25)
    places = dict.fromkeys(BOTH, 2)
    await output.reading.look_for_late_ones(client, places)
    assert output.reading.late_ones == 1
    at_the_end = Output(since=15, until=25)
    await at_the_end.reading.look_for_late_ones(client, dict.fromkeys(BOTH, 5))
    assert at_the_end.reading.late_ones == 0


async def test_a_group_reads_what_it_has_not_read(client, monkeypatch):
    monkeypatch.setattr(reading, "POLL_MS", 30)
    first = Output(most=4)
    await first.reading.with_group(client, "t", "g", write)
    assert len(first.values) == 4
    second = Output()
    await second.reading.with_group(client, "t", "g", write)
    assert sorted(first.values + second.values) == sorted(f"{part}{number}" for part in (0, 1) for number in range(5))
    committed = await Admin(client).group_offsets("g", BOTH)
    assert [committed[place].offset for place in BOTH] == [5, 5]
    third = Output(until=60, follow=True, now=61)
    await third.reading.with_group(client, "t", "g", write)
    assert third.values == []


async def test_a_moment_is_written_in_handfuls(client, monkeypatch):
    from horolog.client.moments.moment import merge

    monkeypatch.setattr(reading, "HANDFUL", 3)
    for most, count in ((None, 10), (4, 4)):
        output = Output(most=most)
        merged = merge(client, BOTH, T0, T0 + 60_000)
        await output.reading.of_moment(merged, write)
        assert len(output.values) == count


async def test_offsets_at_times(client):
    last = dict.fromkeys(BOTH, 5)
    assert await at_times(client, BOTH, T0 + 30_000, last, 0) == {BOTH[0]: 2, BOTH[1]: 2}
    assert await at_times(client, BOTH, T0 + 42_000, last, 0) == {BOTH[0]: 5, BOTH[1]: 4}


def test_offsets_of_the_user_are_brought_into_the_partition():
    console = Console(io.StringIO(), io.StringIO(), io.StringIO(), {})
    a, b, c = (TopicPartition("t", index) for index in range(3))
    found = within(dict.fromkeys((a, b, c), 10), dict.fromkeys((a, b, c), 20), {a: 5, b: 15, c: 25}, console)
    assert found == {a: 10, b: 15, c: 20}
    assert console.err.getvalue().splitlines() == [
        "horolog: warning: t-0 begins at 10: offset 5 lies before it",
        "horolog: warning: t-2 ends at 20: offset 25 is beyond its end",
    ]


async def test_a_consumer_that_is_not_at_the_end_is_waited_for(client):
    async with Consumer(client) as consumer:
        consumer.assign(BOTH)
        consumer.seek(BOTH[0], 5)
        consumer.seek(BOTH[1], 4)
        assert not await reading._at_end(consumer)
        consumer.seek(BOTH[1], 5)
        assert await reading._at_end(consumer)
