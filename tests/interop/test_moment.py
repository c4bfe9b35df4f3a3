"""Records merged by time against a full read that is sorted: on our broker, on workers, and on real Kafkas."""

import random
from collections.abc import Iterator
from contextlib import suppress

import pytest

from benchmarks import kafka
from horolog.client.admin.admin import Admin
from horolog.client.consuming.consumer import Consumer
from horolog.client.moments.look_ahead import TO_THE_END
from horolog.client.moments.moment import merge
from horolog.client.producing.producer import Producer
from horolog.client.values.types import TopicPartition
from horolog.client.wire.client import Client
from tests.support.broker_process import BrokerProcess
from tests.support.names import unique

KAFKAS = ("3.9.2", "4.3.1")
BEGIN_MS = 1_795_000_000_000


class Abandoned(Exception):
    """Leaves a transaction."""


@pytest.fixture(
    scope="module",
    params=[
        "horolog",
        *(
            pytest.param(version, marks=[pytest.mark.kafka_jars, pytest.mark.java, pytest.mark.timeout(300)])
            for version in KAFKAS
        ),
    ],
)
def address(request: pytest.FixtureRequest, session_broker: BrokerProcess, tmp_path_factory) -> Iterator[str]:
    if request.param == "horolog":
        yield session_broker.address
        return
    try:
        kafka.libs(request.param)
    except kafka.MissingJarsError as error:
        pytest.skip(f"no jars of Kafka {request.param}: {error}")
    with kafka.running(request.param, data=tmp_path_factory.mktemp("kafka")) as node:
        yield node.address


async def fill(client, topic, rolled):
    """Handfuls of records whose times are equal, out of order or far off, half of them in transactions."""
    for number in range(8):
        transactional = unique("moment") if number % 2 else None
        codec = rolled.choice(["none", "gzip", "lz4", "zstd"])
        async with Producer(client, compression=codec, transactional_id=transactional) as producer:
            if transactional is None:
                await send(producer, topic, rolled, number)
                continue
            with suppress(Abandoned):
                await send_together(producer, topic, rolled, number)


async def send_together(producer, topic, rolled, number):
    async with producer.transaction():
        await send(producer, topic, rolled, number)
        if number == 3:
            raise Abandoned


async def send(producer, topic, rolled, number):
    for _ in range(60):
        time_ms = BEGIN_MS + number * 1000 + rolled.choice([0, rolled.randrange(1000), -rolled.randrange(5000)])
        await producer.send(topic, b"v", timestamp_ms=time_ms, partition=rolled.randrange(3))
        if rolled.random() < 0.1:
            await producer.flush()


async def read_all(client, partitions, isolation):
    found = []
    async with Consumer(client, isolation=isolation) as consumer:
        consumer.assign(partitions)
        ends = await consumer.end_offsets(partitions)
        while any([await consumer.position(each) < end for each, end in ends.items()]):
            found += await consumer.poll(500)
    return sorted(found, key=lambda one: (one.timestamp_ms, one.partition, one.offset))


@pytest.mark.long
@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
async def test_a_moment_is_what_a_full_read_has_of_it(address, isolation):
    rolled = random.Random(11)
    topic = unique("moment")
    partitions = [TopicPartition(topic, index) for index in range(3)]
    async with Client(address) as client, Admin(client) as admin:
        await admin.create_topic(topic, partitions=3, configs={"retention.ms": "-1"})
        await fill(client, topic, rolled)
        everything = await read_all(client, partitions, isolation)
        assert (len(everything) == 420) == (isolation == "read_committed")
        times = sorted({record.timestamp_ms for record in everything})
        for since, until in [
            (None, None),
            (times[0], times[-1]),
            (times[-1], times[-1] + 1),
            *(sorted(rolled.sample(times, 2)) for _ in range(8)),
        ]:
            moment = merge(client, partitions, since, until, isolation=isolation, look_ahead=TO_THE_END)
            async with moment:
                found = [placed.record async for placed in moment]
            assert found == [record for record in everything if since is None or since <= record.timestamp_ms < until]
            assert moment.report.complete
