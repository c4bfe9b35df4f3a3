"""Heartbeats that are refused, with a real Kafka's codes and messages."""

import pytest

from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.streams_groups import StreamsTaskIds
from tests.support.streams_world import Application, StreamsWorld, counting, info, settle, subtopology, topology

INVALID, FENCED = ErrorCode.INVALID_REQUEST, ErrorCode.FENCED_MEMBER_EPOCH


@pytest.fixture
def world():
    world = StreamsWorld()
    world.topic("t", 4)
    return world


def ids(*indexes, name="0"):
    return [StreamsTaskIds(subtopology_id=name, partitions=list(indexes))]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"member": ""}, "MemberId can't be empty."),
        ({"group": ""}, "GroupId can't be empty."),
        ({"epoch": -2}, "InstanceId can't be null."),
        ({"epoch": -2, "instance_id": "i"}, "Static membership is not yet supported."),
        ({"instance_id": "i"}, "Static membership is not yet supported."),
        ({"rack_id": ""}, "RackId can't be empty."),
        ({"epoch": -3}, "MemberEpoch is -3, but must be greater than or equal to -2."),
        ({"active_tasks": None}, "ActiveTasks must be empty when (re-)joining."),
        ({"standby_tasks": ids(0)}, "StandbyTasks must be empty when (re-)joining."),
        ({"active_tasks": None, "standby_tasks": None, "warmup_tasks": None}, "ActiveTasks must be empty when"),
        ({"epoch": 5, "warmup_tasks": []}, "If one task-type is non-null, all must be non-null."),
        ({"rebalance_timeout_ms": -1}, "RebalanceTimeoutMs must be provided in first request."),
        ({"topology": None}, "Topology must be non-null when (re-)joining."),
        ({"epoch": 5, "topology": counting()}, "Topology can only be provided when (re-)joining."),
        ({"topology": counting(epoch=-1)}, "The epoch of the topology can't be negative."),
        (
            {"topology": topology(subtopology("0", ["t"]), subtopology("0", ["t"]))},
            "The ids of subtopologies must differ.",
        ),
    ],
)
def test_requests_that_are_invalid_by_themselves(world, fields, message):
    refused = world.beat(**fields)
    assert (refused.error_code, refused.member_id) == (INVALID, "")
    assert refused.error_message.startswith(message)
    assert not world.coordinator.registry.groups


def test_patterns_are_not_supported(world):
    one = subtopology("0")
    one.source_topic_regex = ["a.*"]
    refused = world.beat(topology=topology(one))
    assert refused.error_message == "Regular expressions for source topics are not supported yet."


@pytest.mark.parametrize(
    ("of", "message"),
    [
        (topology(subtopology("0", ["t"], changelogs=[info("x", 3)])), "Changelog topic x must have an undefined"),
        (topology(subtopology("0")), "No source topics found for subtopology 0"),
    ],
)
def test_topologies_that_are_invalid(world, of, message):
    refused = world.beat(topology=of)
    assert refused.error_code == ErrorCode.STREAMS_INVALID_TOPOLOGY
    assert refused.error_message.startswith(message)


def test_a_group_keeps_its_topology(world):
    one = Application(world, "m1")
    settle(one)
    for other in (counting(epoch=1), topology(subtopology("0", ["t"]))):
        refused = world.beat("m2", topology=other)
        assert (refused.error_code, refused.error_message) == (INVALID, "Topology updates are not supported yet.")


def test_members_that_are_not_known_and_groups_that_are_full():
    world = StreamsWorld({"group.streams.max.size": 1})
    world.beat("m1")
    assert world.beat("m2", 5).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert world.beat("m2", -1).error_message == "Member m2 is not a member of group g."
    full = world.beat("m2")
    assert full.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert full.error_message == "The streams group has reached its maximum capacity of 1 members."


def test_epochs(world):
    one = Application(world, "m1")
    settle(one)
    epoch = one.epoch
    greater = world.beat("m1", epoch + 5)
    assert greater.error_code == FENCED
    assert greater.error_message.startswith(f"The streams group member has a greater member epoch ({epoch + 5}) than")
    assert "smaller" in world.beat("m1", epoch - 1).error_message
    lost = {"active_tasks": ids(0, 1), "standby_tasks": [], "warmup_tasks": []}
    assert world.beat("m1", epoch - 1, **lost).member_epoch == epoch, "its last response was lost"
    assert world.beat("m1", epoch - 2, **lost).error_code == FENCED
    not_its_own = {**lost, "active_tasks": [], "standby_tasks": ids(0)}
    assert world.beat("m1", epoch - 1, **not_its_own).error_code == FENCED


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        (ids(0, name="7"), "Subtopology 7 does not exist in the topology."),
        (ids(4), "Task 4 for subtopology 0 is invalid. Number of tasks for this subtopology: 4"),
        (ids(-1), "Task -1 for subtopology 0 is invalid."),
    ],
)
def test_tasks_that_do_not_exist(world, tasks, message):
    one = Application(world, "m1")
    settle(one)
    refused = world.beat("m1", one.epoch, active_tasks=tasks, standby_tasks=[], warmup_tasks=[])
    assert refused.error_code == INVALID
    assert refused.error_message.startswith(message)
