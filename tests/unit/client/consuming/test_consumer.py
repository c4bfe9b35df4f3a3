"""A consumer reads what it is assigned, or shares with its group; positions say what was processed."""

import asyncio

import pytest

from horolog.client.consuming.consumer import Consumer
from horolog.client.producing.producer import Producer
from horolog.client.values.errors import Closed, KafkaError
from horolog.client.values.types import Committed, TopicPartition
from horolog.client.wire.client import Client
from horolog.testing import broker_in_thread

T0 = 1_700_000_000_000
A, B = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture(scope="module")
def address():
    """Ten records in each partition, a second apart."""

    async def write(bootstrap):
        async with Producer(bootstrap) as producer:
            for number in range(10):
                for partition in (0, 1):
                    time_ms = T0 + 1000 * number
                    await producer.send("t", b"%d" % number, timestamp_ms=time_ms, partition=partition)

    with broker_in_thread(clock=T0 + 100_000, log_retention_ms=-1) as broker:
        broker.create_topic("t", 2)
        asyncio.run(write(broker.bootstrap))
        yield broker.bootstrap


@pytest.fixture
async def client(address):
    async with asyncio.timeout(60), Client(address) as made:
        yield made


async def read(consumer, count):
    records = []
    while len(records) < count:
        records += await consumer.poll(1000)
    return records


async def test_what_is_assigned_is_read_to_its_end(client):
    async with Consumer(client, fetch_max_wait_ms=20) as consumer:
        consumer.assign([A, B])
        assert consumer.assignment == [A, B]
        records = await read(consumer, 20)
        assert [each.value for each in records if each.partition == 1] == [b"%d" % number for number in range(10)]
        assert await consumer.poll(10) == []
        assert consumer.positions() == {A: Committed(10), B: Committed(10)}
        assert await consumer.lag(A) == 0


async def test_a_poll_may_be_small(client):
    async with Consumer(client, max_poll_records=3) as consumer:
        consumer.assign([A])
        assert len(await consumer.poll()) == 3
        assert len(await consumer.poll(max_records=2)) == 2
        assert await consumer.position(A) == 5


async def test_a_position_can_be_set(client):
    async with Consumer(client) as consumer:
        consumer.assign([A, B])
        consumer.seek(A, 7)
        assert await consumer.seek_to_time({B: T0 + 8500}) == {B: 9}
        assert sorted((each.partition, each.offset) for each in await read(consumer, 4)) == [
            (0, 7),
            (0, 8),
            (0, 9),
            (1, 9),
        ]
        await consumer.seek_to_beginning([A])
        await consumer.seek_to_end([B])
        assert (await consumer.position(A), await consumer.position(B)) == (0, 10)
        assert await consumer.lag(A) == 10
        with pytest.raises(ValueError, match="is negative"):
            consumer.seek(A, -1)
        with pytest.raises(KafkaError, match="t-7 is not assigned"):
            consumer.seek(TopicPartition("t", 7), 0)


async def test_a_start_is_looked_up_when_it_is_wanted(client):
    async with Consumer(client, start="latest") as consumer:
        consumer.assign([A])
        assert consumer.positions() == {}
        assert await consumer.position(A) == 10


async def test_a_partition_that_is_paused_is_not_read(client):
    async with Consumer(client, fetch_max_wait_ms=20) as consumer:
        consumer.assign([A, B])
        consumer.pause([A])
        assert {each.partition for each in await read(consumer, 10)} == {1}
        assert await consumer.poll(20) == []
        consumer.resume([A])
        assert {each.partition for each in await read(consumer, 10)} == {0}


async def test_an_iteration_counts_what_it_has_given(client):
    async with Consumer(client) as consumer:
        consumer.assign([A])
        async for record in consumer:
            if record.offset == 3:
                break
        assert await consumer.position(A) == 4
        assert [each.offset for each in await consumer.poll(max_records=2)] == [4, 5]


async def test_an_iteration_waits_and_ends_with_the_consumer(client):
    consumer = Consumer(client, start="latest", fetch_max_wait_ms=20)
    consumer.assign([A])
    seen = []

    async def iterate():
        seen.extend([record async for record in consumer])

    reading = asyncio.create_task(iterate())
    await asyncio.sleep(0.01)
    await consumer.close()
    await reading
    assert seen == []
    with pytest.raises(Closed):
        await consumer.poll()
    await consumer.close()


async def test_a_group_shares_and_commits(client):
    async with Consumer(client, group="g", heartbeat_ms=50) as consumer:
        told = []
        await consumer.subscribe("t", on_assigned=told.append)
        await read(consumer, 20)
        assert told == [[A, B]]
        await consumer.commit()
        await consumer.commit({A: 4, B: Committed(5, "why")})
        state, instance = consumer.member()
        assert (state.is_stable, instance) == (True, None)
        assert await consumer.committed([A, B]) == {A: Committed(4, "", -1), B: Committed(5, "why", -1)}
        with pytest.raises(ValueError, match="its group assigns its partitions"):
            consumer.assign([A])
    async with Consumer(client, group="g", heartbeat_ms=50) as consumer:
        await consumer.subscribe(pattern="t")
        assert len(await read(consumer, 11)) == 11


async def test_a_group_without_a_subscription_commits_from_outside(client):
    async with Consumer(client, group="outside") as consumer:
        consumer.assign([A])
        await read(consumer, 10)
        await consumer.commit()
        assert consumer.member() == (None, None)
        assert (await consumer.committed([A]))[A].offset == 10
        await consumer.subscribe(["t"])
        assert consumer.assignment == []


@pytest.mark.parametrize("topics", [((), None), (["t"], "t")])
async def test_what_does_not_fit_together(client, topics):
    names, pattern = topics
    async with Consumer(client, group="g") as consumer:
        with pytest.raises(ValueError, match="either topics or a pattern"):
            await consumer.subscribe(names, pattern=pattern)


async def test_without_a_group_there_is_nothing_to_share_or_to_commit(client):
    with pytest.raises(ValueError, match="auto_commit_ms needs a group"):
        Consumer(client, auto_commit_ms=5)
    async with Consumer(client) as consumer:
        for call in (consumer.subscribe(["t"]), consumer.commit(), consumer.committed([A])):
            with pytest.raises(ValueError, match="has no group"):
                await call


async def test_a_fault_is_raised_by_the_poll(client):
    async with Consumer(client, start="none") as consumer:
        consumer.assign([A])
        with pytest.raises(KafkaError, match="there is no offset to start at in t-0"):
            await consumer.poll(10_000)


async def test_a_consumer_closes_the_client_that_it_made(address, client):
    async with Consumer(address, client_id="mine") as consumer:
        consumer.assign([A])
        await consumer.poll()
    assert consumer.client.closed
    async with Consumer(client):
        pass
    assert not client.closed
