"""The measurements of `horolog bench`."""

import asyncio
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from horolog.base.readable import counted
from horolog.client.consuming.consumer import Consumer
from horolog.client.producing.producer import Producer
from horolog.client.values.types import EARLIEST, LATEST, TopicPartition
from horolog.client.wire.offsets import ends, list_offsets
from horolog.commands.errors import CommandError

if TYPE_CHECKING:
    from horolog.client.wire.client import Client

LATENCY_SECONDS = 5
RECORD_WAIT_SECONDS = 10
RECORDS_BETWEEN_YIELDS = 500
PATTERN_BYTES = 1 << 16
"""Values are cut from random text of this length: neither all alike, nor impossible to compress."""


@dataclass(slots=True)
class Figures:
    part: str
    count: int
    seconds: float
    megabytes: float | None = None
    latencies_seconds: list[float] = field(default_factory=list)
    """Sorted."""

    @property
    def per_second(self) -> float:
        return self.count / self.seconds if self.seconds else 0.0

    def latency_ms(self, share: float) -> float | None:
        """The latency that this share of the measurements did not exceed."""
        if not self.latencies_seconds:
            return None
        place = min(len(self.latencies_seconds) - 1, int(share * len(self.latencies_seconds)))
        return self.latencies_seconds[place] * 1000


def _values(size_bytes: int) -> Callable[[int], bytes]:
    text = os.urandom(PATTERN_BYTES // 2).hex().encode() * (size_bytes // PATTERN_BYTES + 2)
    return lambda number: text[number % PATTERN_BYTES : number % PATTERN_BYTES + size_bytes]


async def produce(
    client: "Client",
    topic: str,
    count: int,
    *,
    size_bytes: int,
    codec: str | None,
    acks: str,
    advance: Callable[[int], Any],
) -> Figures:
    """From the first record sent to the last one acknowledged."""
    value = _values(size_bytes)
    failures: list[BaseException] = []

    def settle(done: "asyncio.Future[Any]") -> None:
        error = done.exception()
        if error is not None:
            failures.append(error)

    async with Producer(client, acks=acks, compression=codec) as producer:
        began = time.perf_counter()
        for number in range(count):
            (await producer.send(topic, value(number))).add_done_callback(settle)
            if number % RECORDS_BETWEEN_YIELDS == 0:
                advance(RECORDS_BETWEEN_YIELDS)
                await asyncio.sleep(0)
        await producer.flush()
        seconds = time.perf_counter() - began
    if failures:
        raise CommandError(
            f"{len(failures)} of {counted(count, 'record')} were not written, the first because: {failures[0]}"
        )
    return Figures("produce", count, seconds, count * size_bytes / 1e6)


async def consume(client: "Client", topic: str, count: int, advance: Callable[[int], Any]) -> Figures:
    places = [TopicPartition(topic, index) for index in await client.topic(topic)]
    async with Consumer(client, max_poll_records=5000) as consumer:
        consumer.assign(places)
        read = size_bytes = 0
        began = time.perf_counter()
        while read < count:
            records = await consumer.poll(RECORD_WAIT_SECONDS * 1000)
            if not records:
                raise CommandError(f"only {read} of {counted(count, 'record')} arrived")
            read += len(records)
            size_bytes += sum(len(record.value or b"") for record in records)
            advance(len(records))
        seconds = time.perf_counter() - began
    return Figures("consume", read, seconds, size_bytes / 1e6)


async def latency(client: "Client", topic: str, rate: int, size_bytes: int, acks: str) -> Figures:
    """From a record's send to its receipt by a waiting consumer, at an even rate."""
    value = _values(max(1, size_bytes - 8))
    count = rate * LATENCY_SECONDS
    places = [TopicPartition(topic, index) for index in await client.topic(topic)]
    latencies: list[float] = []
    async with Producer(client, acks=acks, linger_ms=0) as producer, Consumer(client, start="latest") as consumer:
        consumer.assign(places)
        await asyncio.gather(*(consumer.position(place) for place in places))
        began = time.perf_counter()

        async def send() -> None:
            for number in range(count):
                await asyncio.sleep(began + number / rate - time.perf_counter())
                await producer.send(topic, time.perf_counter_ns().to_bytes(8, "big") + value(number))

        sending = asyncio.create_task(send())
        while len(latencies) < count:
            records = await consumer.poll(RECORD_WAIT_SECONDS * 1000)
            now = time.perf_counter_ns()
            if not records:
                sending.cancel()
                raise CommandError(f"only {len(latencies)} of {counted(count, 'record')} arrived")
            latencies += ((now - int.from_bytes((record.value or b"")[:8], "big")) / 1e9 for record in records)
        await sending
        seconds = time.perf_counter() - began
    return Figures("latency", count, seconds, None, sorted(latencies))


async def look_ups(client: "Client", topic: str, count: int) -> Figures:
    """Lookups of times spread over the topic, sequential, on one partition at a time."""
    places = [TopicPartition(topic, index) for index in await client.topic(topic)]
    first = await ends(client, dict.fromkeys(places, EARLIEST))
    last = await ends(client, dict.fromkeys(places, LATEST))
    place = max(places, key=lambda each: last[each] - first[each])
    oldest = (await list_offsets(client, {place: 0}))[place]
    start_ms = oldest.timestamp_ms if oldest is not None else 0
    span_ms = max(1, int(time.time() * 1000) - start_ms)
    took: list[float] = []
    began = time.perf_counter()
    for number in range(count):
        asked = time.perf_counter()
        await list_offsets(client, {place: start_ms + number * span_ms // count})
        took.append(time.perf_counter() - asked)
    return Figures("lookup", count, time.perf_counter() - began, None, sorted(took))
