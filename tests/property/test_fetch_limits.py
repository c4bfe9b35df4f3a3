"""Fetch over any number of partitions: the limits are shared out by Kafka's rule, and every reader comes to the end."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from horolog.protocol.messages.fetch import FetchRequest
from horolog.protocol.records.compression import Codec
from horolog.protocol.records.head import heads_in
from tests.support import raw_records as raw
from tests.support.fetch_rule import (
    EVERYTHING_BYTES,
    FIRST_V2_VERSION,
    Part,
    begins_well,
    expected,
    fetch,
    limit_of,
    places,
    produce,
    records_of,
    some_batches,
)
from tests.support.memory_broker import NOW_MS, MemoryBroker

TOPIC = "t"
LAST_VERSION = 18
OLD_CODECS = (Codec.NONE, Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4)
SEEDS = st.integers(0, 1 << 32)


class Logs:
    """A topic with something in each partition, and what each would give by itself to a version and an isolation level."""

    def __init__(self, memory: MemoryBroker, rng: random.Random, magic: int) -> None:
        self.count = rng.choice((1, 2, 3, 7, 20))
        self.topic = memory.topic(TOPIC, self.count)
        self.wire = memory.connect()
        self._memory = memory
        self._rng = rng
        self._magic = magic
        self._has_zstd = magic == 2 and rng.random() < 0.5
        self.versions = range(FIRST_V2_VERSION if self._has_zstd else 0, LAST_VERSION + 1)

    async def fill(self) -> None:
        rng, magic = self._rng, self._magic
        codecs = (*OLD_CODECS, Codec.ZSTD) if self._has_zstd else OLD_CODECS[:4] if magic == 0 else OLD_CODECS
        largest = rng.choice((300, 3000, 100_000))
        for index in range(self.count):
            for one in some_batches(rng, magic, largest, codecs):
                answer = await self.wire.ask(produce(TOPIC, index, one), 9 if magic == 2 else 2)
                assert answer.responses[0].partition_responses[0].error_code == 0
            if magic == 2 and rng.random() < 0.3:
                self._begin_a_transaction(index)

    def _begin_a_transaction(self, index: int) -> None:
        partition: Any = self.topic.find(index)
        times = {"base_timestamp": NOW_MS, "max_timestamp": NOW_MS}
        batch = raw.batch([raw.record(b"x")], attributes=0x10, producer=(index + 7, 0, 0), **times)
        partition.append(batch, NOW_MS, produce_version=9)
        partition.flush()

    async def each(self, version: int, isolation: int) -> list[bytes]:
        every = [await self.ask([Part(n, 0, EVERYTHING_BYTES)], version, isolation) for n in range(self.count)]
        return [found[n] for n, found in enumerate(every)]

    async def ask(
        self, parts: Sequence[Part], version: int, isolation: int, max_bytes: int = EVERYTHING_BYTES, **fields: Any
    ) -> dict[int, bytes]:
        return records_of(await self.wire.ask(self.request(parts, version, isolation, max_bytes, **fields), version))

    def request(
        self, parts: Sequence[Part], version: int, isolation: int, max_bytes: int, **fields: Any
    ) -> FetchRequest:
        if version >= FIRST_V2_VERSION:
            fields["isolation_level"] = isolation
        return fetch(TOPIC, self.topic.id, parts, version, max_bytes, **fields)


async def share(seed: int) -> None:
    rng = random.Random(seed)
    magic = rng.choice((0, 1, 2, 2))
    async with MemoryBroker(fetch_max_bytes=EVERYTHING_BYTES) as memory:
        logs = Logs(memory, rng, magic)
        await logs.fill()
        for _ in range(10):
            version, isolation = rng.choice(logs.versions), rng.choice((0, 1))
            held = await logs.each(version, isolation)
            parts, limit = places(rng, held), limit_of(rng, held)
            found = await logs.ask(parts, version, isolation, limit)
            assert list(found) == [one.index for one in parts]
            assert all(begins_well(data, version) for data in found.values()), (version, parts, limit)
            if version < 3:
                stored = await logs.each(LAST_VERSION, isolation)
                assert all(fits(found[one.index], one, stored[one.index]) for one in parts), (version, parts)
            if (magic == 2) if version >= FIRST_V2_VERSION else (magic < 2 and version >= 2):  # nothing is converted
                most = limit if version >= 3 else EVERYTHING_BYTES
                assert list(found.values()) == expected(held, parts, version, most), (version, parts, limit)


def fits(found: bytes, part: Part, stored: bytes) -> bool:
    """Whether what an old reader gets is within its limit, or is its first batch alone, which grew when it was converted."""
    if len(found) <= part.max_bytes:
        return True
    first = next(one for one in heads_in(stored) if one.last_offset >= part.offset)
    *_, last = heads_in(found)
    return first.magic > last.magic and last.last_offset <= first.last_offset


async def read_to_the_end(seed: int) -> None:
    """As a consumer does: with a session, or without one and the partitions that gave something put last."""
    rng = random.Random(seed)
    magic = rng.choice((0, 1, 2))
    async with MemoryBroker(fetch_max_bytes=EVERYTHING_BYTES) as memory:
        logs = Logs(memory, rng, magic)
        await logs.fill()
        version, isolation = rng.randint(max(3, logs.versions[0]), LAST_VERSION), rng.choice((0, 1))
        ends = [next_offset(one, 0) for one in await logs.each(version, isolation)]
        limit, at, order = limit_of(rng, [b""]), dict.fromkeys(range(logs.count), 0), list(range(logs.count))
        bytes_each = rng.choice((0, 70, 2000, EVERYTHING_BYTES))
        has_session = version >= 7 and rng.random() < 0.5
        session = {"session_id": 0, "session_epoch": 0} if has_session else {}
        changed = order
        while any(at[index] < ends[index] for index in at):
            parts = [Part(index, at[index], bytes_each) for index in (changed if has_session else order)]
            answer = await logs.wire.ask(logs.request(parts, version, isolation, limit, **session), version)
            found = records_of(answer)
            changed = [index for index, data in found.items() if data]
            assert changed, "nothing new for a reader who is not at the end"
            for index in changed:
                at[index] = next_offset(found[index], at[index])
            order = [index for index in order if index not in changed] + changed
            if has_session:
                session = {"session_id": answer.session_id, "session_epoch": session["session_epoch"] + 1}
        assert [at[index] for index in range(logs.count)] == ends


def next_offset(data: bytes, otherwise: int) -> int:
    heads = list(heads_in(data))
    return heads[-1].last_offset + 1 if heads else otherwise


@given(SEEDS)
@example(1_097_737_845)  # a batch that grows beyond its limit when it is converted
def test_any_partitions_share_the_limits_by_kafkas_rule(seed: int) -> None:
    asyncio.run(share(seed))


@given(SEEDS)
def test_every_reader_comes_to_the_end_whatever_the_limits_are(seed: int) -> None:
    asyncio.run(read_to_the_end(seed))
