"""Groups made again out of the log: the last value of every key counts, and of transactions those that were committed."""

import pytest

from horolog.base.clock import ManualClock
from horolog.broker.groups.classic_events import Client, Timeouts
from horolog.broker.groups.classic_group import ClassicGroup, GroupState, Member
from horolog.broker.groups.consumer_group import ClassicPart, ConsumerGroup, ConsumerMember
from horolog.broker.groups.journal import Marked, Stored
from horolog.broker.groups.loading import Folded, Loader
from horolog.broker.groups.offsets import Committed, GroupOffsets, tombstone
from horolog.broker.groups.reconcile import Current, MemberState
from horolog.broker.groups.records import OLD_OFFSET, entry
from horolog.broker.groups.registry import Registry
from horolog.protocol.messages.coordinator_records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    GroupMetadataKey,
    GroupMetadataValue,
    OwnedPartitions,
)
from tests.support.group_members import subscription

NOW_MS = 5_000
SHARD = 3
PLACE = ("t", 0)
TOPIC = bytes(range(16))


def folded(*pieces):
    made = Folded()
    made.take(pieces)
    return made


class Log:
    """Records as the journal tells them."""

    def __init__(self):
        self.pieces = []

    def keep(self, *entries, producer_id=-1):
        for key, value in entries:
            self.pieces.append(Stored(len(self.pieces), key, value, producer_id))
        return self

    def end(self, producer_id, *, committed):
        self.pieces.append(Marked(producer_id, committed))
        return self

    def commit(self, offset, *, producer_id=-1, group_id="g", kind=1):
        return self.keep(Committed(offset, 0, "", NOW_MS).entry(group_id, PLACE, kind), producer_id=producer_id)

    def load(self):
        registry = Registry()
        Loader(registry, ManualClock(NOW_MS)).load(SHARD, folded(*self.pieces))
        return registry


@pytest.fixture
def log():
    return Log()


class TestFolding:
    def test_the_last_value_of_a_key_counts_and_a_tombstone_ends_it(self):
        made = folded(Stored(0, b"a", b"1", -1), Stored(1, b"b", b"1", -1), Stored(2, b"a", b"2", -1))
        assert made.values == {b"a": (2, b"2"), b"b": (1, b"1")}
        made.take([Stored(3, b"a", None, -1), Stored(4, b"unknown", None, -1)])
        assert made.values == {b"b": (1, b"1")}
        assert repr(made) == "<Folded: 1 keys, 0 open transactions>"

    @pytest.mark.parametrize(("committed", "expected"), [(True, (1, b"2")), (False, (0, b"1"))])
    def test_a_transaction_counts_once_it_is_committed(self, committed, expected):
        made = folded(Stored(0, b"a", b"1", -1), Stored(1, b"a", b"2", 7))
        assert made.values == {b"a": (0, b"1")}
        made.take([Marked(7, committed)])
        assert made.values == {b"a": expected}
        assert not made.pending

    def test_what_was_kept_later_outside_of_it_goes_before_it(self):
        made = folded(Stored(0, b"a", b"in", 7), Stored(1, b"a", b"out", -1), Marked(7, committed=True))
        assert made.values == {b"a": (1, b"out")}

    def test_what_was_deleted_before_its_end_stays_deleted(self):
        made = folded(Stored(0, b"a", b"in", 7), Stored(1, b"a", None, -1), Marked(7, committed=True))
        assert made.values == {}

    def test_transactions_of_several_producers_end_each_for_itself(self):
        made = folded(Stored(0, b"a", b"7", 7), Stored(1, b"b", b"8", 8), Stored(2, b"c", None, 8))
        made.take([Marked(7, committed=True), Marked(9, committed=True)])
        assert made.values == {b"a": (0, b"7")}
        assert made.pending == {8: {b"b": (1, b"8")}}


class TestOffsets:
    def test_a_group_that_nobody_joined_has_them(self, log):
        registry = log.commit(4).commit(5).load()
        group = registry.groups["g"]
        assert (group.shard, group.is_simple, group.state_since_ms) == (SHARD, True, NOW_MS)
        assert (group.offsets.get(PLACE).offset, group.offsets.get(PLACE).log_offset) == (5, 1)

    def test_a_deleted_one_is_not_there(self, log):
        assert not log.commit(4).keep(tombstone("g", PLACE)).load().groups

    def test_those_of_version_0_have_a_store_of_their_own(self, log):
        registry = log.commit(4, kind=OLD_OFFSET).load()
        assert registry.old_offsets["g"].get(PLACE).offset == 4
        assert not registry.groups

    def test_those_of_an_open_transaction_wait_for_its_end(self, log):
        registry = log.commit(4).commit(5, producer_id=7).commit(6, producer_id=8).end(8, committed=True).load()
        offsets = registry.groups["g"].offsets
        assert offsets.get(PLACE).offset == 6
        assert registry.pending == {7: {"g"}}
        offsets.complete(7, committed=True)
        assert offsets.get(PLACE).offset == 6, "the one that stands later in the log counts"

    def test_of_an_open_transaction_nothing_else_counts(self, log):
        log.keep((b"\0\7what", b"?"), ClassicGroup("g", SHARD, GroupOffsets(), 0).entry(), producer_id=7)
        registry = log.load()
        assert (registry.pending, registry.groups) == ({}, {})


class TestClassicGroups:
    def group(self, *members):
        made = ClassicGroup("g", SHARD, GroupOffsets(), 77)
        made.generation, made.protocol_type = 4, "consumer"
        for one in members:
            made.add(one)
        if members:
            made.protocol_name = made.select_protocol()
        return made

    def test_a_group_with_members_is_stable_as_it_was(self, log):
        one = Member("m", "i", Client("client", "/host"), Timeouts(10, 20), (("range", subscription("t")),))
        one.assignment = b"mine"
        found = log.keep(self.group(one).entry()).commit(5).load().groups["g"]
        assert (found.state, found.generation, found.leader_id, found.state_since_ms) == (GroupState.STABLE, 4, "m", 77)
        assert (found.protocol_type, found.protocol_name, found.subscribed) == ("consumer", "range", {"t"})
        assert (found.statics, found.offsets.get(PLACE).offset) == ({"i": "m"}, 5)
        member = found.members["m"]
        assert (member.client_id, member.client_host, member.assignment) == ("client", "/host", b"mine")
        assert (member.session_timeout_ms, member.rebalance_timeout_ms) == (10, 20)
        assert found.supports("consumer", ["range"])

    def test_a_group_that_all_have_left_is_empty_and_counts_on(self, log):
        found = log.keep(self.group().entry()).load().groups["g"]
        assert (found.is_empty, found.is_simple, found.generation) == (True, False, 4)

    def test_what_old_releases_have_not_written_is_as_they_meant_it(self, log):
        """Version 0 has neither a rebalance timeout nor the time of the state."""
        one = Member("m", None, Client("c", "/h"), Timeouts(10, -1), (("range", b""),))
        made = self.group(one)
        made.state_since_ms = -1
        found = log.keep(made.entry()).load().groups["g"]
        assert found.members["m"].rebalance_timeout_ms == 10
        assert found.state_since_ms == NOW_MS

    def test_a_value_without_members_names_no_protocol_type(self, log):
        value = GroupMetadataValue(protocol_type="", generation=0, protocol=None, leader=None, members=[])
        assert log.keep(entry(GroupMetadataKey(group="g"), value)).load().groups["g"].is_simple


class TestConsumerGroups:
    def group(self, **fields):
        made = ConsumerGroup("g", SHARD, GroupOffsets(), 0)
        made.epoch, made.assignment_epoch, made.metadata_hash = 6, 5, -9
        one = ConsumerMember("m", "i")
        one.rack_id, one.client_id, one.client_host = "rack", "client", "/host"
        one.topics, one.regex, one.rebalance_timeout_ms, one.assignor = ("a", "b"), "x.*", 77, "range"
        one.target = {TOPIC: frozenset({0, 3})}
        assigned, revoking = {TOPIC: frozenset({0})}, {TOPIC: frozenset({1})}
        one.current = Current(5, 4, MemberState.UNREVOKED, assigned, revoking, {(TOPIC, 1): 3})
        for name, value in fields.items():
            setattr(one, name, value)
        made.add(one)
        return made, one

    def entries(self, made, one):
        return [
            made.member_entry(one),
            made.group_entry(),
            made.target_entry(one),
            made.assignment_entry(),
            made.current_entry(one),
        ]

    def test_a_group_comes_back_with_members_epochs_and_owners(self, log):
        made, one = self.group()
        found = log.keep(*self.entries(made, one)).commit(5).load().groups["g"]
        assert (found.shard, found.epoch, found.assignment_epoch, found.metadata_hash) == (SHARD, 6, 5, -9)
        member = found.members["m"]
        assert member.description == one.description
        assert (member.target, member.current) == (one.target, one.current)
        assert found.owners == made.owners
        assert found.statics == {"i": "m"}
        assert found.offsets.get(PLACE).offset == 5

    def test_partitions_without_epochs_count_from_that_of_their_member(self, log):
        """As Kafka before 4.3 wrote them."""
        made, one = self.group()
        key, value = ConsumerGroupCurrentMemberAssignmentKey, ConsumerGroupCurrentMemberAssignmentValue
        owned = [OwnedPartitions(topic_id=TOPIC, partitions=[0, 1])]
        stored = value(
            member_epoch=5,
            previous_member_epoch=4,
            state=0,
            assigned_partitions=owned,
            partitions_pending_revocation=[],
        )
        entries = [*self.entries(made, one)[:-1], entry(key(group_id="g", member_id="m"), stored)]
        current = log.keep(*entries).load().groups["g"].members["m"].current
        assert (current.got_in((TOPIC, 0)), current.epochs) == (5, {})

    def test_so_does_a_member_that_speaks_the_classic_protocol(self, log):
        made, one = self.group(classic=ClassicPart(10, (("range", b"1"),)))
        member = log.keep(*self.entries(made, one)).load().groups["g"].members["m"]
        assert member.description == one.description

    def test_of_a_group_that_is_gone_members_do_not_count(self, log):
        made, one = self.group()
        entries = self.entries(made, one)
        log.keep(*entries, (made.group_entry()[0], None))
        assert not log.load().groups

    def test_of_a_member_that_is_gone_nothing_counts(self, log):
        made, one = self.group()
        log.keep(*self.entries(made, one), (made.member_entry(one)[0], None))
        found = log.load().groups["g"]
        assert (found.members, found.owners) == ({}, {})

    def test_a_state_that_nobody_knows_waits_for_the_members_word(self, log):
        made, one = self.group()
        key = ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id="m")
        value = ConsumerGroupCurrentMemberAssignmentValue(member_epoch=5, state=99)
        log.keep(*self.entries(made, one)[:-1], entry(key, value))
        assert log.load().groups["g"].members["m"].current.state is MemberState.UNREVOKED


def test_a_record_that_cannot_be_read_costs_its_group_that_one_thing(log, caplog):
    key, value = ClassicGroup("broken", SHARD, GroupOffsets(), 0).entry()
    registry = log.keep((key, value[:-3])).keep((b"\0\x63new kind", b"?")).commit(5).load()
    assert set(registry.groups) == {"g"}
    assert "cannot be read" in caplog.text
