"""A member joins, assigns partitions where it leads, keeps its place with heartbeats, and leaves."""

import asyncio

import pytest

from horolog.client.consuming.membership import TOPIC_CHECK_MS, Membership
from horolog.client.values.errors import KafkaError, MalformedAnswer
from horolog.client.values.types import TopicPartition
from horolog.client.wire.group_wire import Subscription, decode_assignment, encode_assignment, encode_subscription
from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.groups import (
    HeartbeatResponse,
    JoinGroupResponse,
    JoinGroupResponseMember,
    LeaveGroupResponse,
    SyncGroupResponse,
)
from tests.support.fake_peer import HangUp, Scripted
from tests.support.scripted_client import Time, client_of

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
REBALANCE, UNKNOWN = ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.UNKNOWN_MEMBER_ID


class Place:
    """A coordinator that answers each request with its next code, or with success; the member is `m`, alone or with others."""

    def __init__(self, **options):
        self.broker, self.time = Scripted(partitions=2), Time()
        self.codes = {}
        self.asked = []
        self.is_leader = True
        self.others = []
        self.changes = 0
        self.assignment = None
        self.strategy = "range"
        self.beat = asyncio.Event()
        self.options = {
            "session_timeout_ms": 10_000,
            "max_poll_interval_ms": 10**9,
            "heartbeat_ms": 1000,
            "instance_id": None,
            "strategies": ("range",),
            "changed": self.changed,
            **options,
        }
        scripts = {
            ApiKey.JOIN_GROUP: self.join,
            ApiKey.SYNC_GROUP: self.sync,
            ApiKey.HEARTBEAT: self.heartbeat,
            ApiKey.LEAVE_GROUP: lambda code, _: LeaveGroupResponse(error_code=code),
        }
        for key, script in scripts.items():
            self.broker.scripts[key] = self.scripted(key, script)

    def changed(self):
        self.changes += 1

    def scripted(self, key, script):
        def answer(request):
            self.asked.append(request)
            codes = self.codes.get(key, [])
            code = codes.pop(0) if codes else 0
            if code is HangUp:
                raise HangUp
            return script(int(code), request)

        return answer

    def join(self, code, request):
        members = [
            JoinGroupResponseMember(member_id="m", metadata=bytes(request.protocols[0].metadata)),
            *(JoinGroupResponseMember(member_id=name, metadata=data) for name, data in self.others),
        ]
        return JoinGroupResponse(
            error_code=code,
            member_id="m",
            generation_id=5,
            protocol_type="consumer",
            protocol_name=self.strategy,
            leader="m" if self.is_leader else "other",
            members=members if self.is_leader else [],
        )

    def sync(self, code, request):
        own = [each.assignment for each in request.assignments if each.member_id == "m"]
        given = self.assignment if self.assignment is not None else own[0] if own else encode_assignment([A])
        return SyncGroupResponse(error_code=code, assignment=bytes(given))

    def heartbeat(self, code, _request):
        self.beat.set()
        return HeartbeatResponse(error_code=code)

    async def __aenter__(self):
        self.serving = self.broker.serving()
        self.client = client_of(await self.serving.__aenter__(), self.time)
        self.member = Membership(self.client, "g", **self.options)
        self.member.subscribe(["t"], None)
        return self

    async def __aexit__(self, *error):
        await self.member.close()
        await self.client.close()
        await self.serving.__aexit__(*error)

    def requests(self, kind):
        return [each for each in self.asked if type(each).__name__ == f"{kind}Request"]

    async def join_now(self, *owned):
        async with asyncio.timeout(30):
            return await self.member.rebalance(owned)

    async def until(self, holds):
        async with asyncio.timeout(30):
            while not holds():  # noqa: ASYNC110 - time goes by with every turn
                await asyncio.sleep(0)


@pytest.fixture
async def place():
    async with Place() as made:
        yield made


async def test_a_member_alone_leads_and_gets_all(place):
    assert await place.join_now() == [A, B]
    assert (place.member.state.is_leader, place.member.state.is_stable) == (True, True)
    (joined,) = place.requests("JoinGroup")
    assert (joined.session_timeout_ms, joined.rebalance_timeout_ms) == (10_000, 10**9)


async def test_the_leader_shares_out_and_gives_nothing_to_who_cannot_be_read(place):
    place.others = [("n", encode_subscription(Subscription(("t",)))), ("odd", b"\xff")]
    assert await place.join_now() == [A]
    (request,) = place.requests("SyncGroup")
    shares = {each.member_id: decode_assignment(each.assignment) for each in request.assignments}
    assert shares == {"m": [A], "n": [B], "odd": []}


async def test_another_leader_shares_out(place):
    place.is_leader = False
    assert await place.join_now() == [A]
    assert place.requests("SyncGroup")[0].assignments == []


async def test_topics_may_be_those_that_match_a_pattern(place):
    place.member.subscribe([], "t|u")
    assert await place.join_now() == [A, B]
    place.member.subscribe([], "x.*")
    assert await place.join_now() == []


@pytest.mark.parametrize(
    ("key", "code", "pauses"),
    [
        (ApiKey.JOIN_GROUP, ErrorCode.MEMBER_ID_REQUIRED, []),
        (ApiKey.JOIN_GROUP, UNKNOWN, []),
        (ApiKey.JOIN_GROUP, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, [100]),
        (ApiKey.JOIN_GROUP, HangUp, [100]),
        (ApiKey.SYNC_GROUP, REBALANCE, []),
        (ApiKey.SYNC_GROUP, ErrorCode.NOT_COORDINATOR, [100]),
    ],
)
async def test_joining_goes_on_as_long_as_it_takes(place, key, code, pauses):
    place.codes[key] = [code]
    assert await place.join_now() == [A, B]
    assert [each for each in place.time.pauses_ms if each < 1000] == pauses
    if code is ErrorCode.MEMBER_ID_REQUIRED:
        assert [each.member_id for each in place.requests("JoinGroup")] == ["", "m"]


async def test_a_group_that_refuses_again_and_again_is_not_asked_without_pauses(place):
    place.codes[ApiKey.SYNC_GROUP] = [REBALANCE] * 3
    await place.join_now()
    assert [each for each in place.time.pauses_ms if each < 1000] == [200, 400]


async def test_what_cannot_pass_is_raised(place):
    place.codes[ApiKey.JOIN_GROUP] = [ErrorCode.GROUP_AUTHORIZATION_FAILED]
    with pytest.raises(KafkaError, match="not authorized for group 'g'"):
        await place.join_now()


async def test_answers_that_make_no_sense(place):
    place.strategy = "magic"
    with pytest.raises(MalformedAnswer, match="the group chose 'magic', which this member did not offer"):
        await place.join_now()
    place.strategy = "range"
    place.assignment = b"\xff"
    with pytest.raises(MalformedAnswer, match="an assignment that cannot be read"):
        await place.join_now()


@pytest.mark.parametrize("strategies", [(), ("range", "magic")])
def test_strategies_are_chosen_among_those_that_there_are(strategies):
    with pytest.raises(ValueError, match="some of range"):
        Membership(None, "g", **Place(strategies=strategies).options)


async def test_heartbeats_keep_the_place(place):
    await place.join_now()
    await place.until(lambda: len(place.requests("Heartbeat")) >= 3)
    assert {each.generation_id for each in place.requests("Heartbeat")} == {5}
    assert place.changes == 0
    await place.join_now()
    assert place.member.state.is_stable


@pytest.mark.parametrize("code", [REBALANCE, UNKNOWN, ErrorCode.ILLEGAL_GENERATION])
async def test_a_heartbeat_may_say_that_the_group_has_changed(place, code):
    await place.join_now()
    place.codes[ApiKey.HEARTBEAT] = [code]
    await place.until(lambda: place.changes)
    assert place.member.state.needs_join
    assert place.member.state.lost is (code is not REBALANCE)
    assert place.member.fault is None


async def test_a_heartbeat_that_may_pass_is_no_change(place):
    await place.join_now()
    place.codes[ApiKey.HEARTBEAT] = [HangUp, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
    sent = len(place.requests("Heartbeat"))
    await place.until(lambda: len(place.requests("Heartbeat")) > sent + 3)
    assert place.changes == 0


async def test_a_heartbeat_that_is_refused_for_good_is_raised_by_the_poll(place):
    await place.join_now()
    place.codes[ApiKey.HEARTBEAT] = [ErrorCode.GROUP_AUTHORIZATION_FAILED]
    await place.until(lambda: place.member.fault)
    assert (place.member.fault.code, place.changes) == (ErrorCode.GROUP_AUTHORIZATION_FAILED, 1)


async def test_who_does_not_poll_leaves():
    async with Place(max_poll_interval_ms=5000) as place:
        await place.join_now()
        await place.until(lambda: place.changes)
        (left,) = place.requests("LeaveGroup")
        assert (left.members[0].member_id, left.members[0].reason) == (
            "m",
            "the application has not polled for too long",
        )
        assert place.member.state.lost
        place.member.polled()
        await place.join_now()
        assert place.member.state.is_stable


async def test_new_partitions_and_topics_are_noticed_after_a_while(place):
    await place.join_now()
    place.broker.partitions = 3
    checks = TOPIC_CHECK_MS // 1000
    await place.until(lambda: place.changes or len(place.requests("Heartbeat")) > 3 * checks)
    assert place.member.state.needs_join
    assert len(await place.join_now()) == 3
    place.member.subscribe([], "t|u")
    place.changes = 0
    await place.join_now()
    place.broker.topic = "u"
    await place.until(lambda: place.changes)
    assert place.member.state.needs_join


async def test_a_member_leaves_when_it_is_closed():
    async with Place() as place:
        await place.join_now()
    (left,) = place.requests("LeaveGroup")
    assert left.members[0].reason == "the consumer was closed"


async def test_older_brokers_are_left_by_the_id_alone():
    place = Place()
    place.broker.versions[ApiKey.LEAVE_GROUP] = (0, 2)
    async with place:
        await place.join_now()
    (left,) = place.requests("LeaveGroup")
    assert (left.member_id, left.members) == ("m", [])


async def test_a_static_member_keeps_its_place():
    async with Place(instance_id="me") as place:
        await place.join_now()
        await place.until(lambda: place.requests("Heartbeat"))
    named = [place.requests(kind)[0].group_instance_id for kind in ("JoinGroup", "SyncGroup", "Heartbeat")]
    assert named == ["me"] * 3
    assert place.requests("LeaveGroup") == []


async def test_leaving_does_not_fail_where_nobody_answers():
    async with Place() as place:
        await place.join_now()
        place.codes[ApiKey.LEAVE_GROUP] = [HangUp]
    assert len(place.requests("LeaveGroup")) == 1
    async with Place() as place:
        await place.join_now()
        await place.client.close()
    assert place.requests("LeaveGroup") == []
