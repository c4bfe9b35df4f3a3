"""Members of streams groups: heartbeats, epochs, tasks, statuses and time."""

import logging

import pytest

from horolog.broker.cluster.new_topics import NewPartitions
from horolog.broker.groups.streams.configured_topology import (
    ASSIGNMENT_DELAYED,
    MISSING_INTERNAL_TOPICS,
    MISSING_SOURCE_TOPICS,
    SHUTDOWN_APPLICATION,
    STALE_TOPOLOGY,
)
from horolog.broker.groups.streams.tasks import Role
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.groups import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
)
from horolog.protocol.messages.streams_groups import StreamsKeyValue
from tests.support.at_once import at_once, delete_topic
from tests.support.group_world import CLIENT
from tests.support.streams_world import GROUP, Application, StreamsWorld, counting, endpoint, settle, topology


@pytest.fixture
def world():
    world = StreamsWorld()
    world.topic("t", 4)
    return world


def codes(answer):
    return [one.status_code for one in answer.status]


def indexes(tasks, role=Role.ACTIVE):
    return sorted(task for its_role, task in tasks.each() if its_role is role)


ALL = sorted((name, index) for name in ("0", "1") for index in range(4))


# -- the topology and its topics


def test_the_first_member_has_internal_topics_created_and_gets_all_tasks(world):
    member = Application(world, "m1")
    first = member.beat()
    assert codes(first) == [MISSING_INTERNAL_TOPICS]
    assert (first.active_tasks, first.member_epoch) == ([], 2)
    assert {name: world.cluster.topics[name].partition_count for name in ("g-by-key", "g-log")} == {
        "g-by-key": 4,
        "g-log": 4,
    }
    assert world.cluster.topics["g-log"].overrides == {"cleanup.policy": "compact"}
    second = member.beat()
    assert (second.status, second.member_epoch, second.heartbeat_interval_ms) == ([], 3, 5_000)
    assert indexes(member.tasks) == ALL
    assert world.group().state_name == "Stable"
    quiet = member.beat()
    assert (quiet.active_tasks, quiet.standby_tasks, quiet.warmup_tasks) == (None, None, None)


def test_without_its_source_topics_a_group_waits(world):
    member = Application(world, "m1")
    settle(member)
    delete_topic(world.cluster, "t")
    asked = member.beat()
    assert codes(asked) == [MISSING_SOURCE_TOPICS]
    assert (asked.active_tasks, world.group().state_name) == ([], "NotReady")
    assert member.beat().member_epoch == world.group().epoch
    world.topic("t", 4)
    assert member.beat().status == []
    assert indexes(member.tasks) == ALL


def test_more_partitions_that_do_not_fit_the_internal_topics(world):
    member = Application(world, "m1")
    settle(member)
    at_once(world.cluster.add_partitions, [NewPartitions("t", 6)])
    assert "expected 6, found 4" in member.beat().status[0].status_detail


def test_topics_that_may_not_be_created_are_named(world):
    first = world.beat(may_create=lambda name: name != "g-log")
    assert first.status[0].status_detail == (
        "Internal topics are missing: g-by-key, g-log; Unauthorized to CREATE on topics g-log."
    )
    assert "g-by-key" not in world.cluster.topics
    assert codes(world.beat("m1", first.member_epoch, may_create=lambda _: True)) == [MISSING_INTERNAL_TOPICS]
    assert world.beat("m1", first.member_epoch).status == []


def test_the_reason_of_a_failed_creation_is_in_the_status(world):
    bad = counting()
    bad.subtopologies[1].repartition_source_topics[0].topic_configs.append(StreamsKeyValue(key="no.such", value="1"))
    epoch = world.beat(topology=bad).member_epoch
    told = world.beat("m1", epoch).status[0].status_detail
    assert "; Creation failed: g-by-key (" in told
    assert "g-log (" not in told, "the other topic is there"


def test_a_member_with_an_older_topology_is_stale(world):
    settle(Application(world, "m1", topology=counting(epoch=3)))
    old = Application(world, "m2", topology=counting(epoch=2))
    assert codes(old.beat()) == [STALE_TOPOLOGY]
    assert codes(old.beat()) == [STALE_TOPOLOGY]


# -- members and tasks


def test_a_second_member_gets_its_share_once_the_first_has_given_it_back(world):
    one, two = Application(world, "m1"), Application(world, "m2")
    settle(one)
    two.beat()
    assert indexes(two.tasks) == []
    assert world.group().state_name == "Reconciling"
    one.beat(report=False)
    assert len(indexes(one.tasks)) == 4
    assert two.beat().active_tasks is None, "the first member has not confirmed"
    settle(one, two)
    assert sorted(indexes(one.tasks) + indexes(two.tasks)) == ALL
    assert world.group().state_name == "Stable"


def test_standby_tasks_are_in_other_processes(world):
    world.configure("streams.num.standby.replicas", "1")
    one, two = Application(world, "m1"), Application(world, "m2")
    settle(one, two)
    copies = indexes(one.tasks, Role.STANDBY) + indexes(two.tasks, Role.STANDBY)
    assert sorted(copies) == [("1", index) for index in range(4)]
    assert not set(indexes(one.tasks)) & set(indexes(one.tasks, Role.STANDBY))
    before = world.group().epoch
    world.configure("streams.num.standby.replicas", "0")
    settle(one, two)
    assert world.group().epoch == before + 1
    assert not indexes(one.tasks, Role.STANDBY) + indexes(two.tasks, Role.STANDBY)


def test_tasks_change_their_roles_when_a_member_leaves(world):
    world.configure("streams.num.standby.replicas", "1")
    one, two = Application(world, "m1"), Application(world, "m2")
    settle(one, two)
    one.leave()
    settle(two)
    assert indexes(two.tasks) == ALL
    assert indexes(two.tasks, Role.STANDBY) == []


def test_a_member_may_come_back_in_another_process(world):
    one, two = Application(world, "m1"), Application(world, "m2")
    settle(one, two)
    one.epoch = 0
    one.fields = {"process_id": "p-m2"}
    one.beat()
    assert world.group().members["m1"].process_id == "p-m2"
    settle(one, two)
    assert sorted(indexes(one.tasks) + indexes(two.tasks)) == ALL


def test_a_description_is_kept_and_a_change_begins_an_epoch(world):
    tags = [StreamsKeyValue(key="zone", value="a")]
    one = Application(world, "m1", rack_id="r", client_tags=tags, user_endpoint=endpoint())
    settle(one)
    member = world.group().members["m1"]
    assert member.description == ("r", "client", "/127.0.0.1", 60_000, 0, "p-m1", ("h", 1), (("zone", "a"),))
    epoch = world.group().epoch
    one.beat(rack_id="other", rebalance_timeout_ms=5)
    assert (world.group().epoch, member.rack_id, member.rebalance_timeout_ms) == (epoch + 1, "other", 5)


def test_all_members_learn_where_the_partitions_are(world):
    one = Application(world, "m1", user_endpoint=endpoint())
    first = one.beat()
    assert (first.endpoint_information_epoch, len(first.partitions_by_user_endpoint)) == (1, 1)
    second = one.beat(endpoint_information_epoch=1)
    assert second.endpoint_information_epoch == 2
    (told,) = second.partitions_by_user_endpoint
    assert {each.topic: each.partitions for each in told.active_partitions} == {
        "t": [0, 1, 2, 3],
        "g-by-key": [0, 1, 2, 3],
    }
    assert one.beat(endpoint_information_epoch=2).partitions_by_user_endpoint is None
    two = Application(world, "m2")
    assert len(two.beat().partitions_by_user_endpoint) == 1
    one.leave()
    assert two.beat(endpoint_information_epoch=2).partitions_by_user_endpoint == []


def test_a_member_may_shut_all_down(world):
    one, two = Application(world, "m1"), Application(world, "m2")
    settle(one, two)
    assert codes(one.beat(shutdown_application=True)) == [SHUTDOWN_APPLICATION]
    assert "member m1" in two.beat().status[0].status_detail
    one.leave()
    two.leave()
    assert SHUTDOWN_APPLICATION not in codes(two.beat())


def test_a_refused_heartbeat_changes_nothing(world):
    settle(Application(world, "m1"))
    before = world.group().epoch
    assert world.beat("m2", topology=topology()).error_code == ErrorCode.INVALID_REQUEST
    assert (world.group().epoch, list(world.group().members)) == (before, ["m1"])


def test_a_write_that_fails_has_no_effect(world, caplog):
    one = Application(world, "m1")
    settle(one)
    world.storage.fail("write", "__consumer_offsets", times=1)
    refused = world.beat("m2")
    assert refused.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert "reading it again from the log" in caplog.text


# -- time


def test_a_new_group_waits_for_more_members():
    world = StreamsWorld({})
    world.topic("t", 4)
    one, two = Application(world, "m1"), Application(world, "m2")
    assert codes(one.beat()) == [ASSIGNMENT_DELAYED, MISSING_INTERNAL_TOPICS]
    assert codes(one.beat()) == [ASSIGNMENT_DELAYED]
    world.advance(2_000)
    assert codes(two.beat()) == [ASSIGNMENT_DELAYED]
    assert world.group().state_name == "Assigning"
    world.advance(1_001)
    assert [len(indexes(each.target)) for each in world.group().members.values()] == [4, 4]
    settle(one, two, rounds=1)
    assert (len(indexes(one.tasks)), len(indexes(two.tasks))) == (4, 4)


def test_a_group_that_is_left_while_it_waits():
    world = StreamsWorld({})
    one = Application(world, "m1")
    one.beat()
    one.leave()
    world.advance(4_000)
    assert (world.group().state_name, world.group().is_delayed) == ("Empty", False)


def test_a_silent_member_is_removed(world, caplog):
    caplog.set_level(logging.INFO)
    one, two = Application(world, "m1"), Application(world, "m2")
    settle(one, two)
    world.advance(30_000)
    one.beat()
    world.advance(16_000)
    assert list(world.group().members) == ["m1"]
    assert "removing member m2, which sent no heartbeat in time" in caplog.text
    settle(one)
    assert indexes(one.tasks) == ALL
    assert two.beat().error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_gives_nothing_back_is_removed(world, caplog):
    caplog.set_level(logging.INFO)
    one, two = Application(world, "m1", rebalance_timeout_ms=10_000), Application(world, "m2")
    settle(one)
    two.beat()
    one.beat(report=False)
    world.advance(10_001)
    assert list(world.group().members) == ["m2"]
    assert "which did not give back its tasks in time" in caplog.text
    settle(two)
    assert indexes(two.tasks) == ALL


def test_a_member_that_gives_back_in_time_stays(world):
    one, two = Application(world, "m1", rebalance_timeout_ms=10_000), Application(world, "m2")
    settle(one)
    two.beat()
    one.beat(report=False)
    settle(one, two)
    world.advance(11_000)
    assert set(world.group().members) == {"m1", "m2"}


# -- requests of other protocols


def test_classic_requests_are_refused(world):
    settle(Application(world, "m1"))
    coordinator, given = world.coordinator, []
    join = JoinGroupRequest(group_id=GROUP, session_timeout_ms=10_000, protocol_type="consumer")
    coordinator.join(join, 5, CLIENT, lambda answer: given.append(answer.error_code))
    coordinator.sync(SyncGroupRequest(group_id=GROUP, member_id="m1"), lambda answer: given.append(answer.error_code))
    given.append(coordinator.heartbeat(HeartbeatRequest(group_id=GROUP, member_id="m1")))
    leave = LeaveGroupRequest(group_id=GROUP, members=[MemberIdentity(member_id="m1")])
    given += [code for _, code in coordinator.leave(leave, 3)[1]]
    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    assert given == [ErrorCode.INCONSISTENT_GROUP_PROTOCOL, unknown, unknown, unknown]


def test_a_member_that_has_missed_a_response_hears_of_its_tasks_again(world):
    one = Application(world, "m1")
    settle(one)
    epoch = one.epoch
    world.beat("m1", epoch, rack_id="r")
    nothing = {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []}
    again = world.beat("m1", epoch, **nothing)
    assert again.member_epoch == epoch + 1
    assert [one.partitions for one in again.active_tasks] == [[0, 1, 2, 3]] * 2
