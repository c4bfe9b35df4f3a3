"""FindCoordinator: the topic of a coordinator is made when it is asked for, and a coordinator without one is not available."""

import pytest

from horolog.broker.handlers import transaction_lines
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.consumer_groups import ConsumerGroupHeartbeatRequest
from horolog.protocol.messages.groups import FindCoordinatorRequest, HeartbeatRequest
from horolog.protocol.messages.transactions import EndTxnRequest, InitProducerIdRequest
from tests.support.memory_broker import MemoryBroker

BAD = ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(("key_type", "topic"), [(0, "__consumer_offsets"), (1, "__transaction_state")])
async def test_asking_for_a_coordinator_makes_its_topic(key_type, topic):
    async with MemoryBroker(offsets_topic_num_partitions=2, transaction_state_log_num_partitions=2) as memory:
        assert topic not in memory.broker.cluster.topics
        answer = await memory.connect().ask(FindCoordinatorRequest(coordinator_keys=["x"], key_type=key_type), 4)
        assert [one.error_code for one in answer.coordinators] == [0]
        assert memory.broker.cluster.topics[topic].partition_count == 2


@pytest.mark.parametrize("key_type", [0, 1])
async def test_a_coordinator_whose_topic_cannot_be_made_is_not_available(key_type):
    async with MemoryBroker() as memory:
        memory.storage.fail("rename", "horolog-journal", times=5)
        answer = await memory.connect().ask(FindCoordinatorRequest(key="x", key_type=key_type), 3)
        assert (answer.error_code, answer.node_id) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)


@pytest.mark.parametrize("version", [4, 5, 6])
async def test_share_partitions_have_no_coordinator_and_no_text(version):
    async with MemoryBroker() as memory:
        answer = await memory.connect().ask(FindCoordinatorRequest(coordinator_keys=["x"], key_type=2), version)
        assert [(one.error_code, one.error_message) for one in answer.coordinators] == [(BAD, "")]


@pytest.mark.parametrize(("version", "keys"), [(1, {"key": "x"}), (6, {"coordinator_keys": ["x"]})])
async def test_a_kind_of_key_that_nobody_knows_is_refused_with_a_text(version, keys):
    async with MemoryBroker() as memory:
        answer = await memory.connect().ask(FindCoordinatorRequest(**keys, key_type=7), version)
        found = answer if version < 4 else answer.coordinators[0]
        assert (found.error_code, found.node_id, bool(found.error_message)) == (BAD, -1, True)


async def test_the_oldest_clients_ask_for_groups_only():
    async with MemoryBroker() as memory:
        answer = await memory.connect().ask(FindCoordinatorRequest(key="x"), 0)
        assert (answer.error_code, answer.node_id) == (0, 1)


@pytest.mark.parametrize(
    ("is_opening", "found", "answered"),
    [
        (True, (ErrorCode.NONE, 1), ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        (False, (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1), ErrorCode.NOT_COORDINATOR),
    ],
)
@pytest.mark.parametrize(
    ("key_type", "topic", "request_of_key", "version"),
    [
        (0, "__consumer_offsets", HeartbeatRequest(group_id="x", generation_id=1, member_id="m"), 4),
        (0, "__consumer_offsets", ConsumerGroupHeartbeatRequest(group_id="x", member_id="m", member_epoch=1), 0),
        (1, "__transaction_state", InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=1_000), 4),
        (1, "__transaction_state", EndTxnRequest(transactional_id="x", producer_id=1, producer_epoch=0), 3),
    ],
)
async def test_a_leader_that_still_opens_the_partition_is_named_and_says_so(
    key_type, topic, request_of_key, version, is_opening, found, answered, monkeypatch
):
    monkeypatch.setattr(transaction_lines, "LONGEST_WAIT_MS", 1)
    async with MemoryBroker(offsets_topic_num_partitions=1, transaction_state_log_num_partitions=1) as memory:
        client, cluster = memory.connect(), memory.broker.cluster
        asked = FindCoordinatorRequest(key="x", key_type=key_type)
        await client.ask(asked, 3)
        cluster.withdraw(topic, 0)
        cluster.is_opening = lambda place: is_opening and place == (cluster.topics[topic].id, 0)
        answer = await client.ask(asked, 3)
        assert (answer.error_code, answer.node_id) == found
        assert (await client.ask(request_of_key, version)).error_code == answered
