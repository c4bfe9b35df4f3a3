"""From a frame to its handler: the gate between decoding and the handler, and what ends a conversation there."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import pytest

from horolog.broker.base.principal import Principal
from horolog.broker.handlers import HANDLERS, Handler
from horolog.broker.handlers.context import BrokerView, RequestContext
from horolog.broker.handlers.refusals import refusing
from horolog.broker.network.dispatch import Dispatcher
from horolog.broker.security.quota_entities import REQUEST, USER, entity_of, rule_of
from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from horolog.protocol.messages.groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribeGroupsRequest,
)
from horolog.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from horolog.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.support import raw_records as raw
from tests.support.conversations import framed
from tests.support.memory_broker import MemoryBroker, Wire

if TYPE_CHECKING:
    from collections.abc import Iterator

    from horolog.broker.handlers import HandlerFunction

ALICE = Principal("User", "alice")


class OnlyAlice:
    """Groups are deleted by alice alone, and nobody deletes one whose name begins with `_`."""

    def __init__(self) -> None:
        self.asked: list[ApiKey] = []

    def gate(self, key: ApiKey, handle: HandlerFunction) -> HandlerFunction:
        self.asked.append(key)
        if key is not ApiKey.DELETE_GROUPS:
            return handle

        def guarded(broker: BrokerView, request: DeleteGroupsRequest, context: RequestContext) -> object | None:
            allowed = [each for each in request.groups_names if context.principal == ALICE and not each.startswith("_")]
            refused = [each for each in request.groups_names if each not in allowed]
            request.groups_names = allowed
            context.amend(lambda answer: self._with_denied(answer, refused))
            return handle(broker, request, context)

        return guarded

    @staticmethod
    def _with_denied(answer: DeleteGroupsResponse, groups: list[str]) -> DeleteGroupsResponse:
        code = ErrorCode.GROUP_AUTHORIZATION_FAILED
        answer.results += [DeletableGroupResult(group_id=group, error_code=code) for group in groups]
        return answer


def guarded(memory: MemoryBroker, principal: Principal | None = None) -> tuple[Wire, OnlyAlice]:
    gate = OnlyAlice()
    memory.dispatcher = Dispatcher(memory.broker, gate=gate.gate)
    wire = memory.connect()
    if principal is not None:
        wire.conversation.serve_as(principal)
    return wire, gate


async def delete(wire: Wire, *names: str) -> dict[str, ErrorCode]:
    answer = await wire.ask(DeleteGroupsRequest(groups_names=list(names)), 2)
    assert isinstance(answer, DeleteGroupsResponse)
    return {each.group_id: ErrorCode(each.error_code) for each in answer.results}


async def test_what_the_gate_refuses_is_answered_with_its_error_and_the_conversation_goes_on() -> None:
    async with MemoryBroker() as memory:
        wire, _ = guarded(memory)
        assert await delete(wire, "g") == {"g": ErrorCode.GROUP_AUTHORIZATION_FAILED}
        assert not wire.closed
        answer = await wire.ask(MetadataRequest(topics=[]), 4)
        assert answer.brokers


async def test_the_gate_may_let_a_part_of_a_request_through() -> None:
    async with MemoryBroker() as memory:
        wire, _ = guarded(memory, ALICE)
        assert await delete(wire, "g", "_internal") == {
            "g": ErrorCode.GROUP_ID_NOT_FOUND,
            "_internal": ErrorCode.GROUP_AUTHORIZATION_FAILED,
        }


async def test_the_gate_is_asked_once_for_each_api_and_version() -> None:
    async with MemoryBroker() as memory:
        wire, gate = guarded(memory)
        for version in (4, 4, 9, 4, 9):
            await wire.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), version)
        assert gate.asked == [ApiKey.METADATA, ApiKey.METADATA]


async def test_without_a_gate_a_request_goes_straight_to_its_handler() -> None:
    async with MemoryBroker() as memory:
        await memory.connect().ask(MetadataRequest(topics=[]), 4)
        (route,) = memory.dispatcher._routes.values()
        assert route.handle is HANDLERS[ApiKey.METADATA].function


@pytest.mark.parametrize(
    "request_bytes",
    [
        pytest.param(struct.pack(">hhih", 999, 0, 1, -1), id="an api that nobody knows"),
        pytest.param(struct.pack(">hhih", ApiKey.METADATA, 99, 1, -1), id="a version that is not served"),
        pytest.param(struct.pack(">hhih", ApiKey.METADATA, 4, 1, -1) + b"\x7f", id="a body that is cut short"),
        pytest.param(b"\0", id="no header"),
    ],
)
async def test_what_cannot_be_answered_ends_the_conversation(request_bytes: bytes) -> None:
    async with MemoryBroker() as memory:
        wire = memory.connect()
        wire.conversation.receive(framed(request_bytes))
        assert wire.closed
        assert not wire.received


async def test_api_versions_in_a_version_from_the_future_is_answered_as_v0() -> None:
    async with MemoryBroker() as memory:
        wire = memory.connect()
        wire.conversation.receive(framed(struct.pack(">hhih", ApiKey.API_VERSIONS, 99, 7, -1) + b"\0"))
        assert struct.unpack_from(">ih", wire.received, 4) == (7, ErrorCode.UNSUPPORTED_VERSION)
        assert not wire.closed


async def test_another_gate_counts_from_the_next_request_on() -> None:
    async with MemoryBroker() as memory:
        wire = memory.connect()
        request = MetadataRequest(topics=[])
        before = memory.dispatcher.gate
        await wire.ask(request, 4)
        memory.dispatcher.go_by(refusing(lambda *_: ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
        assert (await wire.ask(MetadataRequest(topics=None), 13)).error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        memory.dispatcher.go_by(before)
        await wire.ask(request, 4)
        (route,) = memory.dispatcher._routes.values()
        assert route.handle is HANDLERS[ApiKey.METADATA].function


class Counting:
    """Handlers as they are, each call of one API noted."""

    def __init__(self, key: ApiKey) -> None:
        real = HANDLERS[key]
        self.calls = 0
        self._function = real.function
        counting = Handler(real.min_version, real.max_version, self._called, flat=real.flat)
        self.handlers = {**HANDLERS, key: counting}

    def _called(self, broker: BrokerView, request: Any, context: RequestContext) -> object | None:
        self.calls += 1
        return self._function(broker, request, context)


PRODUCED = [PartitionProduceData(index=index, records=raw.batch([raw.record(bytes(100))])) for index in range(200)]
FETCHED = [FetchPartition(partition=index, partition_max_bytes=100) for index in range(1000)]


@pytest.mark.parametrize(
    ("key", "request_", "version", "is_whole"),
    [
        pytest.param(
            ApiKey.PRODUCE,
            ProduceRequest(acks=1, timeout_ms=1000, topic_data=[TopicProduceData(name="t", partition_data=PRODUCED)]),
            9,
            True,
            id="records, however many",
        ),
        pytest.param(
            ApiKey.FETCH,
            FetchRequest(replica_id=-1, max_bytes=1000, topics=[FetchTopic(topic="t", partitions=FETCHED)]),
            12,
            True,
            id="a Fetch, however long",
        ),
        pytest.param(
            ApiKey.DELETE_GROUPS,
            DeleteGroupsRequest(groups_names=[f"g{number}" for number in range(40)]),
            2,
            True,
            id="a short one whose answer is in proportion",
        ),
        pytest.param(
            ApiKey.DESCRIBE_GROUPS,
            DescribeGroupsRequest(groups=[f"g{number}" for number in range(40)]),
            5,
            False,
            id="a short one whose answer may be long",
        ),
        pytest.param(
            ApiKey.DELETE_GROUPS,
            DeleteGroupsRequest(groups_names=[f"group-{number:040}" for number in range(100)]),
            2,
            False,
            id="a longer one",
        ),
        pytest.param(
            ApiKey.DELETE_GROUPS,
            DeleteGroupsRequest(groups_names=[f"group-{number:040}" for number in range(1000)]),
            2,
            False,
            id="one that is decoded in steps",
        ),
    ],
)
async def test_long_requests_are_served_in_pieces(key: ApiKey, request_: Any, version: int, is_whole: bool) -> None:
    async with MemoryBroker() as memory:
        memory.topic("t", 1)
        counting = Counting(key)
        memory.dispatcher = Dispatcher(memory.broker, counting.handlers)
        assert await memory.connect().ask(request_, version)
        assert (counting.calls == 1) is is_whole


async def test_a_handler_may_answer_in_steps() -> None:
    steps: list[int] = []

    def delete_groups(*_: object) -> Iterator[None]:
        for step in range(3):
            steps.append(step)
            yield
        return DeleteGroupsResponse(results=[DeletableGroupResult(group_id="g")])  # type: ignore[return-value]

    async with MemoryBroker() as memory:
        handlers = {**HANDLERS, ApiKey.DELETE_GROUPS: Handler(0, 2, delete_groups)}
        memory.dispatcher = Dispatcher(memory.broker, handlers)
        assert await delete(memory.connect(), "g") == {"g": ErrorCode.NONE}
        assert steps == [0, 1, 2]


async def test_a_request_of_somebody_over_a_quota_is_not_looked_at_before_its_time() -> None:
    async with MemoryBroker() as memory:
        counting = Counting(ApiKey.METADATA)
        memory.dispatcher = Dispatcher(memory.broker, counting.handlers)
        rule = rule_of(entity_of({USER: "alice"}), {REQUEST: 1.0})
        memory.broker.quotas.take({rule.id: rule})
        memory.broker.quotas.hold(REQUEST, "alice", "test", 2.0)
        alice, bob = memory.connect(), memory.connect()
        alice.conversation.serve_as(ALICE)
        bob.conversation.serve_as(Principal("User", "bob"))
        alice.send(MetadataRequest(topics=[]), 4)
        await bob.ask(MetadataRequest(topics=[]), 4)
        assert (alice.answers(), counting.calls) == (0, 1)
        memory.clock.advance(2_000)
        alice.conversation.mute(0)
        assert (await alice.take(MetadataRequest(topics=[]), 4)).brokers
