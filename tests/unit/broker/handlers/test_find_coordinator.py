"""FindCoordinator: the topic of a coordinator is made when it is asked for, and a coordinator without one is not available."""

import pytest

from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.groups import FindCoordinatorRequest
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
