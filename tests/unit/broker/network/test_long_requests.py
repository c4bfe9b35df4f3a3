"""Long requests take turns with others: their pieces, who waits for whom, and what becomes of them when something goes wrong."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from horolog.broker.base.principal import USER, Principal
from horolog.broker.handlers import HANDLERS, Handler
from horolog.broker.network import long_requests
from horolog.broker.network.dispatch import Dispatcher
from horolog.broker.network.limits import ConnectionLimits
from horolog.broker.security.quota_entities import REQUEST, entity_of, rule_of
from horolog.broker.security.quota_entities import USER as USER_ENTITY
from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode, ProtocolError
from horolog.protocol.messages.acls import AclCreation, AclCreationResult, CreateAclsRequest, CreateAclsResponse
from horolog.protocol.messages.api_versions import ApiVersionsRequest
from horolog.protocol.messages.groups import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from tests.support.guarded_broker import GuardedBroker, acl
from tests.support.memory_broker import MemoryBroker, Wire
from tests.support.waiting import until

MANY = 300


def asking(count: int = MANY, name: str = "g") -> FindCoordinatorRequest:
    return FindCoordinatorRequest(
        key_type=0, coordinator_keys=[f"{name}{number:05}".ljust(80, ".") for number in range(count)]
    )


class Served:
    """A handler of FindCoordinator that notes its pieces, and answers them at once or when the test wants."""

    def __init__(self) -> None:
        self.pieces: list[list[str]] = []
        self.late: list[Any] = []
        self.answers_late = False
        self.fails: Exception | None = None

    def __call__(self, broker: Any, request: FindCoordinatorRequest, context: Any) -> FindCoordinatorResponse | None:
        if self.fails is not None and len(self.pieces) > 4:
            raise self.fails
        self.pieces.append(request.coordinator_keys)
        response = FindCoordinatorResponse(
            coordinators=[Coordinator(key=key, host="h", port=1, node_id=1) for key in request.coordinator_keys]
        )
        if self.answers_late:
            self.late.append((context, response))
            return None
        return response

    def answer(self) -> None:
        context, response = self.late.pop(0)
        context.reply(response)


class World:
    """A broker in memory whose FindCoordinator is `served`."""

    def __init__(self, memory: MemoryBroker, served: Served | None = None) -> None:
        self.memory = memory
        self.served = served or Served()
        handlers = {**HANDLERS, ApiKey.FIND_COORDINATOR: Handler(0, 6, self.served)}
        self.dispatcher = Dispatcher(memory.broker, handlers)

    def wire(self, user: str = "alice") -> Wire:
        wire = Wire(self.dispatcher, ConnectionLimits.of(self.memory.settings))
        wire.conversation.serve_as(Principal(USER, user))
        wire.conversation.peer_host = "192.0.2.7"
        return wire


@pytest.fixture(autouse=True)
def short_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two steps in a turn, and pieces of 16: there is something to take turns with."""
    monkeypatch.setattr(long_requests, "SLICE_STEPS", 2)
    monkeypatch.setattr(long_requests.Pace, "MOST_ELEMENTS", 16)


async def test_a_long_request_is_served_in_pieces_and_answered_once() -> None:
    async with MemoryBroker() as memory:
        world = World(memory)
        answer = await world.wire().ask(asking(), 4)
        assert [one.key for one in answer.coordinators] == asking().coordinator_keys
        assert len(world.served.pieces) > MANY / 32
        assert [key for piece in world.served.pieces for key in piece] == asking().coordinator_keys
        assert repr(world.dispatcher._long) == "<LongRequests: 0 in progress, 0 wait>"


async def test_a_short_one_is_served_as_a_whole() -> None:
    async with MemoryBroker() as memory:
        world = World(memory)
        await world.wire().ask(asking(5), 4)
        assert world.served.pieces == [asking(5).coordinator_keys]


async def test_others_are_served_meanwhile_and_later_ones_of_the_connection_are_not() -> None:
    async with MemoryBroker() as memory:
        world = World(memory)
        busy, other = world.wire(), world.wire()
        busy.send(asking(), 4)
        busy.send(ApiVersionsRequest(), 0)
        assert busy.answers() == 0
        assert not busy.conversation.wants_to_read
        await other.ask(ApiVersionsRequest(), 0)
        assert len(world.served.pieces) < MANY / 16
        await busy.take(asking(), 4)
        await busy.take(ApiVersionsRequest(), 0)
        assert busy.conversation.wants_to_read


async def test_answers_that_come_late_are_waited_for() -> None:
    async with MemoryBroker() as memory:
        world = World(memory)
        world.served.answers_late = True
        wire = world.wire()
        wire.send(asking(40), 4)
        for done in range(3):
            await until(lambda: bool(world.served.late))
            assert len(world.served.pieces) == done + 1
            world.served.answer()
        answer = await wire.take(asking(), 4)
        assert [one.key for one in answer.coordinators] == asking(40).coordinator_keys


async def test_a_client_has_few_in_progress_and_others_come_before_its_next() -> None:
    async with MemoryBroker(horolog_long_requests_max=3, horolog_long_requests_max_per_client=2) as memory:
        world = World(memory)
        world.served.answers_late = True
        alices, bob, carol = [world.wire() for _ in range(4)], world.wire("bob"), world.wire("carol")
        for number, wire in enumerate(alices):
            wire.send(asking(20, f"alice{number}-"), 4)
        assert len(world.served.late) == 1
        bob.send(asking(20, "bob-"), 4)
        carol.send(asking(20, "carol-"), 4)
        await until(lambda: len(world.served.late) == 3)
        assert {keys[0].split("-")[0] for keys in world.served.pieces} == {"alice0", "alice1", "bob"}
        assert repr(world.dispatcher._long) == "<LongRequests: 3 in progress, 3 wait>"
        world.served.answers_late = False
        while world.served.late:
            world.served.answer()
        for wire in (*alices, bob, carol):
            await wire.take(asking(), 4)


async def test_who_is_gone_is_forgotten() -> None:
    async with MemoryBroker(horolog_long_requests_max=1) as memory:
        world = World(memory)
        world.served.answers_late = True
        first, waiting, last = world.wire(), world.wire(), world.wire("bob")
        for wire in (first, waiting, last):
            wire.send(asking(20), 4)
        waiting.conversation.lost()
        first.conversation.lost()
        world.served.answers_late = False
        assert len((await last.take(asking(), 4)).coordinators) == 20
        context, response = world.served.late.pop()
        context.reply(response)  # nobody is hurt
        assert repr(world.dispatcher._long) == "<LongRequests: 0 in progress, 0 wait>"


@pytest.mark.parametrize("failure", [ProtocolError("no"), RuntimeError("a fault")])
async def test_what_goes_wrong_ends_the_connection_alone(failure: Exception, caplog: pytest.LogCaptureFixture) -> None:
    async with MemoryBroker() as memory:
        world = World(memory)
        world.served.fails = failure
        wire = world.wire()
        wire.send(asking(), 4)
        await until(lambda: wire.closed)
        assert ("failed inside the broker" in caplog.text) == isinstance(failure, RuntimeError)
        world.served.fails = None
        assert len((await world.wire().ask(asking(), 4)).coordinators) == MANY


async def test_a_frame_that_cannot_be_decoded_ends_the_connection() -> None:
    async with MemoryBroker(horolog_request_elements_max=2_000) as memory:
        world = World(memory)
        wire = world.wire()
        wire.send(asking(5_000), 4)
        assert wire.closed
        assert not world.served.pieces


async def test_parts_for_which_the_answer_has_no_room_are_refused() -> None:
    async with MemoryBroker(horolog_long_answer_max_bytes=2_000) as memory:
        world = World(memory)
        answer = await world.wire().ask(asking(), 4)
        codes = [one.error_code for one in answer.coordinators]
        assert len(codes) == MANY
        assert codes[0] == ErrorCode.NONE
        assert codes[-1] == ErrorCode.INVALID_REQUEST
        assert codes == sorted(codes)


async def test_a_handler_may_answer_in_steps() -> None:
    def heartbeat(broker: Any, request: HeartbeatRequest, context: Any) -> Any:
        for _ in range(10):
            yield
        return HeartbeatResponse(error_code=ErrorCode.NONE)

    async with MemoryBroker() as memory:
        dispatcher = Dispatcher(memory.broker, {**HANDLERS, ApiKey.HEARTBEAT: Handler(0, 4, heartbeat)})
        wire = Wire(dispatcher, ConnectionLimits.of(memory.settings))
        request = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
        wire.send(request, 4)
        assert wire.answers() == 0
        assert (await wire.take(request, 4)).error_code == ErrorCode.NONE


async def test_a_long_one_without_parts_is_decoded_in_steps_and_served_as_a_whole() -> None:
    def heartbeat(broker: Any, request: HeartbeatRequest, context: Any) -> None:
        late.append((context, HeartbeatResponse(error_code=len(request.member_id) // 1000)))

    late: list[Any] = []
    async with MemoryBroker() as memory:
        dispatcher = Dispatcher(memory.broker, {**HANDLERS, ApiKey.HEARTBEAT: Handler(0, 4, heartbeat)})
        wire = Wire(dispatcher, ConnectionLimits.of(memory.settings))
        request = HeartbeatRequest(group_id="g", generation_id=1, member_id="m" * 30_000)
        wire.send(request, 4)
        await until(lambda: bool(late))
        assert wire.answers() == 0
        context, response = late.pop()
        context.reply(response)
        assert (await wire.take(request, 4)).error_code == 30


async def test_one_that_is_soon_over_is_answered_on_the_spot() -> None:
    async with MemoryBroker() as memory:
        world = World(memory)
        wire = world.wire()
        wire.send(asking(5, "g" * 400), 4)
        assert wire.answers() == 1
        assert repr(world.dispatcher._long) == "<LongRequests: 0 in progress, 0 wait>"


async def test_what_refuses_the_request_is_its_answer_and_no_more_is_served() -> None:
    served: list[int] = []

    def leave(broker: Any, request: LeaveGroupRequest, context: Any) -> LeaveGroupResponse:
        served.append(len(request.members))
        if len(served) == 3:
            return LeaveGroupResponse(error_code=ErrorCode.NOT_COORDINATOR)
        return LeaveGroupResponse(members=[MemberResponse(member_id=one.member_id) for one in request.members])

    async with MemoryBroker() as memory:
        dispatcher = Dispatcher(memory.broker, {**HANDLERS, ApiKey.LEAVE_GROUP: Handler(0, 5, leave)})
        wire = Wire(dispatcher, ConnectionLimits.of(memory.settings))
        members = [MemberIdentity(member_id=f"{number:040}") for number in range(MANY)]
        answer = await wire.ask(LeaveGroupRequest(group_id="g", members=members), 5)
        assert (answer.error_code, answer.members) == (ErrorCode.NOT_COORDINATOR, [])
        assert len(served) == 3


@pytest.mark.parametrize(("user", "is_whole"), [("admin", True), ("alice", True), ("bob", False)])
async def test_what_is_kept_with_one_write_is_whole_for_those_who_may_write_it(user: str, is_whole: bool) -> None:
    """For others each part is refused, and there is nothing to keep."""
    served: list[int] = []

    def create(broker: Any, request: CreateAclsRequest, context: Any) -> CreateAclsResponse:
        served.append(len(request.creations))
        return CreateAclsResponse(results=[AclCreationResult() for _ in request.creations])

    async with GuardedBroker() as memory:
        memory.put(acl("alice", "ALTER", "CLUSTER", "kafka-cluster"))
        memory.dispatcher = Dispatcher(
            memory.broker, {**HANDLERS, ApiKey.CREATE_ACLS: Handler(1, 3, create)}, gate=lambda _, handle: handle
        )
        creations = [AclCreation(resource_name=f"t{number}", principal="User:c", host="*") for number in range(100)]
        answer = await memory.wire(user).ask(CreateAclsRequest(creations=creations), 3)
        assert len(answer.results) == sum(served) == 100
        assert (len(served) == 1) is is_whole


async def test_the_wait_for_a_quota_is_that_of_the_whole() -> None:
    """Its first pieces are within the quota of the thread's time, its last ones are not."""

    class Slow(Served):
        def __call__(self, broker: Any, request: Any, context: Any) -> FindCoordinatorResponse | None:
            memory.clock.advance(10)
            return super().__call__(broker, request, context)

    async with MemoryBroker() as memory:
        entity = entity_of({USER_ENTITY: "alice"})
        rule = rule_of(entity, {REQUEST: 1.0})
        memory.broker.quotas.take({rule.id: rule})
        world = World(memory, Slow())
        waits = [(await world.wire().ask(asking(count), 4)).throttle_time_ms for count in (20, 600)]
        assert waits[0] == 0
        assert waits[1] > 0
        assert memory.broker.quotas.held_s(REQUEST, "alice", "test") > 0


async def test_when_the_time_of_a_turn_is_over_others_wait_for_the_next() -> None:
    """However many end in it: between two of them the loop has turned."""
    turns = 0
    served: list[tuple[int, str]] = []

    def turned() -> None:
        nonlocal turns
        turns += 1
        loop.call_soon(turned)

    class Slow(Served):
        def __call__(self, broker: Any, request: Any, context: Any) -> FindCoordinatorResponse | None:
            memory.clock.advance(10)
            served.append((turns, request.coordinator_keys[0][:3]))
            return super().__call__(broker, request, context)

    async with MemoryBroker(horolog_long_requests_max=10) as memory:
        world = World(memory, Slow())
        loop = asyncio.get_running_loop()
        wires = [world.wire(f"user{number}") for number in range(5)]
        for number, wire in enumerate(wires):
            wire.send(asking(14, f"{number:03}-") if not number else asking(5, f"{number:03}-".ljust(400, ".")), 4)
        loop.call_soon(turned)
        await until(lambda: all(wire.answers() for wire in wires))
        assert {name for _, name in served} == {f"{number:03}" for number in range(5)}
        later = served[1:]  # the first is begun on the spot
        assert len({turn for turn, _ in later}) == len(later)


async def test_of_those_that_wait_only_who_is_gone_is_forgotten() -> None:
    async with MemoryBroker(horolog_long_requests_max=1) as memory:
        world = World(memory)
        world.served.answers_late = True
        first, gone, waits = world.wire(), world.wire(), world.wire()
        for wire in (first, gone, waits):
            wire.send(asking(20), 4)
        gone.conversation.lost()
        assert repr(world.dispatcher._long) == "<LongRequests: 1 in progress, 1 wait>"
        world.served.answers_late = False
        world.served.answer()
        for wire in (first, waits):
            assert len((await wire.take(asking(), 4)).coordinators) == 20


def test_without_an_event_loop_it_is_served_at_once() -> None:
    """As benchmarks and the fuzzer drive a broker."""
    made: list[World] = []

    async def start() -> None:
        memory = MemoryBroker()
        await memory.__aenter__()
        made.append(World(memory))
        made.append(memory)  # type: ignore[arg-type]

    async def stop() -> None:
        await made[1].__aexit__()  # type: ignore[attr-defined]

    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(start())
        wire = made[0].wire()
        wire.send(asking(), 4)
        assert wire.answers() == 1
        loop.run_until_complete(stop())
    finally:
        loop.close()


async def test_the_answer_to_a_piece_may_come_in_steps() -> None:
    class InSteps(Served):
        def __call__(self, broker: Any, request: FindCoordinatorRequest, context: Any) -> Any:
            answer = super().__call__(broker, request, context)
            yield
            yield
            return answer

    async with MemoryBroker() as memory:
        world = World(memory, InSteps())
        answer = await world.wire().ask(asking(), 4)
        assert [one.key for one in answer.coordinators] == asking().coordinator_keys
        assert len(world.served.pieces) > MANY / 32
