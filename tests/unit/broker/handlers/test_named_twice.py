"""Requests that name a thing twice, things that do not exist, or things that the user may not touch: answered as Kafka does.

`named_twice.jsonl` has them with the answers of Kafka 4.3.1, in the order in which they were sent; `named_twice_before_4.jsonl` has those in
versions that Kafka 4 has dropped, with the answers of Kafka 3.9.2 beside a ZooKeeper. `tests.support.frames` explains the form. The
world is that of `served`: three topics, and `alice` who may use all of it except `secret` and what has other names.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from horolog.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.support import raw_records as raw
from tests.support.frames import parts, request_of, shown
from tests.support.guarded_broker import GuardedBroker, acl
from tests.support.memory_broker import NOW_MS

RECORD = raw.batch([raw.record(b"v")], base_timestamp=NOW_MS, max_timestamp=NOW_MS)
RECORDS = {("t", 0): 3, ("t", 1): 2, ("u", 0): 1, ("secret", 0): 1}
DATA = ("named_twice", "named_twice_before_4")
FRAMES = {
    name: [json.loads(line) for line in Path(__file__).with_name(f"{name}.jsonl").read_text().splitlines()]
    for name in DATA
}
OF_GROUPS = {"OffsetCommit", "OffsetFetch", "OffsetDelete", "DescribeGroups", "DeleteGroups"}
"""APIs whose answers depend on each other's requests."""


@asynccontextmanager
async def served() -> AsyncIterator[GuardedBroker]:
    async with GuardedBroker() as memory:
        for name in ("t", "u", "secret"):
            memory.topic(name, partitions=2)
        memory.put(*(acl("alice", "ALL", name=name) for name in ("t", "u", "x")))
        memory.put(*(acl("alice", "ALL", "GROUP", name, prefixed=True) for name in ("g", "g2")))
        producer = memory.wire("admin")
        for (name, index), count in RECORDS.items():
            data = TopicProduceData(name=name, partition_data=[PartitionProduceData(index=index, records=RECORD)])
            for _ in range(count):
                answer = await producer.ask(ProduceRequest(acks=1, timeout_ms=1000, topic_data=[data]), 9)
                assert answer.responses[0].partition_responses[0].error_code == 0
        yield memory


async def differences(frames: list[Any]) -> list[Any]:
    async with served() as memory:
        ids = {name: topic.id for name, topic in memory.broker.cluster.topics.items()}
        names = {topic_id: name for name, topic_id in ids.items()}
        found = []
        for api, version, user, fields, expected in frames:
            answer = await memory.wire(user).ask(request_of(api, fields, ids), version)
            ours = shown(answer, names)
            if parts(ours) != parts(expected):
                found.append((api, version, user, fields, {"Kafka": expected, "horolog": ours}))
        return found


ALONE = sorted({(name, each[0]) for name in DATA for each in FRAMES[name] if each[0] not in OF_GROUPS})


@pytest.mark.parametrize(("data", "api"), ALONE)
async def test_answers_have_the_parts_that_kafkas_have(data: str, api: str) -> None:
    assert await differences([each for each in FRAMES[data] if each[0] == api]) == []


@pytest.mark.parametrize("data", DATA)
async def test_groups_and_their_offsets_are_answered_as_kafka_answers_them(data: str) -> None:
    assert await differences([each for each in FRAMES[data] if each[0] in OF_GROUPS]) == []
