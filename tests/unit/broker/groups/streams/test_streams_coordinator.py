"""The group of a heartbeat: new, of another type, loading, or changed from one type to the other."""

import pytest

from horolog.broker.groups.classic_group import ClassicGroup
from horolog.broker.groups.consumer_group import ConsumerGroup
from horolog.broker.groups.offsets import Committed, GroupOffsets
from horolog.broker.groups.share.share_group import ShareGroup
from horolog.broker.groups.streams.streams_group import StreamsGroup
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.consumer_groups import ConsumerGroupHeartbeatRequest
from horolog.protocol.messages.groups import JoinGroupRequest, JoinGroupRequestProtocol
from horolog.protocol.messages.streams_groups import StreamsKeyValue
from tests.support.group_world import CLIENT
from tests.support.streams_world import (
    GROUP,
    Application,
    StreamsWorld,
    counting,
    endpoint,
    settle,
    subtopology,
    topology,
)

NOT_FOUND = ErrorCode.GROUP_ID_NOT_FOUND


@pytest.fixture
def world():
    world = StreamsWorld()
    world.topic("t", 2)
    return world


def keep(world, group):
    world.coordinator.registry.groups[GROUP] = group


def join(world):
    given = []
    protocol = JoinGroupRequestProtocol(name="range", metadata=b"")
    request = JoinGroupRequest(
        group_id=GROUP, session_timeout_ms=10_000, protocol_type="consumer", protocols=[protocol]
    )
    world.coordinator.join(request, 3, CLIENT, given.append)
    world.tick()
    return given


def test_a_group_that_does_not_exist(world):
    refused = world.beat("m1", 3)
    assert (refused.error_code, refused.error_message) == (NOT_FOUND, "Group g not found.")
    assert "StreamsCoordinator" in repr(world.coordinator.streams)


@pytest.mark.parametrize(
    "other", [ConsumerGroup(GROUP, 0, GroupOffsets(), 0), ShareGroup(GROUP, 0, 0)], ids=["consumer", "share"]
)
def test_groups_of_other_types(world, other):
    keep(world, other)
    refused = world.beat()
    assert (refused.error_code, refused.error_message) == (NOT_FOUND, "Group g is not a streams group.")


def test_a_group_that_is_loading(world):
    world.coordinator.registry.loading = {0, 1, 2}
    assert world.beat().error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def test_no_more_groups_than_the_broker_keeps():
    world = StreamsWorld({"horolog.groups.max": 1})
    world.beat(group="one")
    assert world.beat(group="two").error_code == ErrorCode.GROUP_MAX_SIZE_REACHED


def test_a_description_that_is_too_long():
    world = StreamsWorld({"horolog.group.members.max.bytes": 1024})
    refused = world.beat(user_endpoint=endpoint(), rack_id="r" * 2_000)
    assert refused.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert not world.coordinator.registry.groups


def test_an_empty_classic_group_becomes_one_with_its_offsets(world):
    join(world)
    (_member,) = world.group().members
    with_member = world.beat()
    assert (with_member.error_code, with_member.error_message) == (NOT_FOUND, "Group g is not a streams group.")
    world.advance(11_000)
    world.group().offsets.put(("t", 0), Committed(7, 0, "", 0))
    settle(Application(world, "m1"))
    assert isinstance(world.group(), StreamsGroup)
    assert [one.offset for _, one in world.group().offsets.items()] == [7]
    world.restart()
    assert world.group().state_name == "Stable"


def test_a_refused_member_leaves_the_classic_group_as_it_is(world):
    keep(world, ClassicGroup(GROUP, 0, GroupOffsets(), 0))
    refused = world.beat(topology=topology(subtopology("0")))
    assert refused.error_code == ErrorCode.STREAMS_INVALID_TOPOLOGY
    assert isinstance(world.group(), ClassicGroup)


def test_an_empty_one_becomes_classic_again(world):
    one = Application(world, "m1")
    settle(one)
    one.leave()
    world.group().offsets.put(("t", 0), Committed(7, 0, "", 0))
    join(world)
    assert isinstance(world.group(), ClassicGroup)
    assert len(world.group().offsets) == 1
    world.restart()
    assert not isinstance(world.coordinator.registry.groups.get(GROUP), StreamsGroup)


def test_a_consumer_may_not_join(world):
    one = Application(world, "m1")
    settle(one)
    one.leave()
    given = []
    request = ConsumerGroupHeartbeatRequest(
        group_id=GROUP, member_id="c", rebalance_timeout_ms=1, subscribed_topic_names=["t"], topic_partitions=[]
    )
    world.coordinator.consumer_heartbeat(request, 1, CLIENT, given.append)
    assert [one.error_code for one in given] == [NOT_FOUND]


def test_deletion_and_expiry(world):
    def delete():
        given = []
        world.coordinator.delete_group(GROUP, given.append)
        world.tick()
        return given

    one = Application(world, "m1")
    settle(one)
    assert delete() == [ErrorCode.NON_EMPTY_GROUP]
    world.coordinator.expire_offsets()
    one.leave()
    assert delete() == [ErrorCode.NONE]
    world.restart()
    assert not world.coordinator.registry.groups
    settle(one)
    one.leave()
    world.coordinator.expire_offsets()
    world.tick()
    assert not world.coordinator.registry.groups, "it has no offsets left"


def test_a_creation_that_fails_is_told_to_the_group_that_is_still_there(world, caplog):
    bad = counting()
    bad.subtopologies[1].repartition_source_topics[0].topic_configs.append(StreamsKeyValue(key="no.such", value="1"))
    world.beat(topology=bad)
    assert list(world.group().creation_errors) == ["g-by-key"]
    assert "internal topics could not be created" in caplog.text
    gone = world.group()
    del world.coordinator.registry.groups[GROUP]
    missing = {info.name: (info, 1) for info in bad.subtopologies[1].repartition_source_topics}
    gone.creation_errors = {}
    world.coordinator.streams._create(gone, missing)
    assert gone.creation_errors == {}


def test_nothing_is_created_for_a_group_that_could_not_be_written(world):
    world.beat("m0", group="other", topology=topology(subtopology("0", ["t"])))
    world.storage.fail("write", "__consumer_offsets", times=1)
    assert world.beat().error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert "g-log" not in world.cluster.topics


def test_a_classic_group_of_offsets_alone_leaves_no_tombstone(world):
    keep(world, ClassicGroup(GROUP, 0, GroupOffsets(), 0))
    world.group().offsets.put(("t", 0), Committed(7, 0, "", 0))
    settle(Application(world, "m1"))
    assert len(world.group().offsets) == 1
