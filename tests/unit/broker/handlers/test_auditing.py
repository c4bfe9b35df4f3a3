"""What the audit is told of requests, for every API: what was refused, and what was changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from horolog.broker.handlers import HANDLERS
from horolog.broker.handlers.auditing import auditing
from horolog.broker.handlers.authorization.table import NEEDS
from horolog.broker.handlers.gate import open_gate
from horolog.protocol.apis import API, ApiKey
from horolog.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from horolog.protocol.messages.offsets import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from horolog.protocol.messages.topics import CreatableTopic, CreateTopicsRequest, DeleteTopicsRequest, DeleteTopicState
from tests.support.audited import Kept, audited, trail
from tests.support.every_request import ABSENT, OPEN, SECRET, World, request_of
from tests.support.guarded_broker import HOST, GuardedBroker, acl
from tests.support.memory_broker import MemoryBroker

FREE = {"SASL_HANDSHAKE", "SASL_AUTHENTICATE", "API_VERSIONS"}
OF_TOKENS = {"CREATE_DELEGATION_TOKEN", "RENEW_DELEGATION_TOKEN", "EXPIRE_DELEGATION_TOKEN"}
"""They need no right for a token of one's own: see their tests."""
SILENT = {"LIST_GROUPS", "LIST_TRANSACTIONS", "DESCRIBE_CLUSTER", "DESCRIBE_DELEGATION_TOKEN"}
"""They refuse nothing, and leave out what may not be described."""
CHANGING = ("CREATE ", "CREATE_", "DELETE", "ALTER")


def world_of(memory: MemoryBroker) -> World:
    for name in (OPEN, SECRET, "kept"):
        memory.topic(name)
    return World({name: topic.id for name, topic in memory.broker.cluster.topics.items()})


def versions(key: ApiKey) -> Iterator[int]:
    return iter(range(HANDLERS[key].min_version, HANDLERS[key].max_version + 1))


def test_apis_that_need_a_right_to_change_something_say_what_they_change() -> None:
    needing = {key for key, one in NEEDS.items() if any(word in one.told for word in CHANGING)}
    assert needing - {ApiKey.METADATA, ApiKey.STREAMS_GROUP_HEARTBEAT} == {
        key for key, one in NEEDS.items() if one.changes is not None
    }


@pytest.mark.parametrize(
    "key", [each for each in HANDLERS if each.name not in FREE | SILENT | OF_TOKENS], ids=lambda one: one.name
)
async def test_who_has_nothing_is_told_of_at_every_api(key: ApiKey) -> None:
    async with GuardedBroker() as memory:
        world, kept = world_of(memory), audited(memory)
        for version in versions(key):
            await memory.wire().ask(request_of(key, world, version), version)
            events = kept.events()
            assert events, version
            # an id that no topic has is nobody's secret: the handler answers that
            assert {each["outcome"] for each in events if each["event"] == "change"} <= {"UNKNOWN_TOPIC_ID"}
            for each in (one for one in events if one["event"] != "change"):
                kind, _, name = each["resource"].partition(":")
                assert each["event"] == "refusal"
                assert each["request"] == f"{API[key].name} v{version}"
                assert (each["principal"], each["address"], each["listener"]) == ("User:alice", HOST, "PLAINTEXT")
                assert each["client_id"] == "test"
                assert each["outcome"] == f"{kind.upper()}_AUTHORIZATION_FAILED"
                assert name


@pytest.mark.parametrize("key", [each for each in HANDLERS if each.name not in FREE], ids=lambda one: one.name)
async def test_who_may_do_everything_is_told_of_where_something_is_changed(key: ApiKey) -> None:
    async with GuardedBroker() as memory:
        world, kept = world_of(memory), audited(memory)
        changes = NEEDS[key].changes
        for version in versions(key):
            request: Any = request_of(key, world, version)
            if hasattr(request, "validate_only"):
                request.validate_only = False
            await memory.wire("admin").ask(request, version)
            events = kept.events()
            assert bool(events) is (changes is not None and key is not ApiKey.DELETE_ACLS), "no rule is there to remove"
            for each in events:
                assert changes is not None
                assert (each["event"], each["operation"]) == ("change", changes.operation.name)
                assert each["principal"] == "User:admin"
                assert each.get("resource") or each["outcome"] != "NONE"


async def test_changes_are_told_without_an_authorizer_too() -> None:
    async with MemoryBroker() as memory:
        kept = audited(memory)
        request = CreateTopicsRequest(topics=[CreatableTopic(name="t", num_partitions=1, replication_factor=1)])
        await memory.connect().ask(request, 7)
        await memory.connect().ask(request, 7)
        assert kept.told("principal", "resource", "outcome") == [
            ("User:ANONYMOUS", "topic:t", "NONE"),
            ("User:ANONYMOUS", "topic:t", "TOPIC_ALREADY_EXISTS"),
        ]


async def test_a_part_is_refused_or_changed_but_never_both() -> None:
    async with GuardedBroker() as memory:
        kept = audited(memory)
        memory.put(acl("alice", "CREATE", name="mine"))
        topics = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in ("mine", "yours")]
        answer = await memory.wire().ask(CreateTopicsRequest(topics=topics), 7)
        assert len(answer.topics) == 2
        assert kept.told("event", "resource", "operation") == [
            ("refusal", "topic:yours", "CREATE"),
            ("change", "topic:mine", "CREATE"),
        ]


async def test_what_is_only_validated_or_asked_by_peers_is_no_change() -> None:
    async with MemoryBroker() as memory:
        kept = audited(memory)
        topics = [CreatableTopic(name="t", num_partitions=1, replication_factor=1)]
        await memory.connect().ask(CreateTopicsRequest(topics=topics, validate_only=True), 7)
        wire = memory.connect()
        wire.conversation.listener = "peers"
        await wire.ask(CreateTopicsRequest(topics=topics), 7)
        assert "t" in memory.broker.cluster.topics
        assert kept.events() == []


async def test_a_fetch_is_refused_each_time_that_it_looks() -> None:
    async with GuardedBroker() as memory:
        memory.topic("t")
        kept = audited(memory)
        partitions = [FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)]
        for replica_id in (-1, 1):
            request = FetchRequest(replica_id=replica_id, topics=[FetchTopic(topic="t", partitions=partitions)])
            await memory.wire().ask(request, 11)
        assert set(kept.told("operation", "resource")) == {
            ("READ", "topic:t"),
            ("CLUSTER_ACTION", "cluster:kafka-cluster"),
        }


async def test_topics_that_are_hidden_in_a_group_are_told() -> None:
    async with GuardedBroker() as memory:
        kept = audited(memory)
        memory.put(acl("alice", "READ", "GROUP", "g"), acl("alice", "READ", name="a"))
        topics = [OffsetFetchRequestTopics(name=name, partition_indexes=[0]) for name in "ab"]
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=topics)])
        await memory.wire().ask(request, 8)
        assert kept.told("event", "operation", "resource") == [("refusal", "DESCRIBE", "topic:b")]


async def test_deletions_name_topics_or_their_ids() -> None:
    async with GuardedBroker() as memory:
        world, kept = world_of(memory), audited(memory)
        states = [DeleteTopicState(name=None, topic_id=one) for one in (world.id_of("kept"), b"?" * 16)]
        await memory.wire("admin").ask(DeleteTopicsRequest(topics=states, timeout_ms=5000), 6)
        assert sorted(kept.told("resource", "outcome")) == [
            ("topic-id:" + "3f" * 16, "UNKNOWN_TOPIC_ID"),
            ("topic:kept", "NONE"),
        ]
        assert ABSENT not in memory.broker.cluster.topics


async def test_an_audit_that_fails_breaks_no_request(monkeypatch: Any, caplog: Any) -> None:
    async with MemoryBroker() as memory:
        kept = audited(memory)
        monkeypatch.setattr(kept, "take", None)
        topics = [CreatableTopic(name="t", num_partitions=1, replication_factor=1)]
        answer = await memory.connect().ask(CreateTopicsRequest(topics=topics), 7)
        assert answer.topics[0].error_code == 0
        assert "the audit could not record a CreateTopics v7" in caplog.text


def test_other_apis_keep_their_function() -> None:
    def handle(*_: Any) -> None:
        raise AssertionError("not called by a gate")

    gate = auditing(trail(Kept()), open_gate)
    assert gate(ApiKey.PRODUCE, handle) is handle
    assert gate(ApiKey.CREATE_TOPICS, handle) is not handle
