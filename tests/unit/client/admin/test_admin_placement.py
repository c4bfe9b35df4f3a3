"""Partitions are moved, moves are listed and cancelled, and leaders are elected, as far as a cluster lets them."""

import pytest

from horolog.client.admin.admin import Admin
from horolog.client.admin.admin_placement import Reassignment
from horolog.client.values.errors import KafkaError, PartialFailure
from horolog.client.values.types import TopicPartition
from horolog.protocol.apis import ApiKey
from horolog.protocol.messages.reassignments import (
    ElectLeadersResponse,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
    PartitionResult,
    ReplicaElectionResult,
)
from horolog.testing import broker_in_thread
from tests.support.fake_peer import Scripted
from tests.support.scripted_client import Time, client_of

T0, T1, NONE = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("none", 0)


@pytest.fixture(scope="module")
def broker():
    with broker_in_thread() as running:
        running.create_topic("t", 2)
        yield running


@pytest.fixture
async def admin(broker):
    async with Admin(broker.bootstrap) as made:
        yield made


async def test_partitions_go_where_they_are_and_nowhere_else(admin):
    (node,) = (await admin.describe_cluster()).nodes
    await admin.reassign({T0: [node.id], T1: [node.id]})
    assert await admin.reassignments([T0]) == await admin.reassignments() == {}
    with pytest.raises(KafkaError, match=r"t-0: .*a partition has one replica"):
        await admin.reassign({T0: [node.id + 1]})
    with pytest.raises(PartialFailure) as some:
        await admin.reassign({T0: [node.id], NONE: [node.id]})
    assert list(some.value.failures) == [NONE]
    with pytest.raises(KafkaError, match="NO_REASSIGNMENT_IN_PROGRESS"):
        await admin.reassign({T0: None})


async def test_leaders_that_lead_need_no_election(admin):
    found = await admin.elect_leaders([T0, NONE])
    assert {place: error.code.name for place, error in found.items()} == {
        T0: "ELECTION_NOT_NEEDED",
        NONE: "UNKNOWN_TOPIC_OR_PARTITION",
    }
    assert (await admin.elect_leaders([T1], unclean=True)).keys() == {T1}
    assert await admin.elect_leaders() == {}


async def test_what_a_cluster_with_replicas_answers():
    moving = OngoingPartitionReassignment(
        partition_index=1, replicas=[1, 2, 3], adding_replicas=[3], removing_replicas=[1]
    )
    listed = ListPartitionReassignmentsResponse(
        error_code=0, topics=[OngoingTopicReassignment(name="t", partitions=[moving])]
    )
    elected = ReplicaElectionResult(topic="t", partition_result=[PartitionResult(partition_id=0, error_code=0)])
    broker = Scripted()
    broker.scripts[ApiKey.LIST_PARTITION_REASSIGNMENTS] = lambda _: listed
    broker.scripts[ApiKey.ELECT_LEADERS] = lambda _: ElectLeadersResponse(replica_election_results=[elected])
    async with broker.serving() as address, client_of(address, Time()) as client:
        assert await Admin(client).reassignments() == {T1: Reassignment((1, 2, 3), (3,), (1,))}
        assert await Admin(client).elect_leaders() == {T0: None}
