"""Writes the sample data of `horolog up --demo` into a broker's topics, and commits offsets for the sample group."""

import asyncio
from collections.abc import Iterable

from horolog.client.admin.admin import Admin, NewTopic
from horolog.client.cli.starting import sample_data
from horolog.client.cli.starting.sample_data import SampleRecord
from horolog.client.producing.producer import Producer
from horolog.client.values.types import Sent, TopicPartition
from horolog.client.wire.client import Client


async def fill(bootstrap: str, now_ms: int, midnight_ms: int) -> dict[str, int]:
    """The number of records written to each topic. Topics that exist already are left alone."""
    async with Client(bootstrap, client_id="horolog-up") as client, Admin(client) as admin:
        known = (await client.metadata()).topics
        new = {topic: count for topic, count in sample_data.PARTITIONS.items() if topic not in known}
        if not new:
            return {}
        await admin.create_topics([NewTopic(topic, count) for topic, count in new.items()])
        records = [each for each in sample_data.records(now_ms, midnight_ms) if each.topic in new]
        sent = await _send(client, records)
        if sample_data.ORDERS in new:
            read = offsets_read(zip(records, sent, strict=True), now_ms - sample_data.GROUP_BEHIND_MS)
            await admin.alter_group_offsets(sample_data.GROUP, read)
    return {topic: sum(each.topic == topic for each in sent) for topic in new}


async def _send(client: Client, records: Iterable[SampleRecord]) -> list[Sent]:
    async with Producer(client, compression="lz4") as producer:
        futures = [
            await producer.send(
                each.topic,
                each.value.encode(),
                each.key.encode(),
                [(b"source", each.source.encode())],
                each.timestamp_ms,
            )
            for each in records
        ]
        await producer.flush()
    return list(await asyncio.gather(*futures))


def offsets_read(sent: Iterable[tuple[SampleRecord, Sent]], until_ms: int) -> dict[TopicPartition, int]:
    """Where a group continues that has read the orders that arrived up to a time, in each partition that has any."""
    return {
        TopicPartition(each.topic, place.partition): place.offset + 1
        for each, place in sent
        if each.topic == sample_data.ORDERS and each.arrives_ms <= until_ms
    }
