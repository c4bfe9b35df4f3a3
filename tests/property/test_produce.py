"""Produce beside a handler that says it as plainly as can be: the same answers, the same bytes on the disk and the same counts, whatever comes."""

from __future__ import annotations

import asyncio
import random
import struct
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from horolog.broker.base.metrics import lines
from horolog.broker.cluster.new_topics import NewTopic
from horolog.broker.handlers import HANDLERS
from horolog.broker.network.dispatch import Dispatcher
from horolog.broker.network.meters import ERRORS, RECEIVED, REQUESTS, SENT
from horolog.protocol.compile import encode
from horolog.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.support import raw_records as raw
from tests.support.at_once import at_once
from tests.support.memory_broker import NOW_MS, MemoryBroker, Wire
from tests.support.plain_produce import HANDLERS_WITH_PLAIN_PRODUCE

NAMES = ("a", "b", "never made", "__consumer_offsets")
COUNTED = (REQUESTS, ERRORS, RECEIVED, SENT)
LAST_VERSION = 13
SMALL = {"segment.bytes": "600", "index.interval.bytes": "100", "segment.index.bytes": "240"}


def framed(request: ProduceRequest, version: int, correlation_id: int) -> bytes:
    head = struct.pack(">hhih2s", 0, version, correlation_id, 2, b"me") + (b"\0" if version >= 9 else b"")
    body = head + encode(request, version)
    return struct.pack(">i", len(body)) + body


def record_set(chance: random.Random, version: int) -> bytes | None:
    """What a producer may send, right or wrong."""
    time = NOW_MS + chance.choice((0, 0, -1, 5, -10_000_000, 100_000))
    count = chance.choice((1, 1, 1, 2, 40))
    key = chance.choice((None, b"k"))
    kind = chance.choice(("plain", "plain", "plain", "producer", "wrong", "old", "short", "transaction", "null"))
    records = [raw.record(b"v" * chance.choice((0, 3, 200)), key, n, n) for n in range(count)]
    if kind == "plain":
        return raw.batch(records, base_timestamp=time, max_timestamp=time + count - 1)
    if kind == "producer":
        return raw.batch(
            records, base_timestamp=time, producer=(7, chance.choice((0, 0, 1)), chance.choice((0, 1, 2, 3)))
        )
    if kind == "wrong":
        wrong = chance.choice(
            ({"crc": 1}, {"count": 9}, {"last_delta": 7}, {"magic": 3}, {"base_offset": 4}, {"attributes": 4})
        )
        return raw.batch(records, base_timestamp=time, **({"count": count} | wrong))
    if kind == "old":
        return raw.message(b"v", key, magic=chance.choice((0, 1)), timestamp=time)
    if kind == "transaction":
        return raw.batch(records, base_timestamp=time, attributes=0x10, producer=(7, 0, 0))
    if kind == "null" and version >= 3 and chance.random() < 0.3:
        return None
    return chance.randbytes(chance.choice((0, 5, 70)))


def produce(chance: random.Random, version: int, ids: list[bytes]) -> ProduceRequest:
    topics = []
    for _ in range(chance.choice((0, 1, 1, 1, 1, 2, 3))):
        data = [
            PartitionProduceData(index=chance.choice((0, 0, 1, 2, -1, 9)), records=record_set(chance, version))
            for _ in range(chance.choice((0, 1, 1, 1, 2, 3)))
        ]
        if version > 12:
            topics.append(TopicProduceData(topic_id=chance.choice(ids), partition_data=data))
        else:
            topics.append(TopicProduceData(name=chance.choice(NAMES), partition_data=data))
    acks = chance.choice((1, 1, 1, -1, 0, 2))
    transaction = "x" if version >= 3 and chance.random() < 0.1 else None
    return ProduceRequest(transactional_id=transaction, acks=acks, timeout_ms=100, topic_data=topics)


class Side:
    """One of the two brokers, and what it has said."""

    def __init__(self, memory: MemoryBroker) -> None:
        self.memory = memory
        self.wires: list[Wire] = []

    def wire(self, index: int) -> Wire:
        """Conversation `index`; a new one where the last has ended."""
        while len(self.wires) <= index:
            self.wires.append(self.memory.connect())
        return self.wires[index]

    def change(self, what: str, name: str) -> None:
        cluster = self.memory.broker.cluster
        if what == "make" and name not in cluster.topics:
            at_once(cluster.create_topics, [NewTopic(name, 2, 1, SMALL)])
        elif what == "delete" and name in cluster.topics:
            at_once(cluster.delete_topics, {name: cluster.topics[name].id})
        elif what == "grow" and name in cluster.topics:
            cluster.topics[name].put(cluster.topics[name].partition_count, None)

    def go_on(self) -> None:
        """Those whose conversations have ended come again."""
        for wire in self.wires:
            if wire.closed:
                wire.conversation.lost()
        self.wires = [wire for wire in self.wires if not wire.closed]
        self.memory.clock.advance(7)

    def seen(self) -> dict[str, Any]:
        """Answers, what lies on the disk, and counts."""
        metrics, storage = self.memory.broker.metrics, self.memory.storage
        logs = {place: one for place, one in self.memory.broker.logs.partitions.items() if place[0] in NAMES[:2]}
        return {
            "answers": [bytes(wire.received) for wire in self.wires],
            "closed": [wire.closed for wire in self.wires],
            "offsets": {place: (one.log_end_offset, one.high_watermark) for place, one in logs.items()},
            "files": {
                f"{one.directory}/{file}": storage.read_all(f"{one.directory}/{file}")
                for one in logs.values()
                for file in storage.list_dir(one.directory)
                if file.endswith(("log", "index"))
            },
            "counts": ["".join(lines(family, metrics.samples(family))) for family in COUNTED],
        }


async def one_tick(sides: list[Side], chance: random.Random, ids: list[bytes], number: int) -> None:
    for _ in range(chance.choice((1, 1, 2, 3))):
        index = chance.randrange(3)
        frames = b""
        for each in range(chance.choice((1, 1, 2, 5))):
            version = chance.randrange(LAST_VERSION + 1)
            frames += framed(produce(chance, version, ids), version, number * 100 + each)
        for side in sides:
            side.wire(index).conversation.receive(frames)
    for side in sides:
        await asyncio.sleep(0)
        await side.memory.broker.committer.drain()


async def compare(seed: int) -> None:
    chance = random.Random(seed)
    flags: dict[str, object] = {
        "horolog_acks_all_sync": str(chance.random() < 0.8).lower(),
        "log_flush_interval_messages": chance.choice((2, 2**63 - 1)),
        "transaction_state_log_num_partitions": 1,
        "offsets_topic_num_partitions": 1,
    }
    async with MemoryBroker(**flags) as first, MemoryBroker(**flags) as second:
        second.dispatcher = Dispatcher(second.broker, HANDLERS_WITH_PLAIN_PRODUCE)
        sides = [Side(first), Side(second)]
        for side in sides:
            ours = random.Random(seed)
            side.memory.broker.cluster._new_topic_id = lambda ours=ours: ours.randbytes(16)
            side.change("make", "a")
        ids = [bytes(16), first.broker.cluster.topics["a"].id]
        for number in range(chance.choice((2, 6, 12))):
            if chance.random() < 0.4:
                what, name = chance.choice(("make", "make", "delete", "grow")), chance.choice(("a", "b"))
                for side in sides:
                    side.change(what, name)
                ids += [topic.id for topic in first.broker.cluster.topics.values() if topic.id not in ids]
            if chance.random() < 0.2:
                for side in sides:
                    side.memory.storage.fail("write", "/a-0/0000", times=1)
            await one_tick(sides, chance, ids, number)
            assert sides[0].seen() == sides[1].seen()
            for side in sides:
                side.go_on()


@settings(max_examples=60)
@given(st.integers(0, 1 << 32))
@example(171)  # one answer leaves before the refusal of an acks=0 closes the connection, in one tick
def test_any_requests_are_answered_as_plainly_as_can_be(seed: int) -> None:
    asyncio.run(compare(seed))


def test_the_plain_handler_is_another_one() -> None:
    served = {key: one for key, one in HANDLERS.items() if HANDLERS_WITH_PLAIN_PRODUCE[key] is not one}
    assert [one.flat for one in served.values()] == [True]
