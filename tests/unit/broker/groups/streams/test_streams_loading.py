"""Streams groups come back from the log after a kill."""

import pytest

from horolog.broker.groups.reconcile import MemberState
from horolog.broker.groups.records import entry, read_entry
from horolog.broker.groups.stored_entries import StoredEntries
from horolog.broker.groups.streams.streams_loading import streams_groups_of
from horolog.protocol.messages.streams_group_records import (
    StreamsCurrentTasks,
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMemberMetadataValue,
    StreamsGroupMetadataKey,
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTargetAssignmentMetadataValue,
    StreamsGroupTopologyKey,
    StreamsGroupTopologyValue,
)
from tests.support.streams_world import GROUP, Application, StreamsWorld, endpoint, settle


@pytest.fixture
def world():
    world = StreamsWorld({"group.streams.num.standby.replicas": 1, "group.streams.initial.rebalance.delay.ms": 0})
    world.topic("t", 4)
    return world


def shown(world, group=GROUP):
    found = world.group(group)
    return {
        "epochs": (found.epoch, found.assignment_epoch, found.assigned_ms, found.metadata_hash, found.validated_epoch),
        "settings": found.assignment_settings,
        "topology": found.topology,
        "members": {one.id: (one.description, one.current, one.target) for one in found.members.values()},
        "holders": found.holders,
        "subscribed": found.subscribed,
    }


def test_a_group_with_members(world):
    one, two = Application(world, "m1", user_endpoint=endpoint(), rack_id="r"), Application(world, "m2")
    settle(one, two)
    before = shown(world)
    world.restart()
    assert shown(world) == before
    assert one.beat().member_epoch == before["epochs"][0]
    assert shown(world) == before, "nothing has changed"
    world.advance(46_000)
    assert world.group().is_empty, "sessions begin again with the load"


def test_a_member_that_was_giving_back_has_its_time_again(world):
    one, two = Application(world, "m1", rebalance_timeout_ms=10_000), Application(world, "m2")
    settle(one)
    two.beat()
    one.beat(report=False)
    before = shown(world)
    world.restart()
    assert shown(world) == before
    world.advance(10_001)
    assert list(world.group().members) == ["m2"]


def test_a_group_without_members_keeps_its_topology(world):
    one = Application(world, "m1")
    settle(one)
    one.leave()
    before = shown(world)
    world.restart()
    assert shown(world) == before
    assert one.beat().status == []


def entries_of(*written):
    entries = StoredEntries()
    for key, value in written:
        entries.add(*read_entry(*entry(key, value))[1:])
    return entries


KEYS = {"group_id": GROUP, "member_id": "m"}


def test_records_without_a_group_are_left_out():
    written = (
        (StreamsGroupTopologyKey(group_id=GROUP), StreamsGroupTopologyValue()),
        (StreamsGroupTargetAssignmentMetadataKey(group_id=GROUP), StreamsGroupTargetAssignmentMetadataValue()),
        (StreamsGroupMemberMetadataKey(**KEYS), StreamsGroupMemberMetadataValue()),
    )
    assert streams_groups_of(entries_of(*written), 0, 0) == {}


def test_half_a_member_is_none():
    written = (
        (StreamsGroupMetadataKey(group_id=GROUP), StreamsGroupMetadataValue(epoch=3)),
        (StreamsGroupTargetAssignmentMemberKey(**KEYS), StreamsGroupTargetAssignmentMemberValue()),
        (StreamsGroupCurrentMemberAssignmentKey(**KEYS), StreamsGroupCurrentMemberAssignmentValue()),
    )
    group = streams_groups_of(entries_of(*written), 0, 0)[GROUP]
    assert (group.members, group.assignment_settings, group.epoch) == ({}, {}, 3)


def test_tasks_without_epochs_and_states_that_are_not_known():
    tasks = [StreamsCurrentTasks(subtopology_id="0", partitions=[0, 1])]
    current = StreamsGroupCurrentMemberAssignmentValue(member_epoch=6, state=127, active_tasks=tasks)
    written = (
        (StreamsGroupMetadataKey(group_id=GROUP), StreamsGroupMetadataValue(epoch=6)),
        (StreamsGroupMemberMetadataKey(**KEYS), StreamsGroupMemberMetadataValue(process_id="p")),
        (StreamsGroupCurrentMemberAssignmentKey(**KEYS), current),
    )
    member = streams_groups_of(entries_of(*written), 0, 0)[GROUP].members["m"]
    assert member.current.state is MemberState.UNREVOKED
    assert member.current.epochs == {("0", 0): 6, ("0", 1): 6}
