"""Members that speak the classic protocol in a group of the newer one: joining, syncing, being told of news, leaving."""

import pytest

from horolog.broker.groups.consumer_group import ConsumerGroup
from horolog.protocol.compile import encode
from horolog.protocol.errors import ErrorCode
from horolog.protocol.group_metadata import read_assignment
from horolog.protocol.messages.consumer_protocol import ConsumerProtocolSubscription
from horolog.protocol.messages.consumer_protocol import TopicPartition as Owned
from horolog.protocol.messages.groups import LeaveGroupRequest, MemberIdentity
from tests.support.group_members import ClassicClient, ConsumerClient, subscription
from tests.support.group_world import GroupWorld

REBALANCE = ErrorCode.REBALANCE_IN_PROGRESS
UNKNOWN = ErrorCode.UNKNOWN_MEMBER_ID


@pytest.fixture
def new(world):
    """A member of the newer protocol, which has everything."""
    new = ConsumerClient(world, "N")
    new.join()
    return new


@pytest.fixture
def old(world, new):
    """A classic member beside it, with its half."""
    old = ClassicClient(world, instance_id="i")
    settle(new, old)
    return old


def settle(new, *olds, rounds=4):
    for old in olds:
        old.join()
        old.sync()
    for _ in range(rounds):
        new.beat()
        for old in olds:
            if old.heartbeat() == REBALANCE:
                old.join()
                old.sync()


def group_of(world):
    found = world.coordinator.registry.groups["g"]
    assert isinstance(found, ConsumerGroup)
    return found


def partitions(client):
    assigned = read_assignment(client.synced.assignment).assigned_partitions if client.synced.assignment else ()
    return sorted(index for one in assigned for index in one.partitions)


def leave(world, *members):
    identities = [MemberIdentity(member_id=member_id, group_instance_id=instance) for member_id, instance in members]
    code, told = world.coordinator.leave(LeaveGroupRequest(group_id="g", members=identities), 4)
    world.tick()
    assert code == 0
    return [code for _, code in told]


class TestJoining:
    def test_it_gets_a_part_and_nobody_leads(self, new, old):
        assert old.joined.leader == ""
        assert old.joined.protocol_name == old.synced.protocol_name == "range"
        assert (partitions(old), new.partitions) == ([2, 3], [0, 1])

    def test_its_generation_is_its_epoch(self, world, old):
        assert old.generation == group_of(world).members[old.id].current.epoch == group_of(world).epoch

    def test_a_newer_client_is_told_its_id_first(self, world, new):
        client = ClassicClient(world, version=9)
        client.send_join()
        assert client.joined.error_code == ErrorCode.MEMBER_ID_REQUIRED
        assert set(group_of(world).members) == {"N"}

    @pytest.mark.parametrize(
        "fields",
        [
            {"protocol_type": "connect"},
            {"protocols": []},
            {"protocols": [("range", b"?")]},
            {"protocols": [("sticky", subscription("t"))]},
        ],
    )
    def test_what_it_offers_has_to_be_read_and_shared_by_all(self, world, old, fields):
        assert ClassicClient(world, **fields).join().error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL

    def test_other_topics_begin_another_epoch_and_the_same_do_not(self, world, new, old):
        before = group_of(world).epoch
        assert old.join().error_code == 0
        assert group_of(world).epoch == before
        world.topic("u", 2)
        old.fields["protocols"] = [("range", subscription("t", "u"))]
        assert old.join().error_code == 0
        assert group_of(world).epoch == before + 1

    def test_a_full_group_takes_nobody_but_who_is_in_it(self):
        world = GroupWorld({"group.consumer.max.size": "2"})
        world.topic()
        new, old = ConsumerClient(world, "N"), ClassicClient(world)
        new.join()
        settle(new, old)
        assert ClassicClient(world).join().error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
        assert old.join().error_code == 0

    def test_what_it_had_in_an_older_generation_does_not_count(self, world, new, old):
        """It says so, and is not waited for."""
        third = ConsumerClient(world, "O")
        third.join()
        topic_owned = [Owned(topic="t", partitions=[2, 3])]
        said = ConsumerProtocolSubscription(topics=["t"], owned_partitions=topic_owned, generation_id=1)
        old.fields["protocols"] = [("range", b"\0\2" + encode(said, 2))]
        old.join()
        assert old.heartbeat() == 0
        assert group_of(world).members[old.id].current.revoking == {}

    def test_what_it_still_has_is_waited_for(self, world, new, old):
        third = ConsumerClient(world, "O")
        third.join()
        said = ConsumerProtocolSubscription(topics=["t"], owned_partitions=[Owned(topic="t", partitions=[2, 3])])
        old.fields["protocols"] = [("range", b"\0\1" + encode(said, 1))]
        old.join()
        assert group_of(world).members[old.id].current.revoking
        assert old.heartbeat() == REBALANCE


class TestInstances:
    def test_one_that_is_back_gets_what_was_kept_for_it(self, world, new, old):
        before, mine = old.id, partitions(old)
        old.id = ""
        assert old.join().error_code == 0
        old.sync()
        assert (partitions(old), old.id == before) == (mine, False)
        assert before not in group_of(world).members

    def test_one_that_another_holds_is_fenced(self, world, old):
        stranger = ClassicClient(world, instance_id="i")
        stranger.id = "stranger"
        assert stranger.join().error_code == ErrorCode.FENCED_INSTANCE_ID
        stranger.generation = old.generation
        assert stranger.heartbeat() == ErrorCode.FENCED_INSTANCE_ID

    def test_one_that_nobody_holds_is_unknown(self, world, old):
        stranger = ClassicClient(world, instance_id="j")
        stranger.id = "stranger"
        assert stranger.join().error_code == UNKNOWN
        assert stranger.heartbeat() == UNKNOWN

    def test_one_that_a_member_of_the_newer_protocol_holds_is_free_once_it_has_left_for_a_while(self, world, new):
        holder, client = ConsumerClient(world, "H", instance_id="h"), ClassicClient(world, instance_id="h")
        holder.join()
        assert client.join().error_code == ErrorCode.UNRELEASED_INSTANCE_ID
        holder.beat(-2)
        assert client.join().error_code == 0


class TestSyncing:
    def test_it_gets_what_it_has_as_its_leader_would_have_written_it(self, old):
        assert (old.synced.error_code, old.synced.protocol_type) == (0, "consumer")
        assert partitions(old) == [2, 3]

    @pytest.mark.parametrize(
        ("fields", "code"),
        [
            ({"generation_id": 99}, ErrorCode.ILLEGAL_GENERATION),
            ({"member_id": "x", "group_instance_id": None}, UNKNOWN),
            ({"member_id": "N", "group_instance_id": None}, UNKNOWN),
            ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
            ({"protocol_name": "sticky"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
            ({"protocol_type": "consumer", "protocol_name": "range"}, 0),
        ],
    )
    def test_refusals(self, old, fields, code):
        assert old.sync(**fields).error_code == code

    def test_it_is_told_to_join_again_where_there_is_a_newer_epoch(self, world, old):
        ConsumerClient(world, "O").join()
        assert old.sync().error_code == REBALANCE


class TestHeartbeats:
    def test_nothing_new(self, old):
        assert old.heartbeat() == 0
        assert old.heartbeat(generation_id=99) == ErrorCode.ILLEGAL_GENERATION

    def test_a_newer_epoch(self, world, old):
        ConsumerClient(world, "O").join()
        assert old.heartbeat() == REBALANCE

    def test_a_partition_that_is_free_by_now(self, world, new):
        """The newer member has not given back its half when the classic one joins."""
        old = ClassicClient(world)
        old.join()
        assert old.sync().error_code == 0
        assert (partitions(old), old.heartbeat()) == ([], 0)
        new.beat()
        new.beat()
        assert old.heartbeat() == REBALANCE
        old.join()
        old.sync()
        assert partitions(old) == [2, 3]

    def test_silence_ends_the_membership(self, world, new, old):
        world.advance(10_001)
        assert old.heartbeat() == UNKNOWN


class TestLeaving:
    def test_members_of_either_kind_leave_by_id_or_instance(self, world, new, old):
        other = ConsumerClient(world, "O", instance_id="o")
        other.join()
        assert leave(world, ("", "i"), ("O", None)) == [0, 0]
        assert set(group_of(world).members) == {"N"}

    def test_what_became_of_each_is_told(self, world, new, old):
        told = leave(world, ("x", None), ("", "j"), ("N", "i"), (old.id, "i"), (old.id, "i"))
        assert told == [UNKNOWN, UNKNOWN, ErrorCode.FENCED_INSTANCE_ID, 0, UNKNOWN]

    def test_nothing_changes_where_nobody_leaves(self, world, new, old):
        before = group_of(world).epoch
        assert leave(world, ("x", None)) == [UNKNOWN]
        assert group_of(world).epoch == before
