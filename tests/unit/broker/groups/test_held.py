"""Bytes of members are bounded, for each group, for each principal and for all together, and given back when they go."""

from __future__ import annotations

import pytest

from horolog.broker.base.principal import USER, Principal
from horolog.broker.groups.classic_events import Client
from horolog.protocol.errors import ErrorCode
from tests.support.group_members import ClassicClient, ConsumerClient, stabilise
from tests.support.group_world import GroupWorld

FULL = ErrorCode.GROUP_MAX_SIZE_REACHED
KIB = 1024


@pytest.fixture
def small():
    bounds = {"horolog.group.members.max.bytes": 8 * KIB, "horolog.groups.members.max.bytes": 16 * KIB}
    world = GroupWorld(bounds)
    world.topic()
    return world


def as_user(name):
    return Client("client", "/127.0.0.1", Principal(USER, name))


def client(world, group_id, kib, *, version=3, **fields):
    metadata = b"\0\0" + bytes(int(kib * KIB))
    return ClassicClient(world, group_id, version=version, protocols=[("range", metadata)], **fields)


def held(world):
    return sum(group.held.total for group in world.coordinator.registry.groups.values())


def test_a_member_that_says_too_much_of_itself_is_refused(small):
    assert client(small, "g", 9).join().error_code == FULL
    assert held(small) == 0
    assert "g" not in small.coordinator.registry.groups


def test_members_of_a_group_are_bounded_together(small):
    first, second = client(small, "g", 5), client(small, "g", 5)
    first.send_join()
    second.send_join()
    assert second.joined.error_code == FULL
    small.tick()
    first.leave()
    small.tick()
    assert held(small) == 0
    second.send_join()
    assert second.joined is None or second.joined.error_code != FULL


def test_a_member_that_says_something_else_takes_its_own_place(small):
    member = client(small, "g", 6)
    stabilise(member)
    for kib in (7, 1, 7):
        member.fields["protocols"] = [("range", b"\0\0" + bytes(kib * KIB))]
        member.join()
        assert member.joined.error_code == ErrorCode.NONE
        assert held(small) // KIB == kib


def test_all_groups_are_bounded_together(small):
    members = [client(small, f"g{number}", 5) for number in range(4)]
    for member in members[:3]:
        stabilise(member)
    assert members[3].join().error_code == FULL
    members[0].leave()
    assert members[3].join().error_code == FULL, "it is looked at once a second"
    small.advance(1000)
    assert members[3].join().error_code == ErrorCode.NONE


def test_assignments_count_too(small):
    member = client(small, "g", 1)
    member.join()
    assert member.sync({member.id: bytes(9 * KIB)}).error_code == FULL
    assert member.sync({member.id: bytes(5 * KIB)}).error_code == ErrorCode.NONE
    assert 6 * KIB <= held(small) < 7 * KIB
    member.fields["protocols"] = [("range", bytes(4 * KIB))]
    assert member.join().error_code == FULL
    member.leave()


def test_members_of_the_newer_protocol_are_bounded_as_well(small):
    long_name = "t" * 200
    names = [f"{long_name}{number}" for number in range(30)]
    member = ConsumerClient(small, "A", subscribed_topic_names=names)
    assert member.join().error_code == ErrorCode.NONE
    before = held(small)
    assert before > 30 * 200
    other = ConsumerClient(small, "B", subscribed_topic_names=names)
    assert other.join().error_code == FULL
    member.beat(-1)
    small.tick()
    assert held(small) == 0
    assert other.join().error_code == ErrorCode.NONE
    assert repr(small.coordinator._held) == f"<HeldByGroups: about {2 * before} bytes>"


@pytest.fixture
def shared():
    bounds = {"horolog.principal.members.max.bytes": 12 * KIB, "horolog.group.members.max.bytes": 10 * KIB}
    world = GroupWorld(bounds)
    world.topic()
    return world


def test_one_principal_fills_its_share_and_others_go_on(shared):
    alice = [client(shared, f"a{number}", 5, client=as_user("alice")) for number in range(3)]
    for member in alice[:2]:
        stabilise(member)
    assert alice[2].join().error_code == FULL
    assert "a2" not in shared.coordinator.registry.groups
    stabilise(client(shared, "b", 5, client=as_user("bob")))
    alice[0].leave()
    shared.advance(1000)
    assert alice[2].join().error_code == ErrorCode.NONE


def test_members_of_one_group_are_counted_for_those_that_joined(shared):
    first, second = client(shared, "g", 5, client=as_user("alice")), client(shared, "g", 4, client=as_user("bob"))
    first.send_join()
    second.send_join()
    shared.tick()
    assert client(shared, "h", 8, client=as_user("alice")).join().error_code == FULL
    assert client(shared, "i", 7, client=as_user("bob")).join().error_code == ErrorCode.NONE


def test_assignments_are_counted_for_the_leader(shared):
    leader = client(shared, "g", 1, client=as_user("alice"))
    leader.join()
    assert leader.sync({leader.id: bytes(8 * KIB)}).error_code == ErrorCode.NONE
    assert client(shared, "h", 4, client=as_user("alice")).join().error_code == FULL
    assert client(shared, "h", 4, client=as_user("bob")).join().error_code == ErrorCode.NONE
    leader.leave()
    shared.advance(1000)
    assert client(shared, "i", 9, client=as_user("alice")).join().error_code == ErrorCode.NONE


def test_what_a_member_said_before_a_restart_counts_again_once_it_says_it_again(shared):
    member = client(shared, "g", 8, client=as_user("alice"))
    stabilise(member)
    shared.restart()
    other = client(shared, "h", 8, client=as_user("alice"))
    assert other.join().error_code == ErrorCode.NONE
    assert member.join().error_code == FULL
    other.leave()
    shared.advance(1000)
    member.join()
    assert client(shared, "i", 8, client=as_user("alice")).join().error_code == FULL


def test_members_of_the_newer_protocol_are_counted_for_their_principal(shared):
    names = [f"{'t' * 200}{number}" for number in range(30)]
    members = [
        ConsumerClient(shared, "A", f"g{number}", subscribed_topic_names=names, client=as_user("alice"))
        for number in range(3)
    ]
    assert [member.join().error_code for member in members] == [ErrorCode.NONE, ErrorCode.NONE, FULL]
    bob = ConsumerClient(shared, "B", "h", subscribed_topic_names=names, client=as_user("bob"))
    assert bob.join().error_code == ErrorCode.NONE
    members[0].beat(-1)
    shared.advance(1000)
    assert members[2].join().error_code == ErrorCode.NONE


def test_a_refused_request_takes_no_share_for_long(shared):
    for _ in range(3):
        stranger = client(shared, "g", 5, client=as_user("alice"))
        stranger.id = "unknown"
        assert stranger.join().error_code in {ErrorCode.UNKNOWN_MEMBER_ID, FULL}
        shared.advance(1000)
    assert client(shared, "h", 9, client=as_user("alice")).join().error_code == ErrorCode.NONE
