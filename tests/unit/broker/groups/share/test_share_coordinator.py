"""What the rest of the broker asks of share groups, and groups and topics that go."""

import pytest

from horolog.broker.groups.classic_group import ClassicGroup
from horolog.broker.groups.consumer_group import ConsumerGroup
from horolog.broker.groups.offsets import GroupOffsets
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.consumer_groups import ConsumerGroupHeartbeatRequest
from tests.support.at_once import delete_topic
from tests.support.group_world import CLIENT
from tests.support.share_world import GROUP, ShareWorld


@pytest.fixture
def world():
    world = ShareWorld()
    world.topic("t", 2)
    return world


def deleted(world, group=GROUP):
    given = []
    world.coordinator.delete_group(group, given.append)
    world.tick()
    return given


def test_settings(world):
    world.join()
    assert world.share.settings(GROUP).delivery_count_limit == 5
    assert GROUP in {one.id for one in world.coordinator.groups()}
    assert "ShareCoordinator" in repr(world.share)


@pytest.mark.parametrize("kind", [ClassicGroup, ConsumerGroup])
def test_a_group_of_another_type_is_no_share_group(world, kind):
    world.coordinator.registry.groups[GROUP] = kind(GROUP, 0, GroupOffsets(), 0)
    refused = world.beat(topics=["t"])
    assert refused.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert refused.error_message == f"Group {GROUP} is not a share group."
    assert world.beat(epoch=-1).error_message == f"Group {GROUP} is not a share group."


def test_a_consumer_may_not_join_a_share_group(world):
    world.join()
    world.beat("m1", -1)
    given = []
    request = ConsumerGroupHeartbeatRequest(
        group_id=GROUP,
        member_id="c",
        rebalance_timeout_ms=1,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )
    world.coordinator.consumer_heartbeat(request, 1, CLIENT, given.append)
    assert [one.error_code for one in given] == [ErrorCode.GROUP_ID_NOT_FOUND]


def test_a_group_that_is_loading_is_asked_again(world):
    world.join()
    world.coordinator.registry.loading.add(world.group().shard)
    assert world.beat(topics=["t"]).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert not world.share.is_free(GROUP)


def test_limits_on_groups_and_on_what_members_say():
    world = ShareWorld({"horolog.groups.max": 1, "horolog.group.members.max.bytes": 1024})
    world.topic("t", 1)
    world.join()
    assert world.beat("m", 0, ["t"], "other").error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    refused = world.beat("m2", 0, ["t" * 240 + str(number) for number in range(5)])
    assert refused.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED


def test_a_member_whose_group_cannot_be_written_is_no_member(world):
    world.join()
    world.storage.fail("write", "__consumer_offsets")
    refused = world.beat("m2", 0, ["t", "u"])
    assert refused.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    world.restart()
    assert set(world.group().members) == {"m1"}


def test_states_are_not_asked_for_before_the_group_is_written(world):
    world.join("m0", group="warm-up")
    world.persister.states.clear()
    world.storage.fail("write", "__consumer_offsets")
    world.beat("m1", 0, ["t"])
    assert world.persister.states == {}


def test_a_group_whose_deletion_cannot_be_written_keeps_its_states(world):
    world.join()
    world.beat("m1", -1)
    world.storage.fail("write", "__consumer_offsets")
    assert deleted(world) == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert world.persister.states


def test_a_group_is_deleted_with_its_states(world):
    world.join()
    assert deleted(world) == [ErrorCode.NON_EMPTY_GROUP]
    world.beat("m1", -1)
    assert deleted(world) == [ErrorCode.NONE]
    assert world.persister.states == {}
    assert world.coordinator.groups() == []
    world.restart()
    assert world.coordinator.groups() == []
    assert deleted(world) == [ErrorCode.GROUP_ID_NOT_FOUND]


def test_a_group_whose_states_cannot_be_deleted_stays(world):
    world.join()
    world.beat("m1", -1)
    world.persister.refusal = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert deleted(world) == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert world.group().tracked.deleting
    world.persister.refusal = ErrorCode.NONE
    assert deleted(world) == [ErrorCode.NONE], "a deletion that did not end is tried again"
    assert world.persister.states == {}


def test_a_member_that_joins_while_the_states_are_deleted_keeps_its_group(world):
    world.join()
    world.beat("m1", -1)
    world.persister.holds_back = True
    assert deleted(world) == []
    given = []
    world.coordinator.delete_group(GROUP, given.append)
    world.tick()
    world.beat("m2", 0, ["t"])
    world.persister.answer()
    world.tick()
    assert given == [ErrorCode.NON_EMPTY_GROUP]
    assert set(world.group().members) == {"m2"}


def test_states_of_a_deleted_topic_are_swept(world):
    world.join()
    delete_topic(world.cluster, "t")
    world.persister.refusal = ErrorCode.COORDINATOR_NOT_AVAILABLE
    world.coordinator.expire_offsets()
    world.tick()
    assert world.persister.states
    world.persister.refusal = ErrorCode.NONE
    world.coordinator.expire_offsets()
    world.tick()
    assert world.persister.states == {}
    assert world.group().tracked.is_empty
    world.coordinator.expire_offsets()
    assert not world.committer.queued, "there is nothing left to sweep"


def test_a_deletion_that_did_not_end_is_forgotten_with_its_topic(world):
    world.join()
    world.beat("m1", -1)
    world.persister.refusal = ErrorCode.COORDINATOR_NOT_AVAILABLE
    deleted(world)
    delete_topic(world.cluster, "t")
    world.persister.refusal = ErrorCode.NONE
    world.coordinator.expire_offsets()
    world.tick()
    assert world.group().tracked.is_empty


def test_a_group_that_is_new_is_free_until_it_is_kept(world):
    assert world.share.is_free(GROUP)
    assert world.beat(epoch=3).error_message == f"Share group {GROUP} not found."
    group = world.share.new(GROUP)
    world.share.keep(group)
    assert not world.share.is_free(GROUP)
    assert world.share.find(GROUP) is group


def test_what_is_tracked_changes_for_a_group_that_is_kept_alone(world):
    world.join()
    codes = []
    stranger = world.share.new(GROUP)
    world.share.track(stranger, lambda tracked: tracked, codes.append)
    world.share.track(world.group(), lambda tracked: tracked, codes.append)
    assert codes == [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NONE]


def test_states_that_the_persister_refuses_are_reported(world, caplog):
    world.persister.refusal = ErrorCode.COORDINATOR_NOT_AVAILABLE
    world.beat(topics=["t"])
    assert "the state of 2 partitions could not be created" in caplog.text


def test_an_answer_for_a_group_that_was_read_again_changes_nothing(world):
    world.persister.holds_back = True
    world.beat(topics=["t"])
    world.coordinator.shards.reload(world.group().shard)
    world.persister.answer()
    world.tick()
    assert not world.group().tracked.initialized


def test_states_that_were_begun_after_the_deletion_began_are_deleted_too(world):
    world.join()
    world.beat("m1", -1)
    world.persister.refusal = ErrorCode.COORDINATOR_NOT_AVAILABLE
    deleted(world)
    world.persister.refusal = ErrorCode.NONE
    world.join("m2")
    world.beat("m2", -1)
    assert not world.group().tracked.deleting
    assert deleted(world) == [ErrorCode.NONE]
    assert world.persister.states == {}


def test_an_empty_group_stays_when_a_member_is_refused(world):
    """A group whose topics do not exist has no states either."""
    world.beat(topics=["missing"])
    world.beat("m1", -1)
    assert world.group().tracked.is_empty
    assert world.beat("m2", 7).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert world.group().is_empty
