"""Shards of the log of groups that another broker coordinates for a while: nothing of them stays here, and all of it comes back."""

import pytest

from horolog.broker.base.java_hash import partition_for
from horolog.broker.base.topic_names import GROUP_OFFSETS
from horolog.broker.cluster.cluster_state import Lead, LeadsChanged, TopicsCreated
from horolog.broker.log.integrity import BeingRescanned
from horolog.broker.log.partition import Partition
from horolog.broker.on_record.cluster_file import StoredTopic
from horolog.protocol.errors import ErrorCode
from horolog.protocol.flat import flat_of, struct_of
from horolog.protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetDeleteRequest,
)
from tests.support.at_once import at_once
from tests.support.group_members import ClassicClient, ConsumerClient, commit, committed, first_error, stabilise
from tests.support.group_world import GroupWorld
from tests.support.members import among

OTHER, ME = 2, 1
ELSEWHERE = ErrorCode.NOT_COORDINATOR


@pytest.fixture
def world():
    world = GroupWorld()
    world.topic()
    world.cluster.on_led = lambda _, shard: world.coordinator.shards.gained(shard)
    world.cluster.on_led_elsewhere = lambda _, shard: world.coordinator.shards.lost(shard)
    return world


def led_by(world, node, epoch, group_id="g"):
    topic, shard = world.coordinator.offsets_place(group_id)
    place = (world.cluster.topics[topic].id, shard)
    among(world.cluster, OTHER)
    assert at_once(world.cluster.changes.make, lambda _: LeadsChanged(((place, Lead(node, epoch)),))) == {}


def in_another_shard(world, group_id="g"):
    names = (f"other-{number}" for number in range(100))
    return next(
        one for one in names if world.coordinator.offsets_place(one) != world.coordinator.offsets_place(group_id)
    )


def test_a_lost_group_is_another_brokers_and_comes_back_as_the_log_has_it(world):
    member = ClassicClient(world)
    stabilise(member)
    assert commit(world, 5, member_id=member.id, generation_id_or_member_epoch=member.generation) == 0
    led_by(world, OTHER, 4)
    assert member.heartbeat() == ELSEWHERE
    assert commit(world, 6) == ELSEWHERE
    assert ClassicClient(world).join().error_code == ELSEWHERE
    assert world.coordinator.find("g") == ELSEWHERE
    assert at_once(world.coordinator.delete_offsets, OffsetDeleteRequest(group_id="g")).error_code == ELSEWHERE
    assert not world.coordinator.groups()
    led_by(world, ME, 5)
    assert member.heartbeat() == 0
    assert committed(world).committed_offset == 5


def test_its_timers_are_stopped(world):
    member = ClassicClient(world)
    stabilise(member)
    led_by(world, OTHER, 4)
    assert "0 running" in repr(world.timers)
    end = world.offsets_partition("g")
    world.advance(60_000)
    assert end == ErrorCode.NOT_LEADER_OR_FOLLOWER
    led_by(world, ME, 5)
    assert member.heartbeat() == 0  # its session begins again with the loading
    world.advance(60_000)
    assert member.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID


def test_who_waits_in_a_group_is_told_to_look_for_its_coordinator(world):
    first, second = ClassicClient(world), ClassicClient(world)
    stabilise(first)
    second.send_join()
    assert second.joined is None
    led_by(world, OTHER, 4)
    assert second.joined.error_code == ELSEWHERE


def test_groups_of_the_newer_protocol_go_and_come_back(world):
    member = ConsumerClient(world, "m")
    member.join()
    assert member.partitions == [0, 1, 2, 3]
    led_by(world, OTHER, 4)
    assert member.beat().error_code == ELSEWHERE
    assert "0 running" in repr(world.timers)
    led_by(world, ME, 5)
    assert member.beat().error_code == 0


def test_groups_of_other_shards_go_on(world):
    name = in_another_shard(world)
    member = ClassicClient(world, name)
    stabilise(member)
    led_by(world, OTHER, 4)
    assert member.heartbeat() == 0
    assert commit(world, 7, group_id=in_another_shard(world), member_id=member.id, generation_id_or_member_epoch=1) == 0


def test_a_commit_that_is_being_written_when_the_shard_goes_leaves_no_group_behind(world):
    answers = []
    world.coordinator.offsets_place("g")
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=5)
    request = OffsetCommitRequest(group_id="g", topics=[OffsetCommitRequestTopic(name="t", partitions=[partition])])
    world.coordinator.commit(flat_of(request), 9, answers.append)
    led_by(world, OTHER, 4)
    world.tick()
    assert first_error(struct_of(OffsetCommitResponse, answers[0])) == ELSEWHERE
    assert not world.coordinator.groups()
    led_by(world, ME, 5)
    assert committed(world).committed_offset == 5  # it is in the log: who sends it again does no harm


def test_old_offsets_and_pending_ones_go_with_their_shard(world):
    assert commit(world, 5, version=0) == 0
    registry = world.coordinator.registry
    registry.pending[7] = {"g", in_another_shard(world)}
    registry.pending[8] = {"g"}
    led_by(world, OTHER, 4)
    assert not registry.old_offsets
    assert registry.pending == {7: {in_another_shard(world)}}
    led_by(world, ME, 5)
    assert registry.old_offsets["g"].get(("t", 0)).offset == 5


def test_a_shard_that_is_lost_while_it_is_read_stays_lost(world, monkeypatch):
    monkeypatch.setattr("horolog.broker.groups.shards.PIECES_AT_ONCE", 1)
    assert commit(world, 5) == 0
    led_by(world, OTHER, 4)
    led_by(world, ME, 5)
    assert world.coordinator.is_loading
    led_by(world, OTHER, 6)
    world.advance(1)
    assert not world.coordinator.is_loading
    assert world.coordinator.find("g") == ELSEWHERE
    led_by(world, ME, 7)
    led_by(world, OTHER, 8)
    led_by(world, ME, 9)
    world.advance(1)
    assert committed(world).committed_offset == 5


def test_a_damaged_shard_is_read_once_it_is_rescanned(world, monkeypatch):
    assert commit(world, 5) == 0
    led_by(world, OTHER, 4)

    def damaged(*_arguments, **_fields):
        raise BeingRescanned("damaged")

    with monkeypatch.context() as patched:
        patched.setattr(Partition, "read", damaged)
        led_by(world, ME, 5)
    assert world.coordinator.find("g") == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    world.coordinator.shards.rescanned(world.coordinator.offsets_place("g")[1])
    assert committed(world).committed_offset == 5


def test_a_start_knows_which_shards_are_elsewhere(world):
    assert commit(world, 5) == 0
    led_by(world, OTHER, 4)
    for _ in world.coordinator.load():
        pass
    assert world.coordinator.find("g") == ELSEWHERE


def test_shards_of_a_new_topic_that_others_lead_are_elsewhere():
    """Whichever broker was asked to make it."""
    world = GroupWorld()
    world.cluster.on_led_elsewhere = lambda _, shard: world.coordinator.shards.lost(shard)
    topic = StoredTopic(GROUP_OFFSETS, bytes(15) + b"g", 3, {})
    among(world.cluster, OTHER)
    leads = LeadsChanged(tuple(((topic.id, shard), Lead(1 if shard == 1 else OTHER, 4)) for shard in range(3)))
    for entry in (leads, TopicsCreated((topic,))):
        assert at_once(world.cluster.changes.make, lambda _, entry=entry: entry) == {}
    names = {partition_for(name, 3): name for name in map(str, range(50))}
    codes = {shard: ClassicClient(world, name).join().error_code for shard, name in names.items()}
    assert codes == {0: ELSEWHERE, 1: 0, 2: ELSEWHERE}
    for _ in world.coordinator.load():
        pass
    assert world.coordinator.registry.elsewhere == {0, 2}


def test_a_start_that_leads_none_of_them_answers_for_none(world):
    assert commit(world, 5) == 0
    among(world.cluster, OTHER)
    for shard in range(3):
        place = (world.cluster.topics[GROUP_OFFSETS].id, shard)
        at_once(world.cluster.changes.make, lambda _, place=place: LeadsChanged(((place, Lead(OTHER, 4)),)))
    for _ in world.coordinator.load():
        pass
    assert world.coordinator.find("g") == ELSEWHERE


@pytest.fixture
def shards(world):
    return world.coordinator.shards


@pytest.fixture
def shard(world):
    """The one of group `g`, in which something is kept."""
    assert commit(world, 5) == 0
    return world.coordinator.offsets_place("g")[1]


class TestAPartitionThatCannotBeRead:
    @pytest.fixture
    def failing(self, world, shard):
        world.storage.fail("read", "__consumer_offsets")
        for _ in world.coordinator.load():
            pass
        return world.offsets_partition("g")

    def test_is_offline_and_its_groups_are_loading(self, world, failing):
        assert "cannot be read" in failing.condition.fault
        assert world.coordinator.find("g") == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    def test_is_not_even_looked_at_while_it_is_offline(self, world, shards, failing):
        shards.reopened(failing.index)
        assert world.coordinator.find("g") == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    def test_is_read_when_it_is_back(self, world, shards, failing):
        assert world.logs.open_again(failing)
        shards.reopened(failing.index)
        assert committed(world).committed_offset == 5


class TestAPartitionThatIsBack:
    def test_does_not_undo_groups_that_are_known(self, world, shards, shard):
        registry = world.coordinator.registry
        before = registry.groups["g"]
        shards.reopened(shard)
        shards.rescanned(shard)
        assert registry.groups["g"] is before

    def test_is_read_where_no_group_of_it_is_known(self, world, shards, shard):
        world.coordinator.registry.groups.clear()
        shards.reopened(shard)
        assert committed(world).committed_offset == 5


def test_a_reload_has_groups_as_the_log_has_them_and_is_not_begun_twice(world, shards, shard, monkeypatch):
    monkeypatch.setattr("horolog.broker.groups.shards.PIECES_AT_ONCE", 1)
    registry = world.coordinator.registry
    registry.groups["g"].offsets.get(("t", 0)).offset = 99
    shards.reload(shard)
    assert registry.load_error(shard)
    shards.reload(shard)
    world.advance(1)
    assert committed(world).committed_offset == 5
    assert repr(shards).startswith("<Shards of <GroupJournal of 3 partitions>")
