"""Fetch beside a handler that says it as plainly as can be: the same answers at the same moments and the same counts, whatever comes."""

from __future__ import annotations

import asyncio
import random
import struct
from itertools import count
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from horolog.broker.base.metrics import lines
from horolog.broker.cluster.new_topics import NewTopic
from horolog.broker.handlers import HANDLERS, fetch_sessions
from horolog.broker.log.partition import append_marker, log_start
from horolog.broker.network.dispatch import Dispatcher
from horolog.broker.network.meters import ERRORS, RECEIVED, REQUESTS, SENT
from horolog.protocol.compile import encode
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic, ReplicaState
from horolog.protocol.records.control import Marker
from tests.support import raw_records as raw
from tests.support.at_once import at_once
from tests.support.memory_broker import NOW_MS, MemoryBroker, Wire
from tests.support.plain_fetch import HANDLERS_WITH_PLAIN_FETCH

NAMES = ("a", "b", "never made")
COUNTED = (REQUESTS, ERRORS, RECEIVED, SENT)
LAST_VERSION = 18
CONFIGS: tuple[dict[str, str], ...] = (
    {},
    {"segment.bytes": "600", "index.interval.bytes": "100", "segment.index.bytes": "240"},
    {"compression.type": "zstd"},
    {"message.downconversion.enable": "false"},
)
KINDS = ("append", "append", "append", "old", "begin", "end", "cut", "lead", "fail", "make", "delete")


class Side:
    """One of the two brokers, and what it has said."""

    def __init__(self, memory: MemoryBroker, seed: int) -> None:
        self.memory = memory
        self.wires: list[Wire] = []
        self.session_ids = count(1)
        memory.broker.upkeep.stop()  # which opens what went offline again, at a moment of its own
        ours = random.Random(seed)
        memory.broker.cluster._new_topic_id = lambda: ours.randbytes(16)

    def wire(self, index: int) -> Wire:
        while len(self.wires) <= index:
            self.wires.append(self.memory.connect())
        return self.wires[index]

    def change(self, kind: str, name: str, index: int, chance: random.Random) -> None:
        cluster = self.memory.broker.cluster
        topic = cluster.topics.get(name)
        if kind == "make" and topic is None:
            at_once(cluster.create_topics, [NewTopic(name, 2, 1, dict(chance.choice(CONFIGS)))])
        elif kind == "delete" and topic is not None:
            at_once(cluster.delete_topics, {name: topic.id})
        elif topic is not None:
            partition = topic.find(index)
            if not isinstance(partition, ErrorCode) and partition.condition.fault is None:
                self._change(kind, partition, chance)

    def _change(self, kind: str, partition: Any, chance: random.Random) -> None:
        sequence = partition.log_end_offset
        if kind == "append":
            records = [raw.record(b"x" * chance.choice((1, 90)), None, n, n) for n in range(chance.choice((1, 3)))]
            self._append(partition, raw.batch(records, base_timestamp=NOW_MS, max_timestamp=NOW_MS + len(records) - 1))
        elif kind == "old":
            self._append(partition, raw.message(b"v" * 30, magic=chance.choice((0, 1)), timestamp=NOW_MS), version=2)
        elif kind == "begin":
            times = {"base_timestamp": NOW_MS, "max_timestamp": NOW_MS}
            producer = (sequence + 7, 0, 0)
            self._append(partition, raw.batch([raw.record(b"x")], attributes=0x10, producer=producer, **times))
        elif kind == "end":
            first = partition.producers.first_undecided_offset
            if first is not None:
                append_marker(partition, first + 7, 0, Marker(chance.random() < 0.4, 0), NOW_MS)
                self._written(partition)
        elif kind == "cut":
            log_start.delete_records_before(partition, chance.randint(0, partition.high_watermark))
        elif kind == "lead":
            self.memory.broker.logs.resources.changes.note()
            partition.lead(partition.leader_epoch + 1)
        elif kind == "fail" and chance.random() < 0.2:
            partition.condition.go_offline("a test says so")

    def _append(self, partition: Any, records: bytes, version: int = 9) -> None:
        partition.append(records, NOW_MS, produce_version=version)
        self._written(partition)

    def _written(self, partition: Any) -> None:
        partition.flush()
        self.memory.broker.waiting.changed([partition])

    def seen(self) -> dict[str, Any]:
        metrics = self.memory.broker.metrics
        return {
            "answers": [bytes(wire.received) for wire in self.wires],
            "closed": [wire.closed for wire in self.wires],
            "waiting": len(self.memory.broker.waiting),
            "counts": ["".join(lines(family, metrics.samples(family))) for family in COUNTED],
        }


def a_fetch(chance: random.Random, version: int, ids: list[bytes], sessions: dict[int, int]) -> FetchRequest:
    def place() -> dict[str, Any]:
        return {"topic_id": chance.choice(ids)} if version >= 13 else {"topic": chance.choice(NAMES)}

    topics = [
        FetchTopic(
            **place(),
            partitions=[
                FetchPartition(
                    partition=chance.choice((0, 0, 1, 2)),
                    fetch_offset=chance.choice((0, 1, 2, 3, 5, 9, 100)),
                    partition_max_bytes=chance.choice((0, 90, 300, 2000, 2000, 1 << 20, -1)),
                    current_leader_epoch=chance.choice((-1, -1, -1, 0, 1)) if version >= 9 else -1,
                    last_fetched_epoch=chance.choice((-1, -1, -1, 0, 1)) if version >= 12 else -1,
                )
                for _ in range(chance.choice((1, 1, 2)))
            ],
        )
        for _ in range(chance.choice((0, 0, 1, 1, 2, 3)))
    ]
    request = FetchRequest(
        max_wait_ms=chance.choice((0, 60_000, 60_000)), min_bytes=chance.choice((0, 1, 1, 400)), topics=topics
    )
    if version >= 3:
        request.max_bytes = chance.choice((0, 200, 200, 1 << 20, 1 << 20, -1))
    if version >= 4:
        request.isolation_level = chance.choice((0, 0, 1, 1, 2)) if chance.random() < 0.3 else chance.choice((0, 1))
    if chance.random() < 0.1:
        if version >= 15:
            request.replica_state = ReplicaState(replica_id=chance.choice((-1, 3, 3)))
        else:
            request.replica_id = 3
    if version >= 7 and chance.random() < 0.6:
        request.session_id = chance.choice((0, *sessions, 99))
        request.session_epoch = chance.choice((0, 1, *[sessions.get(request.session_id, 0)] * 6))
        if chance.random() < 0.2:
            request.forgotten_topics_data = [ForgottenTopic(**place(), partitions=[0])]
    return request


def framed(request: FetchRequest, version: int, correlation_id: int) -> bytes:
    head = struct.pack(">hhih2s", 1, version, correlation_id, 2, b"me") + (b"\0" if version >= 12 else b"")
    body = head + encode(request, version)
    return struct.pack(">i", len(body)) + body


def epochs(side: Side) -> dict[int, int]:
    """What each session expects next."""
    return {number: session.epoch for number, session in side.memory.broker.fetch_sessions._sessions.items()}


def change_both(sides: list[Side], chance: random.Random) -> None:
    drawn = chance.randrange(1 << 30)
    kind, name, index = chance.choice(KINDS), chance.choice(NAMES[:2]), chance.choice((0, 0, 1))
    for side in sides:
        side.change(kind, name, index, random.Random(drawn))


def ask_both(
    sides: list[Side], chance: random.Random, ids: list[bytes], number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    version, index = chance.randrange(LAST_VERSION + 1), chance.randrange(3)
    request = a_fetch(chance, version, ids, epochs(sides[0]))
    frame = framed(request, version, number)
    for side in sides:
        if request.session_id:  # its clients send the next request when they have the answer to the one before
            side.memory.broker.waiting.expire_all()
        monkeypatch.setattr(fetch_sessions, "_random_id", lambda ours=side.session_ids: next(ours))
        side.wire(index).conversation.receive(frame)


async def compare(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(seed)
    flags: dict[str, Any] = {
        "fetch_max_bytes": chance.choice((1024, 57671680)),
        "horolog_fetch_session_partitions_max": 12,
        "advertised_listeners": "PLAINTEXT://the-broker:9092",  # of both, as refusals name the leader
    }
    async with MemoryBroker(**flags) as first, MemoryBroker(**flags) as second:
        second.dispatcher = Dispatcher(second.broker, HANDLERS_WITH_PLAIN_FETCH)
        sides = [Side(first, seed), Side(second, seed)]
        begun = [("make", "a", 0), ("make", "b", 0)]
        begun += [("append", name, index) for name in NAMES[:2] for index in (0, 1)] * chance.choice((0, 2, 5))
        for side in sides:
            ours = random.Random(seed)
            for each in begun:
                side.change(*each, ours)
        ids = [bytes(16)]
        for number in range(chance.choice((10, 40, 80))):
            ids += [topic.id for topic in first.broker.cluster.topics.values() if topic.id not in ids]
            if chance.random() < 0.4:
                change_both(sides, chance)
            else:
                ask_both(sides, chance, ids, number, monkeypatch)
            await asyncio.sleep(0)
            assert sides[0].seen() == sides[1].seen()
            if chance.random() < 0.2:
                for side in sides:
                    side.memory.broker.waiting.expire_all()
                assert sides[0].seen() == sides[1].seen()


@given(st.integers(0, 1 << 32))
@example(3)  # an older version goes on with a session whose client has named the epoch it fetched last
def test_any_fetches_are_answered_as_plainly_as_can_be(seed: int) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        asyncio.run(compare(seed, monkeypatch))


def test_the_plain_handler_is_another_one() -> None:
    served = {key: one for key, one in HANDLERS.items() if HANDLERS_WITH_PLAIN_FETCH[key] is not one}
    assert [one.flat for one in served.values()] == [True]
