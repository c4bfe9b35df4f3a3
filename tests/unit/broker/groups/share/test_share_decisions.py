"""Members of share groups: heartbeats, epochs, assignments and states of partitions."""

import logging

import pytest

from horolog.broker.cluster.cluster_state import RulesChanged
from horolog.broker.cluster.new_topics import NewPartitions
from horolog.broker.groups.classic_events import Client
from horolog.broker.groups.group_settings import rule_of
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.groups import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
)
from tests.support.at_once import at_once, delete_topic
from tests.support.share_world import GROUP, ShareWorld


@pytest.fixture
def world():
    world = ShareWorld()
    world.topic("t", 4)
    return world


# -- requests that are refused


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"member": ""}, "MemberId can't be empty."),
        ({"group": ""}, "GroupId can't be empty."),
        ({"rack_id": ""}, "RackId can't be empty."),
        ({"epoch": -2}, "MemberEpoch is invalid."),
        ({"topics": None}, "SubscribedTopicNames must be set in first request."),
        ({"topics": []}, "SubscribedTopicNames must be set in first request."),
    ],
)
def test_an_invalid_heartbeat(world, fields, message):
    refused = world.beat(**({"topics": ["t"]} | fields))
    assert (refused.error_code, refused.error_message) == (ErrorCode.INVALID_REQUEST, message)
    assert world.coordinator.groups() == []


def test_an_unknown_group_and_an_unknown_member(world):
    assert world.beat(epoch=1).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert world.beat(epoch=-1).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    world.join()
    assert world.beat("m2", 1).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert world.beat("m2", -1).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_epochs_that_are_not_the_members_own(world):
    epoch = world.join()
    assert world.beat(epoch=epoch - 1).error_code == ErrorCode.NONE, "the previous: a response was lost"
    greater, smaller = world.beat(epoch=epoch + 1), world.beat(epoch=epoch - 2)
    assert {greater.error_code, smaller.error_code} == {ErrorCode.FENCED_MEMBER_EPOCH}
    assert f"greater member epoch ({epoch + 1})" in greater.error_message
    assert f"does not match the previous member epoch ({epoch - 1})" in smaller.error_message


def test_a_group_has_a_maximum_of_members():
    world = ShareWorld({"group.share.max.size": 1})
    world.topic()
    world.join()
    refused = world.beat("m2", 0, ["t"])
    assert refused.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert refused.error_message == "The share group has reached its maximum capacity of 1 members."
    assert not world.beat("m1", 0, ["t"]).error_code, "a member may rejoin"


# -- members and their partitions


def test_partitions_are_assigned_once_their_states_are_there(world):
    joined = world.beat(topics=["t"])
    assert joined.member_epoch == 2
    assert joined.assignment.topic_partitions == []
    assert joined.heartbeat_interval_ms == 5_000
    assert len(world.persister.states) == 4
    assert {(one.state_epoch, one.start_offset) for one in world.persister.states.values()} == {(2, -1)}
    assigned = world.beat(epoch=2)
    assert assigned.member_epoch == 3
    assert [one.partitions for one in assigned.assignment.topic_partitions] == [[0, 1, 2, 3]]
    quiet = world.beat(epoch=3)
    assert (quiet.member_epoch, quiet.assignment) == (3, None)
    assert world.beat(epoch=3, topics=["t"]).assignment is not None, "a full request gets a full response"


def test_members_share_out_partitions_and_those_of_one_that_leaves(world):
    epoch = world.join()
    other = world.join("m2")
    world.beat(epoch=epoch)
    assert sorted(world.assigned("m1")["t"] + world.assigned("m2")["t"]) == [0, 1, 2, 3]
    assert len(world.assigned("m1")["t"]) == 2
    left = world.beat("m2", -1)
    assert (left.member_id, left.member_epoch) == ("m2", -1)
    assert world.beat(epoch=other).error_code == ErrorCode.NONE
    assert world.assigned() == {"t": [0, 1, 2, 3]}


def test_a_member_that_changes_its_topics(world):
    world.topic("u", 1)
    epoch = world.join()
    other = world.beat(epoch=epoch, topics=["u"])
    assert other.assignment.topic_partitions == []
    world.beat(epoch=other.member_epoch)
    assert world.assigned() == {"u": [0]}
    assert world.beat(epoch=world.group().epoch, rack_id="r").assignment is None
    assert world.group().members["m1"].rack_id == "r"


def test_partitions_that_are_added_and_topics_that_come_later(world):
    epoch = world.join(topics=("t", "later"))
    at_once(world.cluster.add_partitions, [NewPartitions("t", 6)])
    world.topic("later", 1)
    for _ in range(2):
        epoch = world.beat(epoch=epoch).member_epoch
    assert world.assigned() == {"t": [0, 1, 2, 3, 4, 5], "later": [0]}


def test_a_deleted_topic_is_taken_from_its_members(world):
    epoch = world.join()
    delete_topic(world.cluster, "t")
    gone = world.beat(epoch=epoch)
    assert gone.assignment.topic_partitions == []
    assert world.beat(epoch=gone.member_epoch).member_epoch == gone.member_epoch


def test_a_member_rejoins(world):
    epoch = world.join()
    again = world.beat(epoch=0, topics=["t"])
    assert again.member_epoch == epoch
    assert again.assignment is not None


def test_a_member_that_falls_silent_is_removed(world, caplog):
    world.join()
    world.join("m2")
    caplog.set_level(logging.INFO)
    world.advance(44_000)
    world.beat("m2", world.group().members["m2"].epoch)
    world.advance(2_000)
    assert set(world.group().members) == {"m2"}
    assert "removing member m1, which sent no heartbeat in time" in caplog.text
    world.advance(60_000)
    assert world.group().state_name == "Empty"


def test_the_groups_own_settings_count_with_the_next_heartbeat(world):
    epoch = world.join()
    put_rules(world, {"share.heartbeat.interval.ms": "6000", "share.session.timeout.ms": "60000"})
    assert world.beat(epoch=epoch).heartbeat_interval_ms == 6_000
    world.advance(59_000)
    assert world.group().members


def put_rules(world, overrides):
    changed = RulesChanged((rule_of(GROUP, overrides),), frozenset())
    at_once(world.cluster.change_rules, lambda _: changed)


# -- states of partitions


def test_a_persister_that_refuses_is_asked_again_with_the_next_heartbeat(world, caplog):
    world.persister.refusal = ErrorCode.COORDINATOR_NOT_AVAILABLE
    epoch = world.beat(topics=["t"]).member_epoch
    assert "the state of 4 partitions could not be created" in caplog.text
    assert world.group().tracked.is_empty
    world.persister.refusal = ErrorCode.NONE
    world.beat(epoch=epoch)
    world.beat(epoch=epoch)
    assert world.assigned() == {"t": [0, 1, 2, 3]}


def test_a_persister_that_does_not_answer_is_asked_again_after_a_while(world):
    world.persister.holds_back = True
    epoch = world.beat(topics=["t"]).member_epoch
    asked = len(world.persister._kept_back)
    world.advance(29_000)
    world.beat(epoch=epoch)
    assert len(world.persister._kept_back) == asked == 4
    world.advance(2_000)
    world.beat(epoch=epoch)
    assert len(world.persister._kept_back) == 8
    world.persister.answer()
    world.tick()
    world.beat(epoch=epoch)
    assert world.assigned() == {"t": [0, 1, 2, 3]}


def test_an_answer_for_a_group_that_is_gone_changes_nothing(world):
    world.persister.holds_back = True
    world.beat(topics=["t"])
    world.restart()
    world.persister.answer()
    world.tick()
    assert not world.group().tracked.initialized


# -- requests of the classic protocol


def test_members_of_the_classic_protocol_are_refused(world):
    world.join()
    given = []
    request = JoinGroupRequest(group_id=GROUP, session_timeout_ms=10_000, protocol_type="consumer")
    world.coordinator.join(request, 5, Client("c", "/h"), given.append)
    world.coordinator.sync(SyncGroupRequest(group_id=GROUP, member_id="c"), given.append)
    assert [one.error_code for one in given] == [ErrorCode.INCONSISTENT_GROUP_PROTOCOL, ErrorCode.UNKNOWN_MEMBER_ID]
    assert world.coordinator.heartbeat(HeartbeatRequest(group_id=GROUP)) == ErrorCode.UNKNOWN_MEMBER_ID
    code, members = world.coordinator.leave(
        LeaveGroupRequest(group_id=GROUP, members=[MemberIdentity(member_id="c")]), 4
    )
    assert (code, [each for _, each in members]) == (ErrorCode.NONE, [ErrorCode.UNKNOWN_MEMBER_ID])
