"""An incremental fetch looks at what may have news only, and answers as if it had looked at all: whatever came before."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from horolog.broker.log.partition import append_marker, log_start
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from horolog.protocol.records.control import Marker
from tests.support import raw_records as raw
from tests.support.at_once import at_once
from tests.support.memory_broker import NOW_MS, MemoryBroker, Wire

VERSION = 11
TOPICS = ("t", "u")
PARTITIONS = 3
PLACES = st.tuples(st.sampled_from(TOPICS), st.sampled_from([*range(PARTITIONS), *range(PARTITIONS), PARTITIONS]))
"""Now and then one more than there are."""

CHANGES = st.one_of(
    st.tuples(st.just("append"), PLACES, st.sampled_from([1, 900])),
    st.tuples(st.just("begin"), PLACES, st.integers(0, 1)),
    st.tuples(st.just("end"), PLACES, st.integers(0, 1)),
    st.tuples(st.just("cut"), PLACES, st.just(0)),
    st.tuples(st.just("lead"), PLACES, st.just(0)),
    st.tuples(st.just("fail"), PLACES, st.just(0)),
    st.tuples(st.just("delete"), PLACES, st.just(0)),
    st.tuples(st.just("create"), PLACES, st.just(0)),
    st.tuples(st.just("settings"), PLACES, st.just(0)),
)
FOLLOW = -2
"""Go on where the partition ends now."""
ASKED = st.tuples(PLACES, st.sampled_from([FOLLOW, FOLLOW, 0, 1, 9]), st.sampled_from([100, 2000]))
AGAIN = ((), 0, 2**20, 1)
"""Nothing is forgotten, uncommitted records are read, and neither is the answer limited nor has it to wait."""
TERMS = st.tuples(
    st.lists(PLACES, max_size=1),
    st.sampled_from([0, 0, 1]),
    st.sampled_from([0, 300, 2**20]),
    st.sampled_from([0, 1, 5000]),
)
FETCHES = st.one_of(
    st.tuples(st.just("fetch"), st.just(()), st.just(AGAIN)),
    st.tuples(st.just("fetch"), st.just(()), TERMS),
    st.tuples(st.just("fetch"), st.lists(ASKED, max_size=3), TERMS),
)
EVERYTHING = st.sampled_from([FOLLOW, FOLLOW, 0]).map(
    lambda offset: tuple(((name, index), offset, 2000) for name in TOPICS for index in range(PARTITIONS))
)
CHANGED_BETWEEN = st.lists(CHANGES, max_size=3)


class Consumer:
    """One session; `is_thorough` has it look at everything each time."""

    def __init__(self, memory: MemoryBroker, *, is_thorough: bool) -> None:
        self.memory = memory
        self.wire: Wire = memory.connect()
        self.is_thorough = is_thorough
        self.id = self.epoch = 0

    def send(self, fields: dict[str, Any], wait_ms: int) -> FetchRequest:
        request = FetchRequest(max_wait_ms=wait_ms, session_id=self.id, session_epoch=self.epoch, **fields)
        if self.is_thorough:
            self.forget_all()
        self.wire.send(request, VERSION)
        return request

    def forget_all(self) -> None:
        session = self.memory.broker.fetch_sessions._sessions.get(self.id)
        if session is not None and session.watch is not None:
            session.watch._seen = -1

    async def take(self, request: FetchRequest) -> Any:
        response = await self.wire.take(request, VERSION)
        self.id, response.session_id = response.session_id, 0
        self.epoch += 1
        return response


class World:
    def __init__(self, memory: MemoryBroker) -> None:
        self.memory = memory
        self.sequences: dict[tuple[str, int, int], int] = {}
        for name in TOPICS:
            memory.topic(name, PARTITIONS)
            for index in range(PARTITIONS):
                self.change("append", (name, index), 1)
        self.consumers = [Consumer(memory, is_thorough=False), Consumer(memory, is_thorough=True)]

    def partition(self, place: tuple[str, int]) -> Any:
        topic = self.memory.broker.cluster.topics.get(place[0])
        found = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if topic is None else topic.find(place[1])
        return None if isinstance(found, ErrorCode) or found.condition.fault is not None else found

    def change(self, kind: str, place: tuple[str, int], number: int) -> None:
        cluster, partition = self.memory.broker.cluster, self.partition(place)
        if kind == "delete" and place[0] in cluster.topics:
            at_once(cluster.delete_topics, {place[0]: cluster.topics[place[0]].id})
            self.sequences = {key: value for key, value in self.sequences.items() if key[0] != place[0]}
        elif kind == "create" and place[0] not in cluster.topics:
            self.memory.topic(place[0], PARTITIONS)
        elif kind == "settings" and place[0] in cluster.topics:
            cluster.topics[place[0]].configure({}, cluster.topics[place[0]].config)
        elif partition is not None:
            self._change(kind, place, number, partition)

    def _change(self, kind: str, place: tuple[str, int], number: int, partition: Any) -> None:
        if kind == "append":
            self._append(partition, raw.batch([raw.record(b"x" * number)], base_timestamp=NOW_MS, max_timestamp=NOW_MS))
        elif kind in ("begin", "end"):
            key = (*place, number)
            sequence = self.sequences.get(key, 0)
            if kind == "begin":
                self.sequences[key] = sequence + 1
                producer = (number, 0, sequence)
                times = {"base_timestamp": NOW_MS, "max_timestamp": NOW_MS}
                self._append(partition, raw.batch([raw.record(b"x")], attributes=0x10, producer=producer, **times))
            elif key in self.sequences:
                append_marker(partition, number, 0, Marker(sequence % 2 == 0, 0), NOW_MS)
                self._written(partition)
        elif kind == "cut":
            log_start.delete_records_before(partition, partition.high_watermark)
        elif kind == "lead":
            self.memory.broker.logs.resources.changes.note()
            partition.lead(partition.leader_epoch + 1)
        elif kind == "fail":
            partition.condition.go_offline("a test says so")

    def _append(self, partition: Any, records: bytes) -> None:
        partition.append(records, NOW_MS, produce_version=9)
        self._written(partition)

    def _written(self, partition: Any) -> None:
        partition.flush()
        self.memory.broker.waiting.changed([partition])

    def fields(self, asked: Sequence[Any], terms: tuple[Any, ...]) -> dict[str, Any]:
        forgotten, isolation, max_bytes, min_bytes = terms
        topics = []
        for place, offset, most in asked:
            partition = self.partition(place)
            at = offset if offset != FOLLOW else 0 if partition is None else partition.high_watermark
            part = FetchPartition(partition=place[1], fetch_offset=at, partition_max_bytes=most)
            topics.append(FetchTopic(topic=place[0], partitions=[part]))
        return {
            "topics": topics,
            "forgotten_topics_data": [ForgottenTopic(topic=name, partitions=[index]) for name, index in forgotten],
            "isolation_level": isolation,
            "max_bytes": max_bytes,
            "min_bytes": min_bytes,
        }


HIDDEN_AND_THEN_SHOWN = [
    (("fetch", (), AGAIN), [("begin", ("t", 0), 0)]),
    (("fetch", (), ((), 1, 2**20, 1)), []),
    (("fetch", (), AGAIN), []),
]


@example(tuple(((name, index), FOLLOW, 2000) for name in TOPICS for index in range(PARTITIONS)), HIDDEN_AND_THEN_SHOWN)
@given(EVERYTHING, st.lists(st.tuples(FETCHES, CHANGED_BETWEEN), min_size=2, max_size=12))
def test_the_answer_is_that_of_a_look_at_everything(everything: Any, rounds: list[Any]) -> None:
    async def play() -> None:
        async with MemoryBroker() as memory:
            world = World(memory)
            for (_, asked, terms), changes in [(("fetch", everything, AGAIN), ()), *rounds]:
                fields = world.fields(asked, terms)
                requests = [consumer.send(fields, 0) for consumer in world.consumers]
                one, other = [
                    await consumer.take(request) for consumer, request in zip(world.consumers, requests, strict=True)
                ]
                assert one == other
                for change in changes:
                    world.change(*change)

    asyncio.run(play())


@given(
    EVERYTHING,
    st.lists(st.one_of(CHANGES, FETCHES), max_size=12),
    st.lists(CHANGES, max_size=6),
    st.sampled_from([1, 1, 950]),
)
def test_a_fetch_that_waits_ends_when_a_look_at_everything_would_end_it(
    everything: Any, history: list[Any], meanwhile: list[Any], min_bytes: int
) -> None:
    async def play() -> None:
        async with MemoryBroker() as memory:
            world = World(memory)
            for kind, first, second in [("fetch", everything, AGAIN), *history]:
                if kind != "fetch":
                    world.change(kind, first, second)
                    continue
                fields = world.fields(first, second)
                for consumer in world.consumers:
                    await consumer.take(consumer.send(fields, 0))
            fields = world.fields((), (*AGAIN[:3], min_bytes))
            requests = [consumer.send(fields, 60_000) for consumer in world.consumers]
            for kind, place, number in meanwhile:
                world.consumers[1].forget_all()
                world.change(kind, place, number)
                assert len({consumer.wire.answers() for consumer in world.consumers}) == 1
            world.consumers[1].forget_all()
            memory.broker.waiting.expire_all()
            one, other = [
                await consumer.take(request) for consumer, request in zip(world.consumers, requests, strict=True)
            ]
            assert one == other

    asyncio.run(play())
