"""The front of the groups: each request finds its group, or is told why not."""

import pytest

from horolog.broker.groups.classic_group import ClassicGroup
from horolog.broker.groups.consumer_group import ConsumerGroup
from horolog.protocol.errors import ErrorCode
from horolog.protocol.flat import flat_of, struct_of
from horolog.protocol.messages.consumer_groups import ConsumerGroupHeartbeatRequest
from horolog.protocol.messages.groups import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
)
from horolog.protocol.messages.transactions import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from tests.support.at_once import at_once
from tests.support.group_members import ClassicClient, ConsumerClient, commit, committed, first_error, stabilise
from tests.support.group_world import CLIENT, GroupWorld
from tests.support.share_world import ShareWorld

LOADING = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
UNKNOWN = ErrorCode.UNKNOWN_MEMBER_ID


@pytest.fixture
def coordinator(world):
    return world.coordinator


def joined(world, **fields):
    values = {"group_id": "g", "session_timeout_ms": 10_000, "protocol_type": "consumer"} | fields
    answers = []
    world.coordinator.join(JoinGroupRequest(**values), 3, CLIENT, answers.append)
    return answers[0].error_code


def beaten(world, **fields):
    values = {"group_id": "g", "member_id": "m", "rebalance_timeout_ms": 5, "subscribed_topic_names": ["t"]} | fields
    answers = []
    world.coordinator.consumer_heartbeat(ConsumerGroupHeartbeatRequest(**values), 1, CLIENT, answers.append)
    world.tick()
    return answers[0].error_code


def left(world, *members, group_id="g"):
    identities = [MemberIdentity(member_id=one) for one in members]
    return world.coordinator.leave(LeaveGroupRequest(group_id=group_id, members=identities), 3)


def synced(world, group_id="g"):
    return at_once(world.coordinator.sync, SyncGroupRequest(group_id=group_id)).error_code


def deleted(world, group_id="g"):
    codes = []
    world.coordinator.delete_group(group_id, codes.append)
    world.tick()
    return codes[0]


class TestWithoutAGroup:
    def test_members_are_unknown(self, world, coordinator):
        assert synced(world) == UNKNOWN
        assert coordinator.heartbeat(HeartbeatRequest(group_id="g", member_id="m")) == UNKNOWN
        assert [code for _, code in left(world, "a", "b")[1]] == [UNKNOWN, UNKNOWN]
        assert joined(world, member_id="m") == UNKNOWN
        assert beaten(world, member_epoch=5) == ErrorCode.GROUP_ID_NOT_FOUND

    def test_there_is_none_to_look_at_or_to_delete(self, world, coordinator):
        assert coordinator.find("g") == deleted(world) == ErrorCode.GROUP_ID_NOT_FOUND
        assert coordinator.groups() == []
        assert repr(coordinator).startswith("<GroupCoordinator: <Registry of 0 groups")


class TestRequestsThatNameNoGroupOrAskTooMuch:
    def test_a_group_has_a_name(self, world):
        assert joined(world, group_id="") == synced(world, "") == ErrorCode.INVALID_GROUP_ID
        assert left(world, "a", group_id="") == (ErrorCode.INVALID_GROUP_ID, [])
        assert world.coordinator.heartbeat(HeartbeatRequest(group_id="")) == ErrorCode.INVALID_GROUP_ID
        assert beaten(world, group_id="") != 0

    @pytest.mark.parametrize("session_ms", [5_999, 1_800_001])
    def test_a_session_has_bounds(self, world, session_ms):
        assert joined(world, session_timeout_ms=session_ms) == ErrorCode.INVALID_SESSION_TIMEOUT
        assert world.coordinator.groups() == []


class TestEachProtocol:
    def test_classic_members_join_sync_beat_and_leave(self, world, coordinator):
        member = ClassicClient(world)
        stabilise(member)
        assert isinstance(coordinator.find("g"), ClassicGroup)
        assert member.heartbeat() == 0
        assert [code for _, code in left(world, member.id, "other")[1]] == [0, UNKNOWN]
        assert coordinator.find("g").is_empty

    def test_old_clients_leave_by_themselves(self, world):
        member = ClassicClient(world)
        stabilise(member)
        assert member.leave() == 0

    def test_a_group_is_there_from_the_first_id_that_it_has_given_away(self, world, coordinator):
        member = ClassicClient(world, version=9)
        member.send_join()
        assert member.joined.error_code == ErrorCode.MEMBER_ID_REQUIRED
        assert coordinator.find("g").pending

    def test_a_refused_member_leaves_no_group_behind(self, world, coordinator):
        assert joined(world, protocols=[]) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        assert coordinator.groups() == []

    def test_members_of_the_newer_one_beat_and_leave(self, world, coordinator):
        member = ConsumerClient(world, "m")
        assert member.join().error_code == 0
        assert isinstance(coordinator.find("g"), ConsumerGroup)
        assert member.beat().error_code == 0
        assert member.beat(-1).error_code == 0
        assert coordinator.find("g").is_empty

    def test_a_classic_member_beats_in_a_group_of_the_newer_one(self, world):
        ConsumerClient(world, "m").join()
        member = ClassicClient(world)
        member.join()
        assert member.sync().error_code == 0
        assert member.heartbeat() == 0

    def test_a_malformed_heartbeat_is_refused_before_a_group_is_looked_for(self, world, coordinator):
        assert beaten(world, member_id="") == ErrorCode.INVALID_REQUEST
        assert coordinator.groups() == []


class TestWhileItsShardIsRead:
    @pytest.fixture(autouse=True)
    def loading(self, coordinator):
        coordinator.registry.loading = {coordinator._journal.shard_of("g")}

    def test_everybody_is_told_to_come_again(self, world, coordinator):
        assert coordinator.is_loading
        assert joined(world) == synced(world) == beaten(world, topic_partitions=[]) == LOADING
        assert coordinator.heartbeat(HeartbeatRequest(group_id="g")) == LOADING
        assert left(world, "a") == (LOADING, [])
        assert coordinator.find("g") == deleted(world) == LOADING


class TestOffsets:
    def test_they_outlive_a_restart(self, world):
        assert commit(world, 5) == 0
        world.restart()
        assert committed(world).committed_offset == 5

    def test_the_topic_is_made_when_somebody_asks_for_it(self, world, coordinator):
        assert at_once(coordinator.ensure_topic) == 0
        topic, shard = coordinator.offsets_place("g")
        assert world.cluster.topics[topic].has(shard)

    def test_a_topic_that_cannot_be_made_is_told(self, world, coordinator):
        world.storage.fail("sync", "horolog-journal", times=2)
        assert at_once(coordinator.ensure_topic) == ErrorCode.KAFKA_STORAGE_ERROR
        assert at_once(coordinator.ensure_topic) == 0

    @pytest.mark.parametrize(("ends_well", "offset"), [(True, 7), (False, 5)])
    def test_those_of_a_transaction_count_at_its_end(self, world, coordinator, ends_well, offset):
        commit(world, 5)
        partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=7)
        topics = [TxnOffsetCommitRequestTopic(name="t", partitions=[partition])]
        request = TxnOffsetCommitRequest(group_id="g", producer_id=3, producer_epoch=0, topics=topics)
        answers = []
        coordinator.txn_commit(flat_of(request), answers.append)
        world.tick()
        assert first_error(struct_of(TxnOffsetCommitResponse, answers[0])) == 0
        assert committed(world).committed_offset == 5
        coordinator.complete_txn(3, committed=ends_well)
        assert committed(world).committed_offset == offset

    def test_old_ones_go_with_their_group(self, world, coordinator):
        commit(world, 5)
        world.advance(8 * 24 * 3_600_000)
        for _ in range(2):
            coordinator.expire_offsets()
            world.tick()
        assert coordinator.groups() == []


class TestDeleting:
    def test_an_empty_group_is_gone_for_good(self, world, coordinator):
        commit(world, 5)
        assert deleted(world) == 0
        world.restart()
        assert world.coordinator.groups() == []

    def test_a_live_one_stays(self, world):
        stabilise(ClassicClient(world))
        assert deleted(world) == ErrorCode.NON_EMPTY_GROUP

    def test_one_whose_end_cannot_be_written_stays(self, world, coordinator):
        commit(world, 5)
        world.storage.fail("write", "__consumer_offsets")
        assert deleted(world) == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert committed(world).committed_offset == 5


def test_a_lost_write_has_the_groups_read_again():
    """A group of the newer protocol is as the log says, whatever was decided before the write failed."""
    world = GroupWorld()
    world.topic()
    first = ConsumerClient(world, "a")
    first.join()
    epoch = world.coordinator.find("g").epoch
    world.storage.fail("write", "__consumer_offsets")
    assert ConsumerClient(world, "b").join().error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    found = world.coordinator.find("g")
    assert (set(found.members), found.epoch) == ({"a"}, epoch)


def test_a_share_group_is_deleted_once_the_persister_has_deleted_its_states():
    world = ShareWorld()
    world.topic("t", 1)
    world.join()
    world.beat("m1", -1)
    codes = []
    world.persister.refusal = ErrorCode.COORDINATOR_NOT_AVAILABLE
    world.coordinator.delete_group("g", codes.append)
    world.tick()
    world.persister.refusal = ErrorCode.NONE
    world.coordinator.delete_group("g", codes.append)
    world.tick()
    assert codes == [ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NONE]
    assert world.coordinator.groups() == []
    world.coordinator.delete_group("g", codes.append)
    assert codes[-1] == ErrorCode.GROUP_ID_NOT_FOUND
