"""The rules of the classic protocol: who is let in, what a rebalance waits for, and what late or wrong members are told."""

import pytest

from horolog.broker.base.late_answers import ANSWERED_WITHIN_S
from horolog.broker.groups.classic_group import COMES_FROM, GroupState
from horolog.protocol.errors import ErrorCode
from horolog.protocol.group_metadata import write_assignment
from tests.support.at_once import at_once
from tests.support.group_members import ClassicClient, stabilise, subscription
from tests.support.group_world import GroupWorld

ANSWERED_WITHIN_MS = round(ANSWERED_WITHIN_S * 1000)


def group_of(world, group_id="g"):
    return world.coordinator.registry.groups[group_id]


@pytest.fixture
def pair(world):
    a, b = ClassicClient(world), ClassicClient(world)
    a.join()
    a.sync({a.id: b"all"})
    b.send_join()
    a.send_join()
    world.tick()
    given = {a.id: b"pa", b.id: b"pb"}
    a.send_sync(given if a.leads else None)
    b.send_sync(given if b.leads else None)
    world.tick()
    return a, b


def test_a_member_alone_leads_and_gets_what_it_brings(world):
    a = ClassicClient(world)
    assert a.join().error_code == 0
    assert a.leads
    assert [one.member_id for one in a.joined.members] == [a.id]
    assert a.sync({a.id: b"mine"}).assignment == b"mine"
    assert a.heartbeat() == 0


def test_only_the_leader_sees_the_members(pair):
    a, b = pair
    assert (len(a.joined.members), len(b.joined.members)) == (2, 0)
    assert (a.synced.assignment, b.synced.assignment) == (b"pa", b"pb")


@pytest.mark.parametrize("version", [4, 9])
def test_from_v4_on_a_member_comes_back_with_its_id(world, version):
    a = ClassicClient(world, version=version)
    a.send_join()
    assert a.joined.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert a.id.startswith("client-")
    a.send_join()
    assert a.joined.error_code == 0
    assert a.joined.member_id == a.id


def test_an_id_that_nobody_comes_back_with_is_forgotten(world):
    a = ClassicClient(world, version=4)
    a.send_join()
    world.advance(10_001)
    a.send_join()
    assert a.joined.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_pending_member_holds_up_a_rebalance_only_for_its_session(world):
    a, b = ClassicClient(world), ClassicClient(world, version=4)
    stabilise(a)
    b.send_join()
    a.send_join()
    assert a.joined is None
    world.advance(10_001)
    assert a.joined.error_code == 0


def test_during_a_rebalance_members_are_told_to_join_again(pair, world):
    a, b = pair
    c = ClassicClient(world)
    c.send_join()
    assert a.heartbeat() == b.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    assert a.sync().error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert c.joined is None
    stabilise(a, b)
    assert c.joined.error_code == 0
    assert {a.generation, b.generation, c.generation} == {3}


def test_who_does_not_join_again_in_time_is_out(pair, world):
    a, b = pair
    c = ClassicClient(world)
    c.send_join()
    a.send_join()
    for _ in range(4):
        world.advance(5_000)
        b.heartbeat()
    assert a.joined.error_code == c.joined.error_code == 0
    assert b.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID
    assert len(a.joined.members if a.leads else c.joined.members) == 2


def test_a_leader_that_stays_away_is_replaced(pair, world):
    a, b = pair
    assert a.leads
    b.fields["protocols"] = [("range", subscription("u"))]
    b.send_join()
    for _ in range(4):
        world.advance(5_000)
        a.heartbeat()
    assert b.leads
    assert [one.member_id for one in b.joined.members] == [b.id]


def test_silence_ends_a_membership(pair, world):
    a, b = pair
    for _ in range(3):
        world.advance(4_000)
        a.heartbeat()
    assert b.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID
    assert a.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS


def test_who_joins_and_does_not_sync_is_out(world):
    a, b = ClassicClient(world), ClassicClient(world)
    stabilise(a)
    b.send_join()
    a.send_join()
    world.tick()
    a.sync({a.id: b"", b.id: b""})
    for _ in range(3):
        world.advance(7_000)
        a.heartbeat()
        b.heartbeat()
    assert b.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID


def test_leaving_begins_a_rebalance(pair):
    a, b = pair
    assert b.leave() == 0
    assert b.leave() == ErrorCode.UNKNOWN_MEMBER_ID
    assert a.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    assert a.join().generation_id == 3


def test_the_leaders_rejoin_begins_a_rebalance_a_followers_does_not(pair):
    a, b = pair
    b.send_join()
    assert b.joined.generation_id == 2
    assert group_of(b.world).state is GroupState.STABLE
    a.send_join()
    assert a.joined is None
    assert group_of(a.world).state is GroupState.PREPARING


@pytest.mark.parametrize("fields", [{"protocol_type": "connect"}, {"protocols": [("sticky", b"")]}, {"protocols": []}])
def test_who_speaks_another_language_is_not_let_in(pair, world, fields):
    c = ClassicClient(world, **fields)
    assert c.join().error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert pair[0].heartbeat() == 0


def test_most_votes_choose_the_protocol(world):
    both = [("range", b"r"), ("sticky", b"s")]
    clients = [ClassicClient(world, protocols=both), *(ClassicClient(world, protocols=both[::-1]) for _ in range(2))]
    clients[0].join()
    for client in reversed(clients):
        client.send_join()
    assert {client.joined.protocol_name for client in clients} == {"sticky"}
    only_range = ClassicClient(world, protocols=[("range", b"r"), ("other", b"o")])
    for client in [only_range, *clients]:
        client.send_join()
    assert only_range.joined.protocol_name == "range"


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"generation_id": 7}, ErrorCode.ILLEGAL_GENERATION),
        ({"member_id": "stranger"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"protocol_name": "sticky"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    ],
)
def test_wrong_syncs_are_refused(pair, fields, code):
    assert pair[0].sync(**fields).error_code == code
    assert pair[0].heartbeat() == 0


def test_bounds_of_sessions_and_empty_names(world):
    assert ClassicClient(world, session_timeout_ms=5_999).join().error_code == ErrorCode.INVALID_SESSION_TIMEOUT
    assert ClassicClient(world, session_timeout_ms=1_800_001).join().error_code == ErrorCode.INVALID_SESSION_TIMEOUT
    assert ClassicClient(world, "").join().error_code == ErrorCode.INVALID_GROUP_ID
    assert not world.coordinator.registry.groups


def test_a_full_group_takes_nobody_but_its_members():
    world = GroupWorld({"group.max.size": 2})
    a, b, c = (ClassicClient(world) for _ in range(3))
    a.join()
    b.send_join()
    assert c.join().error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    a.send_join()
    assert a.joined.error_code == b.joined.error_code == 0


def test_the_first_rebalance_waits_for_more_and_not_forever():
    world = GroupWorld({"group.initial.rebalance.delay.ms": 3000})
    clients = [ClassicClient(world) for _ in range(10)]
    for client in clients:
        client.send_join()
        world.advance(2_500)
    answered = [client for client in clients if client.joined is not None]
    assert len(answered) >= 8  # 20 s is their rebalance timeout
    assert {client.joined.generation_id for client in answered} == {1}


# -- static members


def static(world, instance_id="i", **fields):
    return ClassicClient(world, version=9, instance_id=instance_id, **fields)


def test_a_static_member_that_restarts_keeps_its_place(world):
    a, b = static(world, "a"), static(world, "b")
    a.join()
    b.send_join()
    stabilise(a, b)
    old_id, old_generation = b.id, b.generation
    b.id = ""
    assert b.join().generation_id == old_generation
    assert b.id != old_id
    assert b.sync().assignment == write_assignment(0, {"t": [1]})
    assert a.heartbeat() == 0
    assert a.heartbeat(member_id=old_id, group_instance_id="b") == ErrorCode.FENCED_INSTANCE_ID


def test_a_static_leader_that_restarts_does_not_assign_again(world):
    a = static(world)
    stabilise(a)
    a.id = ""
    assert a.join().skip_assignment
    assert a.leads
    a.id, a.version = "", 5
    joined = a.join()
    assert (joined.skip_assignment, joined.leader == a.id) == (False, False)


def test_a_static_member_that_waits_is_fenced_by_its_successor(world):
    a, b = static(world, "a"), static(world, "b")
    stabilise(a)
    b.send_join()
    successor = static(world, "b")
    successor.send_join()
    assert b.joined.error_code == ErrorCode.FENCED_INSTANCE_ID
    a.send_join()
    assert successor.joined.error_code == 0


def test_a_static_member_that_is_back_during_a_rebalance_is_known_after_a_restart(world):
    """The coordinator may move, or restart, between the response to its join and the next generation."""
    a, b, newcomer = static(world, "a"), static(world, "b"), ClassicClient(world, version=3)
    a.join()
    b.send_join()
    stabilise(a, b)
    newcomer.send_join()
    old_id, b.id = b.id, ""
    b.send_join()
    a.send_join()
    world.tick()
    assert b.joined.error_code == 0
    assert b.id != old_id
    world.restart()
    assert b.heartbeat() == ErrorCode.ILLEGAL_GENERATION
    assert b.heartbeat(member_id=old_id) == ErrorCode.FENCED_INSTANCE_ID


def test_who_uses_the_instance_id_of_another_is_fenced(world):
    a = static(world)
    stabilise(a)
    assert a.heartbeat(member_id="other") == ErrorCode.FENCED_INSTANCE_ID
    assert a.heartbeat(group_instance_id="unknown") == ErrorCode.UNKNOWN_MEMBER_ID


# -- the log


def test_a_stable_group_outlives_a_restart(pair, world):
    a, b = pair
    world.restart()
    assert a.heartbeat() == b.heartbeat() == 0
    assert a.sync().assignment == b"pa"
    world.advance(10_001)
    assert a.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID


def test_assignments_that_cannot_be_written_are_not_told(world):
    a = ClassicClient(world)
    a.join()
    world.storage.fail("write", "__consumer_offsets", times=2)
    assert a.sync({a.id: b"mine"}).error_code in {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.REBALANCE_IN_PROGRESS,
    }
    world.storage.heal()
    stabilise(a)
    assert a.synced.error_code == 0


# -- a disk, or a store, that does not answer


def test_a_leader_whose_assignments_are_not_written_in_time_asks_again(pair, world):
    """It comes back to the same generation, and its assignments count for all members once they are written."""
    a, b = pair
    world.committer.holds = True
    for one in pair:
        one.send_join()
    leader, follower = (a, b) if a.leads else (b, a)
    follower.send_join()
    given = {one.id: one.id.encode() for one in pair}
    leader.send_sync(given)
    follower.send_sync()
    world.advance(ANSWERED_WITHIN_MS - 1)
    assert (leader.synced, follower.synced) == (None, None)
    world.advance(1)
    assert [one.synced.error_code for one in pair] == [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 2
    generation = leader.generation
    for one in (leader, follower):
        one.send_join()
        assert (one.joined.error_code, one.generation) == (0, generation)
    leader.send_sync(given)
    follower.send_sync()
    world.committer.holds = False
    world.tick()
    assert [one.synced.assignment for one in pair] == [one.id.encode() for one in pair]
    world.advance(ANSWERED_WITHIN_MS)
    assert [one.synced.error_code for one in pair] == [0, 0]


def test_a_follower_that_asks_while_assignments_are_not_written_waits_no_longer_than_others(pair, world):
    a, b = pair
    world.committer.holds = True
    for one in pair:
        one.send_join()
    leader, follower = (a, b) if a.leads else (b, a)
    follower.send_join()
    leader.send_sync({one.id: one.id.encode() for one in pair})
    for _ in range(2):
        follower.send_sync()
        for _ in range(4):
            world.advance(ANSWERED_WITHIN_MS // 4)
            leader.heartbeat()
        assert follower.synced.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    follower.send_sync()
    world.committer.holds = False
    world.tick()
    assert follower.synced.assignment == follower.id.encode()


def test_a_leader_that_is_gone_after_its_answer_is_removed(pair, world):
    a, b = pair
    world.committer.holds = True
    for one in pair:
        one.send_join()
    leader, follower = (a, b) if a.leads else (b, a)
    follower.send_join()
    leader.send_sync({})
    follower.send_sync()
    world.advance(ANSWERED_WITHIN_MS)
    assert leader.synced.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    follower.send_sync()
    world.advance(group_of(world).members[leader.id].session_timeout_ms)
    assert follower.synced.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert list(group_of(world).members) == [follower.id]


@pytest.mark.parametrize("rebalances", [False, True])
def test_a_static_member_whose_new_id_is_not_written_in_time_asks_again(world, rebalances):
    fields = {"session_timeout_ms": 60_000, "rebalance_timeout_ms": 60_000}
    a, b = static(world, "a", **fields), static(world, "b", **fields)
    a.join()
    b.send_join()
    stabilise(a, b)
    if rebalances:
        ClassicClient(world, **fields).send_join()
    world.committer.holds = True
    b.id = ""
    b.send_join()
    world.advance(ANSWERED_WITHIN_MS - 1)
    assert b.joined is None
    world.advance(1)
    assert b.joined.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    again = static(world, "b", **fields)
    again.send_join()
    world.committer.holds = False
    a.send_join()
    world.tick()
    assert (again.joined.error_code, again.id) == (0, group_of(world).statics["b"])
    assert again.generation == a.generation


def test_only_the_ways_of_the_table_are_gone(world):
    for state in GroupState:
        for to in GroupState:
            a = ClassicClient(world)
            a.join()
            group = group_of(world)
            group.state = state
            if state in COMES_FROM[to]:
                group.go_to(to, 0)
                assert group.state is to
            else:
                with pytest.raises(AssertionError):
                    group.go_to(to, 0)
            world.coordinator.registry.groups.clear()


def test_the_state_of_a_group_has_a_bound_above_that_of_its_topic():
    world = GroupWorld({"horolog.group.state.max.bytes": 4096})
    world.topic()
    world.cluster.settings = world.settings
    partition = world.offsets_partition("g")
    at_once(
        world.cluster.alter_topic_configs,
        {"__consumer_offsets": {"max.message.bytes": "200", "cleanup.policy": "compact"}},
    )
    fits = ClassicClient(world)
    fits.join()
    assert fits.sync({fits.id: bytes(2000)}).error_code == 0, "more than the topic takes from others"
    end = partition.log_end_offset
    fits.join()
    assert fits.sync({fits.id: bytes(8000)}).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert partition.log_end_offset == end, "nothing of it is written"
    fits.join()
    assert fits.sync({fits.id: bytes(100)}).error_code == 0
