"""A share group as data."""

from horolog.broker.groups.records import read_entry
from horolog.broker.groups.share.share_group import ShareGroup, ShareGroupMember
from horolog.broker.groups.share.tracked_topics import TrackedTopic
from horolog.protocol.errors import ErrorCode

TOPIC = b"t" * 16


def group_with_a_member():
    group = ShareGroup("g", 0, 7)
    member = ShareGroupMember("m1")
    member.client_id, member.client_host, member.rack_id, member.topics = "c", "/h", "r", ("t",)
    member.target = member.assigned = {TOPIC: frozenset({1, 0})}
    group.add(member)
    return group, member


def test_states():
    group, member = group_with_a_member()
    assert group.state_name == "Stable"
    assert repr(group) == "<ShareGroup g Stable in epoch 1, 1 members>"
    assert member.description == ("r", "c", "/h", ("t",))
    assert repr(member) == "<ShareGroupMember m1 in epoch 0>"
    assert group.check_delete() == ErrorCode.NON_EMPTY_GROUP
    group.subscribed = frozenset({"t"})
    assert group.reads("t")
    assert not group.reads("u")
    assert group.held.total == member.held_bytes == 3
    group.remove(member)
    assert group.state_name == "Empty"
    assert group.check_delete() == ErrorCode.NONE
    assert not group.reads("t")
    assert group.held.total == 0


def test_such_a_group_commits_no_offsets():
    group, _ = group_with_a_member()
    assert group.check_commit("m1", None, 1, 9, transactional=False) == ErrorCode.GROUP_ID_NOT_FOUND
    assert group.check_fetch("m1", 1) == ErrorCode.NONE
    assert group.check_offset_delete() == ErrorCode.GROUP_ID_NOT_FOUND
    assert group.expiry_starts(("t", 0), None) is None


def test_every_record_has_a_tombstone():
    group, member = group_with_a_member()
    group.tracked = group.tracked.begin({TOPIC: TrackedTopic("t", frozenset({0}))})
    entries = [
        group.group_entry(),
        group.assignment_entry(),
        group.tracked_entry(),
        group.member_entry(member),
        group.target_entry(member),
        group.current_entry(member),
    ]
    assert sorted(read_entry(key, value)[0] for key, value in entries) == [10, 11, 12, 13, 14, 15]
    tombstones = group.tombstones()
    assert {key for key, _ in tombstones} == {key for key, _ in entries}
    assert {value for _, value in tombstones} == {None}


def test_a_member_that_changes_its_topics_leaves_those_of_others():
    group, member = group_with_a_member()
    other = ShareGroupMember("m2")
    other.topics = ("t", "u")
    group.add(other)
    assert group.names == {"t": 2, "u": 1}
    group.subscribe(member, ("v",))
    assert (member.topics, group.names) == (("v",), {"t": 1, "u": 1, "v": 1})
    group.remove(other)
    assert group.names == {"v": 1}
    assert not group.is_empty
