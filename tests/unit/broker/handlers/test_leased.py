"""A broker over a store answers as a leader or coordinator only while its lease holds."""

import pytest

from horolog.broker.bucket.lease import Lease
from horolog.broker.handlers import HANDLERS
from horolog.broker.handlers.gate import open_gate
from horolog.broker.handlers.leased import APPENDING, AS_COORDINATOR, AS_LEADER, leased
from horolog.protocol.apis import API, ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from horolog.protocol.messages.groups import (
    HeartbeatRequest,
    HeartbeatResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
)
from horolog.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tests.support.request_contexts import request_context


def noted():
    """The context of a request, and the answers that it gets."""
    context, answers = request_context(), []
    context.amend(lambda response: answers.append(response) or b"")
    return context, answers


class Held:
    """A lease whose clock the test sets."""

    def __init__(self):
        self.now = 0.0
        self.lease = Lease(2.0, lambda: self.now)
        self.lease.proved(0.0)

    def gate(self, key, answer):
        return leased(self.lease, open_gate)(key, lambda *_: answer)


def test_apis_without_a_leader_are_served_as_they_are():
    handle = HANDLERS[ApiKey.METADATA].function
    assert leased(Held().lease, open_gate)(ApiKey.METADATA, handle) is handle
    assert leased(Held().lease, open_gate)(ApiKey.PRODUCE, handle) is handle


def test_while_it_holds_requests_are_served():
    held, (context, answers) = Held(), noted()
    answer = HeartbeatResponse(error_code=0)
    assert held.gate(ApiKey.HEARTBEAT, answer)(None, HeartbeatRequest(), context) is answer
    context.reply(answer)
    assert answers == [answer]


def test_a_coordinator_that_is_late_refuses():
    held, context = Held(), request_context()
    held.now = 2.0
    refused = held.gate(ApiKey.HEARTBEAT, None)(None, HeartbeatRequest(), context)
    assert refused.error_code == ErrorCode.NOT_COORDINATOR


def test_a_late_coordinator_refuses_before_it_judges_a_member():
    """A member of which its successor knows would end by UNKNOWN_MEMBER_ID. What was appended in time is answered when it is stored."""
    held, (context, answers) = Held(), noted()
    assert held.gate(ApiKey.LEAVE_GROUP, None)(None, LeaveGroupRequest(), context) is None
    held.now = 3.0
    context.reply(stored := LeaveGroupResponse())
    assert answers == [stored]
    refused = held.gate(ApiKey.LEAVE_GROUP, None)(None, LeaveGroupRequest(), context)
    assert refused.error_code == ErrorCode.NOT_COORDINATOR


def test_a_process_that_stood_still_between_request_and_answer_finds_itself_late():
    held, (context, answers) = Held(), noted()
    assert held.gate(ApiKey.HEARTBEAT, None)(None, HeartbeatRequest(), context) is None
    held.now = 60.0
    context.reply(HeartbeatResponse(error_code=0))
    assert answers[-1].error_code == ErrorCode.NOT_COORDINATOR


def test_a_leader_refuses_each_partition():
    held, context = Held(), request_context(5)
    held.now = 3.0
    request = ListOffsetsRequest(
        topics=[ListOffsetsTopic(name="t", partitions=[ListOffsetsPartition(partition_index=3, timestamp=-1)])]
    )
    refused = held.gate(ApiKey.LIST_OFFSETS, None)(None, request, context)
    (partition,) = refused.topics[0].partitions
    assert (partition.partition_index, partition.error_code) == (3, ErrorCode.NOT_LEADER_OR_FOLLOWER)


def test_a_fetch_is_refused_by_partition_and_not_as_a_whole():
    held, context = Held(), request_context(12)
    held.now = 3.0
    request = FetchRequest(topics=[FetchTopic(topic="t", partitions=[FetchPartition(partition=1)])])
    refused = held.gate(ApiKey.FETCH, None)(None, request, context)
    assert refused.error_code == ErrorCode.NONE
    (partition,) = refused.responses[0].partitions
    assert (partition.error_code, partition.records) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, b"")


@pytest.mark.parametrize("key", [*AS_LEADER, *AS_COORDINATOR, *APPENDING], ids=lambda key: key.name)
def test_every_such_api_can_be_refused_in_every_version(key):
    held = Held()
    held.now = 3.0
    for version in range(API[key].min_version, API[key].max_version + 1):
        assert held.gate(key, None)(None, API[key].request(), request_context(version)) is not None
