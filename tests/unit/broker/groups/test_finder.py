"""Which group a request finds: one that is there, a new one, or one that changes its protocol for it."""

import pytest

from horolog.broker.groups.classic_group import ClassicGroup
from horolog.broker.groups.consumer_group import ConsumerGroup
from horolog.broker.groups.kip848 import HeartbeatRefusal
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.consumer_groups import ConsumerGroupHeartbeatRequest
from horolog.protocol.messages.groups import JoinGroupRequest
from tests.support.group_members import ClassicClient, ConsumerClient, commit, stabilise
from tests.support.group_world import GroupWorld


@pytest.fixture
def finder(world):
    return world.coordinator._finder


def joining(member_id=""):
    return JoinGroupRequest(group_id="g", member_id=member_id)


def beating(epoch=0, member_id="A"):
    return ConsumerGroupHeartbeatRequest(group_id="g", member_id=member_id, member_epoch=epoch)


def test_a_new_group_is_not_kept_before_it_has_a_member(world, finder):
    found = finder.to_join(joining())
    assert isinstance(found, ClassicGroup)
    assert isinstance(finder.for_heartbeat(beating(), []), ConsumerGroup)
    assert not world.coordinator.registry.groups


def test_who_names_itself_looks_for_a_group_that_is_there(world, finder):
    assert finder.to_join(joining("x")) == ErrorCode.UNKNOWN_MEMBER_ID
    refusal = finder.for_heartbeat(beating(3), [])
    assert isinstance(refusal, HeartbeatRefusal)
    assert refusal.code == ErrorCode.GROUP_ID_NOT_FOUND
    member = ClassicClient(world)
    member.join()
    assert finder.to_join(joining("x")) is world.coordinator.registry.groups["g"]


def test_a_broker_that_keeps_no_more_groups_makes_none():
    world = GroupWorld({"horolog.groups.max": 1})
    world.topic()
    commit(world, 1, group_id="other")
    finder = world.coordinator._finder
    assert finder.to_join(joining()) == ErrorCode.GROUP_MAX_SIZE_REACHED
    refusal = finder.for_heartbeat(beating(), [])
    assert isinstance(refusal, HeartbeatRefusal)
    assert refusal.code == ErrorCode.GROUP_MAX_SIZE_REACHED


def test_an_empty_group_changes_its_protocol_and_keeps_offsets_and_numbers(world, finder):
    commit(world, 7)
    member = ClassicClient(world)
    stabilise(member)
    generation = member.generation
    member.leave()
    before, entries = world.coordinator.registry.groups["g"], []
    found = finder.for_heartbeat(beating(), entries)
    assert (found.offsets, found.epoch > generation, len(entries)) == (before.offsets, True, 1)
    newer = ConsumerClient(world, "A")
    newer.join()
    newer.beat(-1)
    back = finder.to_join(joining())
    assert (back.offsets, back.generation > found.epoch) == (before.offsets, True)
    assert world.coordinator.registry.groups["g"] is back


def test_a_live_classic_group_is_found_as_what_it_becomes(world, finder):
    stabilise(ClassicClient(world))
    entries = []
    found = finder.for_heartbeat(beating(), entries)
    assert isinstance(found, ConsumerGroup)
    assert (len(found.members), len(entries)) == (1, 6)
    assert isinstance(world.coordinator.registry.groups["g"], ClassicGroup), "until its new member is taken"


def test_a_group_made_for_a_member_that_is_refused_is_not_kept(world):
    refused = ConsumerClient(world, "A", subscribed_topic_regex="[")
    assert refused.join().error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert not world.coordinator.registry.groups
    stabilise(ClassicClient(world))
    before = world.coordinator.registry.groups["g"]
    assert refused.join().error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert world.coordinator.registry.groups["g"] is before


def test_a_group_that_is_there_is_the_one(world, finder):
    member = ConsumerClient(world, "A")
    member.join()
    group = world.coordinator.registry.groups["g"]
    assert finder.to_join(joining()) is group
    assert finder.for_heartbeat(beating(5), []) is group
    assert repr(finder) == "<Finder in <Registry of 1 groups, 0 shards still loading>>"


def test_a_group_that_was_never_joined_leaves_nothing_to_remove(world, finder):
    """It only kept offsets: the log has no record of the group itself."""
    commit(world, 7)
    entries = []
    assert isinstance(finder.for_heartbeat(beating(), entries), ConsumerGroup)
    assert entries == []


def test_a_classic_group_that_cannot_change_is_no_consumer_group(world, finder):
    stabilise(ClassicClient(world, protocol_type="connect"))
    refusal = finder.for_heartbeat(beating(), [])
    assert (refusal.code, refusal.message) == (ErrorCode.GROUP_ID_NOT_FOUND, "Group g is not a consumer group.")


def test_members_of_a_classic_group_are_told_when_it_has_changed(world):
    waiting = ClassicClient(world)
    stabilise(ClassicClient(world))
    waiting.send_join()
    assert waiting.joined is None
    assert ConsumerClient(world, "A").join().error_code == 0
    assert waiting.joined.error_code == ErrorCode.REBALANCE_IN_PROGRESS
