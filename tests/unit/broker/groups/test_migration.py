"""A live group that changes its protocol, member by member and back, as Kafka allows it."""

import pytest

from horolog.broker.groups.classic_group import ClassicGroup
from horolog.broker.groups.consumer_group import ConsumerGroup
from horolog.protocol.errors import ErrorCode
from horolog.protocol.group_metadata import read_assignment
from tests.support.group_members import ClassicClient, ConsumerClient, commit, committed, stabilise, subscription
from tests.support.group_world import GroupWorld


def group_of(world):
    return world.coordinator.registry.groups["g"]


def partitions(client):
    if client.synced is None or not client.synced.assignment:
        return []
    return sorted(
        index for one in read_assignment(client.synced.assignment).assigned_partitions for index in one.partitions
    )


def follow(*clients, rounds=6):
    """Everyone does what its protocol tells it to."""
    for _ in range(rounds):
        for client in clients:
            if isinstance(client, ConsumerClient):
                client.beat()
            elif client.heartbeat():
                client.join()
                client.sync()


@pytest.fixture
def old(world):
    old = ClassicClient(world)
    stabilise(old)
    return old


@pytest.fixture
def both(world, old):
    new = ConsumerClient(world, "N")
    assert new.join().error_code == 0
    follow(new, old)
    return old, new


def test_a_new_member_turns_a_live_group(both, world):
    old, new = both
    assert isinstance(group_of(world), ConsumerGroup)
    assert sorted(partitions(old) + new.partitions) == [0, 1, 2, 3]
    assert len(new.partitions) == 2
    assert old.heartbeat() == 0
    own = {"member_id": old.id, "generation_id_or_member_epoch": old.generation}
    assert commit(world, 5, version=2, **own) == 0
    assert commit(world, 6, version=2, **own | {"generation_id_or_member_epoch": 99}) == ErrorCode.ILLEGAL_GENERATION
    assert committed(world).committed_offset == 5


def test_members_that_wait_are_told_to_join_again(world, old):
    late = ClassicClient(world)
    late.send_join()
    ConsumerClient(world, "N").join()
    assert late.joined.error_code == ErrorCode.REBALANCE_IN_PROGRESS


def test_both_kinds_outlive_a_restart(both, world):
    old, new = both
    world.restart()
    assert old.heartbeat() == new.beat().error_code == 0
    follow(old, new)
    assert sorted(partitions(old) + new.partitions) == [0, 1, 2, 3]


def test_the_last_new_member_leaves_a_classic_group_behind(both, world):
    old, new = both
    new.beat(-1)
    assert isinstance(group_of(world), ClassicGroup)
    assert old.heartbeat() != 0
    stabilise(old)
    assert old.synced.error_code == old.heartbeat() == 0
    world.restart()
    assert isinstance(group_of(world), ClassicGroup)
    assert old.heartbeat() == 0


def test_a_group_whose_old_members_have_left_stays_new(both, world):
    old, new = both
    assert old.leave() == 0
    follow(new)
    assert new.partitions == [0, 1, 2, 3]
    assert old.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_classic_member_joins_a_new_group(world):
    new, old = ConsumerClient(world, "N"), ClassicClient(world, version=9)
    new.join()
    old.send_join()
    assert old.joined.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert old.join().error_code == 0
    old.sync()
    follow(new, old)
    assert sorted(partitions(old) + new.partitions) == [0, 1, 2, 3]
    assert len(partitions(old)) == 2


def test_who_is_told_to_come_back_and_does_not_is_out(both, world):
    old, new = both
    third = ConsumerClient(world, "O")
    third.join()
    assert old.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    for _ in range(5):
        world.advance(5_000)
        old.heartbeat()
        follow(new, third, rounds=1)
    assert old.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID
    follow(new, third)
    assert sorted(new.partitions + third.partitions) == [0, 1, 2, 3]


def test_a_classic_member_that_joins_and_does_not_sync_is_out(both, world):
    _, new = both
    third = ClassicClient(world)
    third.join()
    for _ in range(5):
        world.advance(5_000)
        third.heartbeat()
        follow(new, rounds=1)
    assert third.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("fields", [{"protocol_type": "connect"}, {"protocols": [("range", b"?")]}])
def test_what_the_broker_cannot_read_stays_classic(world, fields):
    old = ClassicClient(world, **fields)
    stabilise(old)
    assert ConsumerClient(world, "N").join().error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert isinstance(group_of(world), ClassicGroup)
    assert old.heartbeat() == 0


@pytest.mark.parametrize("fields", [{"protocol_type": "connect"}, {"protocols": [("range", b"?")]}, {"protocols": []}])
def test_what_the_broker_cannot_read_does_not_join_a_new_group(both, world, fields):
    stranger = ClassicClient(world, **fields)
    assert stranger.join().error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    other = ClassicClient(world, protocols=[("sticky", subscription("t"))])
    assert other.join().error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_refused_member_does_not_turn_the_group(world, old):
    bad = ConsumerClient(world, "B", subscribed_topic_names=None, subscribed_topic_regex="(")
    assert bad.join().error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert isinstance(group_of(world), ClassicGroup)
    assert old.heartbeat() == 0


@pytest.mark.parametrize(("policy", "up", "down"), [("disabled", False, False), ("upgrade", True, False)])
def test_the_policy_decides(policy, up, down):
    world = GroupWorld({"group.consumer.migration.policy": policy})
    world.topic()
    old = ClassicClient(world)
    stabilise(old)
    new = ConsumerClient(world, "N")
    assert (new.join().error_code == 0) is up
    if up:
        follow(old, new)
        new.beat(-1)
        assert isinstance(group_of(world), ClassicGroup) is down


def test_static_members_keep_their_place_across_protocols(world):
    old = ClassicClient(world, instance_id="i", version=9)
    stabilise(old)
    new = ConsumerClient(world, "N")
    new.join()
    follow(old, new)
    mine = partitions(old)
    old.id = ""
    old.join()
    old.sync()
    assert partitions(old) == mine
    assert ConsumerClient(world, "M", instance_id="i").join().error_code == ErrorCode.UNRELEASED_INSTANCE_ID


def test_a_classic_group_that_is_larger_than_the_new_ones_may_be_stays_classic():
    world = GroupWorld({"group.consumer.max.size": "1"})
    world.topic()
    stabilise(ClassicClient(world), ClassicClient(world))
    assert ConsumerClient(world, "N").join().error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert isinstance(group_of(world), ClassicGroup)
