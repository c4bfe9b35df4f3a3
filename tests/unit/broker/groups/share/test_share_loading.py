"""Share groups come back from the log after a kill."""

import pytest

from horolog.broker.groups.records import read_entry
from horolog.broker.groups.share.share_loading import share_groups_of
from horolog.broker.groups.stored_entries import StoredEntries
from tests.support.share_world import GROUP, ShareWorld


@pytest.fixture
def world():
    world = ShareWorld()
    world.topic("t", 4)
    return world


def shown(world, group=GROUP):
    found = world.group(group)
    return {
        "epochs": (found.epoch, found.assignment_epoch, found.metadata_hash),
        "members": {
            one.id: (one.description, one.epoch, one.previous_epoch, one.target, one.assigned)
            for one in found.members.values()
        },
        "topics": {topic_id: (one.name, one.partitions) for topic_id, one in found.tracked.initialized.items()},
        "subscribed": found.subscribed,
    }


def test_a_group_with_members(world):
    world.join()
    epoch = world.join("m2")
    before = shown(world)
    world.restart()
    assert shown(world) == before
    assert world.beat("m2", epoch).member_epoch == epoch
    world.advance(46_000)
    assert world.group().is_empty, "sessions begin again with the load"


def test_a_group_without_members_stays(world):
    world.join()
    world.beat("m1", -1)
    before = shown(world)
    world.restart()
    assert shown(world) == before
    world.coordinator.expire_offsets()
    world.tick()
    assert world.group().state_name == "Empty"
    assert world.join() > before["epochs"][0]


def test_states_that_were_asked_for_are_asked_for_again(world):
    world.persister.holds_back = True
    epoch = world.beat(topics=["t"]).member_epoch
    world.restart()
    assert world.group().tracked.initializing
    world.persister.holds_back = False
    world.beat(epoch=epoch)
    world.beat(epoch=epoch)
    assert world.assigned() == {"t": [0, 1, 2, 3]}


def test_what_is_left_of_a_group_is_no_group(world):
    world.join()
    for key, _ in world.group().tombstones()[-3:]:
        world.coordinator._journal.append(world.group().shard, [(key, None)], lambda *_: None)
    world.tick()
    world.restart()
    assert world.coordinator.groups() == []


def test_records_of_a_group_or_a_member_that_is_not_there_are_left_out(world):
    world.join()
    group, shard = world.group(), world.group().shard
    member = group.members["m1"]
    entries = StoredEntries()
    for key, value in (group.assignment_entry(), group.target_entry(member), group.current_entry(member)):
        entries.add(*read_entry(key, value)[1:])
    assert share_groups_of(entries, shard, 0) == {}
    entries.add(*read_entry(*group.member_entry(member))[1:])
    assert share_groups_of(entries, shard, 0) == {}
