"""A broker over a store answers as a leader or coordinator only while its lease holds."""

from types import SimpleNamespace

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
from horolog.protocol.messages.share_state import (
    ReadStatePartition,
    ReadStateTopic,
    WriteStatePartition,
    WriteStateTopic,
)
from horolog.protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    InitProducerIdRequest,
    InitProducerIdResponse,
)
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
    held, broker = Held(), SimpleNamespace(transactions=SimpleNamespace(refused=lambda _: None))
    held.now = 3.0
    asked = {"transactional_id": "t"} if key is ApiKey.INIT_PRODUCER_ID else {}
    for version in range(API[key].min_version, API[key].max_version + 1):
        assert held.gate(key, None)(broker, API[key].request(**asked), request_context(version)) is not None


@pytest.mark.parametrize(
    "request_",
    [
        AddPartitionsToTxnRequest(v3_and_below_transactional_id="x"),
        AddOffsetsToTxnRequest(transactional_id="x", group_id="g"),
    ],
    ids=["partitions", "offsets"],
)
def test_a_coordinator_that_is_late_learns_which_producers_have_begun_on_their_side(request_):
    """If the lease holds again when librdkafka aborts, INVALID_TXN_STATE would be a fatal error to it."""
    held, told = Held(), []
    held.now = 3.0
    key = next(key for key, api in API.items() if isinstance(request_, api.request))
    held.gate(key, None)(
        SimpleNamespace(transactions=SimpleNamespace(refused=told.append)), request_, request_context(3)
    )
    assert told == ["x"]


def test_a_late_coordinator_refuses_a_transactional_producer_before_it_calls_it_fenced():
    """Its successor may have given the producer the epoch that it continues with. An id without transactions needs no coordinator."""
    held, context = Held(), request_context(5)
    held.now = 3.0
    given = InitProducerIdResponse(error_code=ErrorCode.NONE, producer_id=7, producer_epoch=0)
    gate = held.gate(ApiKey.INIT_PRODUCER_ID, given)
    refused = gate(None, InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=1), context)
    assert (refused.error_code, refused.producer_id) == (ErrorCode.NOT_COORDINATOR, -1)
    assert gate(None, InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1), context) is given


@pytest.mark.parametrize(
    "key", [ApiKey.WRITE_SHARE_GROUP_STATE, ApiKey.READ_SHARE_GROUP_STATE], ids=lambda key: key.name
)
def test_a_late_keeper_of_states_calls_none_unknown(key):
    """A state that its successor initialized is INVALID_REQUEST here, and the leader of the share partition would take that for fenced."""
    held, context = Held(), request_context(0)
    held.now = 3.0
    topics = {
        ApiKey.READ_SHARE_GROUP_STATE: [
            ReadStateTopic(topic_id=b"t" * 16, partitions=[ReadStatePartition(partition=2)])
        ],
        ApiKey.WRITE_SHARE_GROUP_STATE: [
            WriteStateTopic(topic_id=b"t" * 16, partitions=[WriteStatePartition(partition=2)])
        ],
    }
    refused = held.gate(key, None)(None, API[key].request(group_id="g", topics=topics[key]), context)
    (partition,) = refused.results[0].partitions
    assert (partition.partition, partition.error_code) == (2, ErrorCode.NOT_COORDINATOR)
