"""A classic group as data: who is in it, which protocol all support, who may commit, and what of it is kept in the log."""

import pytest

from horolog.broker.groups.classic_events import Client, Timeouts
from horolog.broker.groups.classic_group import (
    COMES_FROM,
    ClassicGroup,
    GroupState,
    Member,
    Supported,
    new_member_id,
    record_of,
    stored_with,
)
from horolog.broker.groups.decision import GroupTimer
from horolog.broker.groups.offsets import Committed, GroupOffsets
from horolog.broker.groups.records import read_entry
from horolog.protocol.errors import ErrorCode
from tests.support.group_members import subscription

NOW_MS = 1000
NONE = ErrorCode.NONE
UNKNOWN = ErrorCode.UNKNOWN_MEMBER_ID


def member(member_id="m", *names, instance_id=None, topics=("t",)):
    protocols = tuple((name, subscription(*topics)) for name in names or ("range",))
    return Member(member_id, instance_id, Client("client", "/host"), Timeouts(10, 20), protocols)


def group(*members, state=GroupState.STABLE, protocol_type="consumer"):
    made = ClassicGroup("g", 3, GroupOffsets(), NOW_MS)
    if members:
        made.protocol_type = protocol_type
        for one in members:
            made.add(one)
        made.go_to(GroupState.PREPARING, NOW_MS)
        made.begin_generation(NOW_MS)
        if state is GroupState.STABLE:
            made.go_to(GroupState.STABLE, NOW_MS)
    return made


def test_a_new_group_is_empty_and_keeps_offsets_only():
    made = group()
    assert (made.is_empty, made.is_simple, made.state_name) == (True, True, "Empty")
    assert repr(made) == "<ClassicGroup g Empty, generation 0, 0 members>"


def test_states_follow_each_other_only_on_the_ways_of_the_table():
    for state, before in COMES_FROM.items():
        for one in GroupState:
            made = ClassicGroup("g", 0, GroupOffsets(), 0)
            made.state = one
            if one in before:
                made.go_to(state, NOW_MS)
                assert (made.previous_state, made.state, made.state_since_ms) == (one, state, NOW_MS)
            else:
                with pytest.raises(AssertionError):
                    made.go_to(state, NOW_MS)


class TestMembers:
    def test_the_first_leads_and_the_next_does_when_it_goes(self):
        first, second = member("a"), member("b")
        made = group(first, second)
        assert made.leader_id == "a"
        made.remove(first)
        assert made.leader_id == "b"
        made.remove(second)
        assert made.leader_id is None
        made.leader_id = "somebody who was never added"
        made.add(second)
        assert made.leader_id == "b"

    def test_one_that_leaves_takes_its_instance_id_along_if_it_still_holds_it(self):
        old, new = member("a", instance_id="i"), member("b", instance_id="i")
        made = group(old)
        made.pending_sync.add("a")
        made.add(new)
        made.remove(old)
        assert made.statics == {"i": "b"}
        assert not made.pending_sync
        made.remove(new)
        assert made.statics == {}

    @pytest.mark.parametrize("syncs", [False, True])
    def test_a_static_member_that_is_back_keeps_its_place(self, syncs):
        first, second = member("a", instance_id="i"), member("b")
        made = group(first, second)
        if syncs:
            made.pending_sync.add("a")
        made.rename(first, "a2")
        assert list(made.members) == ["a2", "b"]
        assert (made.leader_id, made.statics, first.id) == ("a2", {"i": "a2"}, "a2")
        assert made.pending_sync == ({"a2"} if syncs else set())
        made.statics["j"] = "b"
        second.instance_id = "j"
        made.rename(second, "b2")
        assert made.leader_id == "a2"

    @pytest.mark.parametrize(
        ("member_id", "instance_id", "code"),
        [
            ("a", None, NONE),
            ("a", "i", NONE),
            ("b", "i", ErrorCode.FENCED_INSTANCE_ID),
            ("a", "j", UNKNOWN),
            ("x", None, UNKNOWN),
        ],
    )
    def test_a_member_is_known_by_its_id_and_the_instance_that_it_holds(self, member_id, instance_id, code):
        assert group(member("a", instance_id="i"), member("b")).check_member(member_id, instance_id) == code

    def test_everybody_has_joined_when_nobody_is_waited_for(self):
        first, second = member("a"), member("b")
        made = group(first, second)
        made.wait_to_join(first, lambda _: None)
        made.wait_to_join(first, lambda _: None)
        assert not made.has_all_joined
        made.wait_to_join(second, lambda _: None)
        assert made.has_all_joined
        made.pending["c"] = GroupTimer(None)
        assert not made.has_all_joined
        assert made.take_join(first) is not None
        assert made.take_join(first) is None
        assert made.waiting_count == 1

    def test_one_shows_what_it_waits_for(self):
        one = member()
        assert repr(one) == "<Member m>"
        one.syncing = print
        assert repr(one) == "<Member m syncing>"
        one.joining = print
        assert repr(one) == "<Member m joining>"

    def test_new_ids_differ_and_begin_with_the_name(self):
        assert new_member_id("client", None) != new_member_id("client", None)
        assert new_member_id("client", None).startswith("client-")
        assert new_member_id("client", "instance").startswith("instance-")
        assert new_member_id(None, None).startswith("-")


class TestProtocols:
    def test_the_one_that_all_support_and_most_like_best_is_chosen(self):
        made = group(member("a", "x", "y", "z"), member("b", "z", "y"), member("c", "only", "y", "z"))
        assert made.select_protocol() == "y"
        assert made.protocol_name == "y"

    def test_a_newcomer_has_to_support_one_that_all_support(self):
        made = group(member("a", "x", "y"), member("b", "y"))
        assert made.supports("consumer", ["y", "q"])
        assert not made.supports("consumer", ["x"])
        assert not made.supports("connect", ["y"])

    @pytest.mark.parametrize(
        ("protocol_type", "names", "taken"), [("any", ["x"], True), ("", ["x"], False), ("any", [], False)]
    )
    def test_the_first_may_have_any(self, protocol_type, names, taken):
        assert group().supports(protocol_type, names) is taken

    def test_one_that_joins_again_with_others_changes_what_all_support(self):
        one = member("a", "x", "y")
        made = group(one)
        made.update(one, (("z", b""),))
        assert made.supports("consumer", ["z"])
        assert not made.supports("consumer", ["x"])
        assert one.metadata("z") == one.metadata("unknown") == b""

    def test_one_that_is_named_twice_counts_once(self):
        supported = Supported()
        supported.add((("x", b""), ("x", b"")))
        assert supported.by_all(1) == {"x"}
        assert repr(supported) == "<Supported: {'x': 1}>"


class TestGenerations:
    def test_each_has_a_number_of_its_own_and_a_protocol(self):
        made = group(member())
        assert (made.generation, made.protocol_name, made.subscribed) == (1, "range", {"t"})

    def test_the_number_begins_again_behind_the_largest(self):
        made = group(member())
        made.generation = 0x7FFFFFFF
        made.go_to(GroupState.PREPARING, NOW_MS)
        made.begin_generation(NOW_MS)
        assert made.generation == 0

    def test_without_members_the_group_is_empty(self):
        one = member()
        made = group(one)
        made.remove(one)
        made.go_to(GroupState.PREPARING, NOW_MS)
        made.begin_generation(NOW_MS)
        assert (made.is_empty, made.is_simple, made.protocol_name, made.subscribed) == (True, False, None, frozenset())

    def test_topics_are_known_only_of_consumers_that_write_them_as_usual(self):
        assert group(member(topics=("t", "u"))).subscribed == {"t", "u"}
        assert group(member(), protocol_type="connect").subscribed is None


class TestWhoMayCommit:
    @pytest.fixture
    def made(self):
        return group(member("a", instance_id="i"))

    def check(self, made, member_id="", instance_id=None, generation=-1, *, transactional=False):
        return made.check_commit(member_id, instance_id, generation, 9, transactional=transactional)

    def test_a_member_in_its_generation(self, made):
        assert self.check(made, "a", None, 1) == self.check(made, "a", "i", 1) == NONE
        assert self.check(made, "a", None, 2) == ErrorCode.ILLEGAL_GENERATION
        assert self.check(made, "b", None, 1) == UNKNOWN

    def test_nobody_else_while_there_are_members_but_a_transaction(self, made):
        assert self.check(made) == UNKNOWN
        assert self.check(made, transactional=True) == NONE
        assert self.check(group()) == NONE

    def test_nobody_between_joining_and_syncing(self):
        made = group(member("a"), state=GroupState.COMPLETING)
        assert self.check(made, "a", None, 1) == ErrorCode.REBALANCE_IN_PROGRESS
        assert self.check(made, "a", None, 1, transactional=True) == NONE

    def test_nobody_in_a_group_that_is_gone(self, made):
        made.go_to(GroupState.DEAD, NOW_MS)
        assert self.check(made, "a", None, 1) == ErrorCode.COORDINATOR_NOT_AVAILABLE

    def test_anybody_may_read(self, made):
        assert made.check_fetch("nobody", 77) == NONE


class TestDeleting:
    def test_a_live_group_is_kept(self):
        assert group(member()).check_delete() == ErrorCode.NON_EMPTY_GROUP
        made = group()
        assert made.check_delete() == NONE
        made.pending["m"] = GroupTimer(None)
        assert made.check_delete() == ErrorCode.NON_EMPTY_GROUP
        assert not made.is_simple

    def test_offsets_go_only_where_it_is_known_who_reads_what(self):
        assert group(member()).check_offset_delete() == NONE
        assert group(member(), protocol_type="connect").check_offset_delete() == ErrorCode.NON_EMPTY_GROUP
        assert group().check_offset_delete() == NONE

    def test_a_topic_may_be_read_where_nobody_can_tell(self):
        assert group(member()).reads("t")
        assert not group(member()).reads("u")
        assert group(member(), protocol_type="connect").reads("u")
        assert not group().reads("t")


class TestWhenAnOffsetsTimeBegins:
    OFFSET = Committed(5, 0, "", 2000)

    def starts(self, made, topic="t"):
        return made.expiry_starts((topic, 0), self.OFFSET)

    def test_with_its_commit_in_a_group_without_members(self):
        assert self.starts(group()) == 2000

    def test_not_before_the_last_member_left(self):
        one = member()
        made = group(one)
        made.remove(one)
        made.go_to(GroupState.PREPARING, NOW_MS)
        made.begin_generation(9000)
        assert self.starts(made) == 9000
        made.state_since_ms = 1
        assert self.starts(made) == 2000

    def test_never_while_its_topic_is_read(self):
        assert self.starts(group(member())) is None
        assert self.starts(group(member()), "u") == 2000
        assert self.starts(group(member(), state=GroupState.COMPLETING), "u") is None


class TestInTheLog:
    def test_everything_that_a_start_needs_is_there(self):
        one, other = member("a", instance_id="i"), member("b")
        made = group(one, other)
        one.assignment = b"mine"
        _, key, value = read_entry(*made.entry())
        assert (key.group, value.generation, value.protocol, value.leader) == ("g", 1, "range", "a")
        assert [(m.member_id, m.group_instance_id, m.assignment) for m in value.members] == [
            ("a", "i", b"mine"),
            ("b", None, b""),
        ]
        assert bytes(value.members[0].subscription) == subscription("t")
        assert (value.members[0].session_timeout, value.members[0].rebalance_timeout) == (10, 20)

    def test_assignments_may_be_written_before_they_count(self):
        made = group(member("a"), member("b"))
        _, _, value = read_entry(*made.entry(record_of(made, {"b": b"next"})))
        assert [m.assignment for m in value.members] == [b"", b"next"]
        assert made.members["b"].assignment == b""

    def test_a_static_member_may_have_another_id_in_the_stored_record(self):
        made = group(member("a", instance_id="i"), member("b"))
        assert stored_with(made, "i", "a2") is None
        made.stored = record_of(made)
        assert stored_with(made, "j", "a2") is None
        renamed = stored_with(made, "i", "a2")
        assert (renamed.leader, [one.member_id for one in renamed.members]) == ("a2", ["a2", "b"])
        assert (made.stored.leader, [one.member_id for one in made.stored.members]) == ("a", ["a", "b"])
        made.stored.leader = "b"
        assert stored_with(made, "i", "a2").leader == "b"

    def test_a_tombstone_has_the_same_key(self):
        made = group()
        assert made.tombstone() == (made.entry()[0], None)
