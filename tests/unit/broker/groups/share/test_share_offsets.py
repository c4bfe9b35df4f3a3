"""Offsets of share groups: told, set and deleted."""

import pytest

from horolog.broker.groups.share.share_states import SharePlace, ShareRefusal
from horolog.protocol.errors import ErrorCode
from tests.support.share_world import GROUP, ShareWorld, StateSummary

UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.fixture
def world():
    world = ShareWorld()
    world.topic("t", 2)
    return world


@pytest.fixture
def left(world):
    """A group without members, whose two partitions have states."""
    world.join()
    world.beat("m1", -1)
    return world


def told(world, partitions=None, group=GROUP):
    given = []
    if partitions is None:
        world.offsets.tell_all(group, given.append)
    else:
        world.offsets.tell(group, partitions, given.append)
    world.tick()
    (found,) = given
    return {key: (one.start_offset, one.lag, one.code) for key, one in found.items()}


def changed(world, change, *arguments):
    given = []
    change(*arguments, given.append)
    world.tick()
    (outcome,) = given
    if isinstance(outcome, ShareRefusal):
        return outcome.code
    return {key: (one.code, one.message) for key, one in outcome.items()}


def place(world, index=0):
    return SharePlace(GROUP, world.cluster.topics["t"].id, index)


def test_offsets_and_lags(left):
    assert told(left) == {("t", 0): (-1, -1, 0), ("t", 1): (-1, -1, 0)}
    left.persister.states[place(left)] = StateSummary(2, 3, 0, 0)
    left.persister.states[place(left, 1)] = StateSummary(2, 3, 5, -1)
    assert told(left) == {("t", 0): (0, 0, 0), ("t", 1): (5, -1, 0)}
    assert told(left, [("t", 0), ("t", 7), ("none", 0)]) == {("t", 0): (0, 0, 0), ("t", 7): (-1, -1, 0)}


def test_a_partition_whose_end_is_not_known_has_an_error(left):
    left.persister.states[place(left, 7)] = StateSummary(2, 3, 1, 0)
    assert told(left, [("t", 7)]) == {("t", 7): (0, -1, UNKNOWN)}


def test_a_group_that_is_not_there_has_no_offsets(world):
    assert told(world) == {}
    assert told(world, [("t", 0)]) == {("t", 0): (-1, -1, 0)}


def test_offsets_are_set(left):
    set_to = changed(left, left.offsets.alter, GROUP, {("t", 0): 4, ("t", 9): 1, ("none", 0): 1})
    assert set_to == {
        ("t", 0): (0, None),
        ("t", 9): (UNKNOWN, UNKNOWN.message),
        ("none", 0): (UNKNOWN, UNKNOWN.message),
    }
    assert left.persister.states[place(left)].start_offset == 4
    assert changed(left, left.offsets.alter, GROUP, {("none", 0): 1}) == {("none", 0): (UNKNOWN, UNKNOWN.message)}


def test_offsets_are_set_for_a_group_to_come(world):
    assert changed(world, world.offsets.alter, GROUP, {("t", 1): 3}) == {("t", 1): (0, None)}
    assert told(world) == {("t", 1): (3, -3, 0)}
    assert world.group().state_name == "Empty"
    world.restart()
    assert told(world) == {("t", 1): (3, -3, 0)}
    world.join()
    assert world.persister.states[place(world, 1)].start_offset == 3, "a member does not begin it anew"
    assert world.assigned() == {"t": [0, 1]}


def test_a_group_with_members_keeps_its_offsets(world):
    world.join()
    assert changed(world, world.offsets.alter, GROUP, {("t", 0): 4}) == ErrorCode.NON_EMPTY_GROUP
    assert changed(world, world.offsets.delete, GROUP, ["t"]) == ErrorCode.NON_EMPTY_GROUP


def test_a_persister_that_refuses(left):
    left.persister.refusal = code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert changed(left, left.offsets.alter, GROUP, {("t", 0): 4}) == {("t", 0): (code, code.message)}
    assert changed(left, left.offsets.delete, GROUP, ["t"]) == {"t": (code, code.message)}
    assert left.group().tracked.deleting, "it is being deleted until it is"
    left.persister.refusal = ErrorCode.NONE
    assert changed(left, left.offsets.delete, GROUP, ["t"]) == {"t": (0, None)}
    assert left.group().tracked.deleting == {}


def test_offsets_are_deleted(left):
    assert changed(left, left.offsets.delete, GROUP, ["t", "none"]) == {
        "t": (0, None),
        "none": (UNKNOWN, UNKNOWN.message),
    }
    assert left.persister.states == {}
    again = changed(left, left.offsets.delete, GROUP, ["t"])
    assert again == {"t": (UNKNOWN, "There is no offset information to delete.")}
    assert changed(left, left.offsets.delete, "other", ["t"]) == ErrorCode.GROUP_ID_NOT_FOUND


def test_what_cannot_be_written_is_not_done(left):
    code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    left.storage.fail("write", "__consumer_offsets")
    assert changed(left, left.offsets.alter, GROUP, {("t", 0): 4}) == code
    left.restart()
    left.storage.fail("write", "__consumer_offsets")
    assert changed(left, left.offsets.delete, GROUP, ["t"]) == code
    assert len(left.persister.states) == 2
    assert "ShareOffsets" in repr(left.offsets)


def test_what_cannot_be_written_at_the_end_is_told(left):
    left.persister.holds_back = True
    given = []
    left.offsets.alter(GROUP, {("t", 0): 4}, given.append)
    left.tick()
    left.storage.fail("write", "__consumer_offsets")
    left.persister.answer()
    left.tick()
    code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert [one.code for one in given[0].values()] == [code]


def test_a_group_that_is_lost_while_the_persister_is_asked_is_not_changed(left):
    left.persister.holds_back = True
    group, given = left.group(), []
    left.offsets.alter(GROUP, {("t", 0): 4}, given.append)
    left.tick()
    left.coordinator.shards.lost(group.shard)
    left.persister.answer()
    left.tick()
    assert [one.code for one in given[0].values()] == [ErrorCode.NOT_COORDINATOR]
