"""Topics of all shapes that tests mirror from one cluster to another, and what readers see of them there."""

import asyncio
import random

from horolog.client.admin.admin import Admin
from horolog.client.consuming.consumer import Consumer
from horolog.client.producing.produce import build_produce
from horolog.client.producing.producer import Producer
from horolog.client.values.types import TopicPartition
from horolog.client.wire.client import Client
from horolog.client.wire.versions import Versioned
from horolog.protocol.apis import ApiKey
from tests.pipeline import samples
from tests.support.names import unique

CODECS = (None, "gzip", "snappy", "lz4", "zstd")
BASE_MS = 1_763_337_600_000
PARTITIONS = 3
KEEP = {"retention.ms": "-1"}


def made(broker, topic, partitions=PARTITIONS, **settings):
    configs = KEEP | {name.replace("__", "."): str(value) for name, value in settings.items()}

    async def make():
        async with Admin(broker.address) as admin:
            await admin.create_topic(topic, partitions, configs=configs)

    asyncio.run(make())
    return topic


def some_records(count, seed=1, partitions=PARTITIONS):
    """(partition, key, value, headers, time) of all shapes, times out of order and some of them missing."""
    rng = random.Random(seed)
    for number in range(count):
        headers = [(b"n", b"%d" % number), (b"\xff\xfe", None), (b"", b"")][: rng.randrange(4)]
        yield (
            rng.randrange(partitions),
            rng.choice([None, b"", b"key %d" % number]),
            rng.choice([None, b"", b"value %d " % number * rng.randrange(1, 9)]),
            headers,
            rng.choice([-1, BASE_MS + number * 1000 - rng.randrange(500_000), BASE_MS + number * 1000]),
        )


def feed(broker, topic, records, codec=None, *, abort=False, transactional=False):
    """Write records, of an aborted transaction if so wanted."""

    class Thrown(Exception):
        pass

    async def send_all(producer):
        for partition, key, value, headers, time_ms in records:
            await producer.send(topic, value, key, headers, time_ms, partition)
        await producer.flush()
        if abort:
            raise Thrown

    async def write():
        name = unique("writer") if abort or transactional else None
        async with Producer(broker.address, compression=codec, transactional_id=name, batch_bytes=2000) as producer:
            if name is None:
                await send_all(producer)
                return
            try:
                async with producer.transaction():
                    await send_all(producer)
            except Thrown:
                pass

    asyncio.run(write())


def feed_old_formats(broker, topic, partition):
    """Sets of the formats v0 and v1, plain and compressed."""

    async def write():
        place = TopicPartition(topic, partition)
        async with Client(broker.address) as client:
            await client.topic(topic)
            for magic, version in ((0, 1), (1, 2)):
                for codec in samples.CODECS[magic]:
                    records = [
                        samples.Record(n, BASE_MS + n * 7 if magic else -1, 0, b"k%d" % n, b"old %d" % n, ())
                        for n in range(20)
                    ]
                    data = bytes(samples.encoded(records, magic, codec))

                    def build(_, data=data):
                        return build_produce(
                            [(type("Batch", (), {"partition": place})(), data)],
                            acks=-1,
                            timeout_ms=10_000,
                            transactional_id=None,
                        )

                    answer = await client.request(
                        Versioned(ApiKey.PRODUCE, build), leader_of=place, at_least=version, at_most=version
                    )
                    assert answer.responses[0].partition_responses[0].error_code == 0

    asyncio.run(write())


def content(broker, topic):
    """Of each partition, what readers of committed records see: everything but offsets."""

    async def read():
        found = {}
        async with Consumer(broker.address, isolation="read_committed") as consumer:
            places = [TopicPartition(topic, number) for number in await consumer.client.topic(topic)]
            consumer.assign(places)
            for place in places:
                consumer.seek(place, 0)
                found[place.partition] = []
            ends = await consumer.end_offsets(places)
            while any([await consumer.position(place) < end for place, end in ends.items()]):
                for each in await consumer.poll(500):
                    kept = (each.timestamp_ms, each.key, each.value, each.headers)
                    found[each.partition].append((each.offset, *kept))
        return found

    return asyncio.run(read())


def without_offsets(found):
    return {partition: [record[1:] for record in records] for partition, records in found.items()}


def assert_equal(broker, other, topic):
    ours, theirs = without_offsets(content(broker, topic)), without_offsets(content(other, topic))
    assert {number: len(records) for number, records in theirs.items()} == {
        number: len(records) for number, records in ours.items()
    }
    assert theirs == ours


def commit(broker, group, offsets):
    async def write():
        async with Admin(broker.address) as admin:
            await admin.alter_group_offsets(group, offsets)

    asyncio.run(write())


def committed(broker, group):
    async def read():
        async with Admin(broker.address) as admin:
            return {place: each.offset for place, each in (await admin.group_offsets(group)).items()}

    return asyncio.run(read())
