"""A group whose assignments the broker makes, as data: who has which partition, who may commit, and its records in the log."""

import pytest

from horolog.broker.groups.assignors import DEFAULT_ASSIGNOR
from horolog.broker.groups.consumer_group import ClassicPart, ConsumerGroup, ConsumerMember, assignment_of
from horolog.broker.groups.offsets import Committed, GroupOffsets
from horolog.broker.groups.reconcile import Current, MemberState
from horolog.broker.groups.records import read_entry
from horolog.protocol.errors import ErrorCode

TOPIC, OTHER = bytes(range(16)), bytes(range(1, 17))
NONE = ErrorCode.NONE


def parts(*indexes, topic=TOPIC):
    return {topic: frozenset(indexes)}


def member(member_id="m", instance_id=None, *, epoch=1, assigned=None, revoking=None, state=MemberState.STABLE):
    one = ConsumerMember(member_id, instance_id)
    one.current = Current(epoch, epoch - 1, state, assigned or {}, revoking or {})
    return one


def group(*members, epoch=1):
    made = ConsumerGroup("g", 3, GroupOffsets(), 1000)
    made.epoch = made.assignment_epoch = epoch
    for one in members:
        made.add(one)
    return made


class TestState:
    def test_by_the_epochs_of_the_group_and_its_members(self):
        assert group().state_name == "Empty"
        assert group(member()).state_name == "Stable"
        assert group(member(), epoch=2).state_name == "Reconciling"
        assert group(member(state=MemberState.UNRELEASED)).state_name == "Reconciling"
        made = group(member())
        made.epoch = 2
        assert made.state_name == "Assigning"
        assert repr(made) == "<ConsumerGroup g Assigning in epoch 2, 1 members>"
        assert repr(made.members["m"]) == "<ConsumerMember m in epoch 1, STABLE>"

    def test_most_members_choose_the_assignor(self):
        members = [member(name) for name in "abcd"]
        made = group(*members)
        assert made.assignor == DEFAULT_ASSIGNOR
        for one, assignor in zip(members, ("range", "uniform", "range", None), strict=True):
            one.assignor = assignor
        assert made.assignor == "range"


class TestOwners:
    def test_a_partition_is_its_members_until_it_has_given_it_back(self):
        one = member(assigned=parts(0), revoking=parts(1))
        made = group(one)
        assert [made.is_free(TOPIC, index) for index in range(3)] == [False, False, True]
        made.set_current(one, Current(2, 1, MemberState.STABLE, parts(0)))
        assert [made.is_free(TOPIC, index) for index in range(3)] == [False, True, True]
        made.remove(one)
        assert made.is_free(TOPIC, 0)
        assert made.is_empty

    def test_who_goes_does_not_free_what_another_has_by_now(self):
        old, new = member("a", "i", assigned=parts(0)), member("b", "i", assigned=parts(0))
        made = group(old, new)
        made.remove(old)
        assert not made.is_free(TOPIC, 0)
        assert made.statics == {"i": "b"}
        made.remove(new)
        assert (made.is_free(TOPIC, 0), made.statics) == (True, {})


class TestWhoMayCommit:
    def check(self, made, member_id="", epoch=-1, version=9, instance_id=None, *, transactional=False):
        return made.check_commit(member_id, instance_id, epoch, version, transactional=transactional)

    def test_a_member_in_its_epoch(self):
        made = group(member())
        assert self.check(made, "m", 1) == NONE
        assert self.check(made, "m", 2) == ErrorCode.STALE_MEMBER_EPOCH
        assert self.check(made, "x", 1) == ErrorCode.UNKNOWN_MEMBER_ID

    def test_anybody_in_an_empty_group_and_a_transaction_in_any(self):
        assert self.check(group()) == NONE
        made = group(member())
        assert self.check(made) == ErrorCode.UNKNOWN_MEMBER_ID
        assert self.check(made, transactional=True) == NONE
        assert self.check(made, instance_id="i", transactional=True) == ErrorCode.UNKNOWN_MEMBER_ID

    def test_old_versions_cannot_say_in_which_epoch_they_are(self):
        made = group(member())
        assert self.check(made, "m", 1, version=8) == ErrorCode.UNSUPPORTED_VERSION
        assert self.check(made, "m", 1, version=-1, transactional=True) == NONE

    def test_a_member_that_speaks_the_classic_protocol_gets_its_errors(self):
        one = member()
        one.classic = ClassicPart(10, (("range", b""),))
        made = group(one)
        assert self.check(made, "m", 1, version=2) == NONE
        assert self.check(made, "m", 2, version=2) == ErrorCode.ILLEGAL_GENERATION


@pytest.mark.parametrize(
    ("member_id", "epoch", "code"),
    [
        (None, -1, NONE),
        ("m", 1, NONE),
        ("m", 2, ErrorCode.STALE_MEMBER_EPOCH),
        ("x", 1, ErrorCode.UNKNOWN_MEMBER_ID),
        (None, 1, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_who_says_that_it_is_a_member_must_be_one_to_read_offsets(member_id, epoch, code):
    assert group(member()).check_fetch(member_id, epoch) == code


def test_what_is_read_is_kept():
    made = group(member())
    made.subscribed = frozenset({"t"})
    offset = Committed(5, 0, "", 2000)
    assert (made.reads("t"), made.reads("u")) == (True, False)
    assert (made.expiry_starts(("t", 0), offset), made.expiry_starts(("u", 0), offset)) == (None, 2000)
    assert (made.check_delete(), made.check_offset_delete()) == (ErrorCode.NON_EMPTY_GROUP, NONE)
    made.remove(made.members["m"])
    assert (made.reads("t"), made.check_delete()) == (False, NONE)


class TestInTheLog:
    def described(self):
        one = member(instance_id="i", epoch=4, assigned=parts(2, 0), revoking=parts(1, topic=OTHER))
        one.current = one.current._replace(state=MemberState.UNREVOKED)
        one.rack_id, one.client_id, one.client_host = "rack", "client", "/host"
        one.topics, one.regex, one.rebalance_timeout_ms, one.assignor = ("a", "b"), "x.*", 77, "range"
        one.target = parts(0, 3)
        return one

    def test_a_member_with_what_it_says_of_itself(self):
        one = self.described()
        _, key, value = read_entry(*group(one).member_entry(one))
        assert (key.group_id, key.member_id) == ("g", "m")
        assert (value.instance_id, value.rack_id, value.client_id, value.client_host) == (
            "i",
            "rack",
            "client",
            "/host",
        )
        assert value.subscribed_topic_names == ["a", "b"]
        assert (value.subscribed_topic_regex, value.rebalance_timeout_ms) == ("x.*", 77)
        assert (value.server_assignor, value.classic_member_metadata) == ("range", None)

    def test_a_member_that_speaks_the_classic_protocol_with_its_protocols(self):
        one = self.described()
        before = one.description
        one.classic = ClassicPart(10, (("range", b"1"), ("sticky", b"2")))
        assert one.description != before
        _, _, value = read_entry(*group(one).member_entry(one))
        classic = value.classic_member_metadata
        assert classic.session_timeout_ms == 10
        assert [(p.name, bytes(p.metadata)) for p in classic.supported_protocols] == [("range", b"1"), ("sticky", b"2")]

    def test_what_it_has_and_what_it_should_have(self):
        one = self.described()
        made = group(one)
        _, _, target = read_entry(*made.target_entry(one))
        assert assignment_of(target.topic_partitions) == parts(0, 3)
        _, _, current = read_entry(*made.current_entry(one))
        assert (current.member_epoch, current.previous_member_epoch, current.state) == (4, 3, 1)
        assert assignment_of(current.assigned_partitions) == parts(0, 2)
        assert assignment_of(current.partitions_pending_revocation) == parts(1, topic=OTHER)

    def test_the_epochs_of_the_group(self):
        made = group(epoch=6)
        made.metadata_hash, made.assignment_epoch = -9, 5
        _, _, value = read_entry(*made.group_entry())
        assert (value.epoch, value.metadata_hash) == (6, -9)
        assert read_entry(*made.assignment_entry())[2].assignment_epoch == 5

    def test_tombstones_leave_nothing_and_end_with_what_was_written_first(self):
        one = self.described()
        made = group(one)
        written = [
            made.group_entry(),
            made.assignment_entry(),
            made.member_entry(one),
            made.target_entry(one),
            made.current_entry(one),
        ]
        gone = made.tombstones()
        assert {key for key, _ in gone} == {key for key, _ in written}
        assert all(value is None for _, value in gone)
        assert gone[2][0] == made.member_entry(one)[0]
        assert gone[-1][0] == made.group_entry()[0]
