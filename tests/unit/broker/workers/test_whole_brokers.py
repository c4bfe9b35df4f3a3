"""Two whole brokers over one storage, asked by the wire: any of them takes any admin request, and both say the same of the cluster."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial

import pytest

from horolog.base.clock import ManualClock
from horolog.broker.base.own_thread import AtOnce
from horolog.broker.base.principal import Principal
from horolog.broker.cluster import settling
from horolog.broker.cluster.worker_context import WorkerContext
from horolog.broker.cluster.worker_membership import WorkerMembership
from horolog.broker.config.settings import load
from horolog.broker.log.storage import MemoryStorage
from horolog.broker.network.dispatch import Dispatcher
from horolog.broker.network.limits import ConnectionLimits
from horolog.broker.server.app import Broker
from horolog.broker.server.upkeep import CATCH_UP_MS
from horolog.broker.workers.of_worker import of_worker
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.acls import AclCreation, CreateAclsRequest, DeleteAclsFilter, DeleteAclsRequest
from horolog.protocol.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from horolog.protocol.messages.log_dirs import DescribeLogDirsRequest
from horolog.protocol.messages.metadata import DescribeClusterRequest, MetadataRequest, MetadataRequestTopic
from horolog.protocol.messages.quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntityData,
    AlterClientQuotasRequestEntryData,
    DescribeClientQuotasRequest,
    OpData,
)
from horolog.protocol.messages.reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from horolog.protocol.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from tests.support.guarded_broker import STANDARD_AUTHORIZER
from tests.support.memory_broker import NOW_MS, Wire

NODES = (1, 2)
BROKER = 4


class Tie:
    """The link of one worker; with `is_silent` nobody hears it."""

    def __init__(self, ties, node):
        self.on_journal = self.on_live_changed = lambda _: None
        self.is_silent = False
        self._ties = ties
        self._node = node

    @property
    def live(self):
        return frozenset(self._ties)

    def journal_is_at(self, number, done):
        for node, tie in self._ties.items():
            if node != self._node and not self.is_silent:
                tie.on_journal(number)
        done()

    def goes_on(self):
        pass

    def applied(self, number):
        pass


class Peers:
    """Asks the other broker by frames."""

    def __init__(self, wires):
        self._wires = wires
        self._tasks = set()

    def ask(self, node, request, version, done, timeout_ms):
        task = asyncio.ensure_future(self._ask(node, request, version, done))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _ask(self, node, request, version, done):
        done(await self._wires[node].ask(request, version))

    def close(self):
        pass


class Pair:
    """Two workers that have settled a folder."""

    def __init__(self, **given):
        self.given = {key.replace("_", "."): value for key, value in given.items()}
        self.storage, self.clock = MemoryStorage(), ManualClock(NOW_MS)
        self.ties, self.wires, self.brokers = {}, {}, {}

    def settings(self, node):
        return load(None, {}, {"listeners": "PLAINTEXT://127.0.0.1:0", "node.id": str(node), **self.given})[0]

    async def start(self):
        settling.settle(self.storage, ["/data"], self.clock, self.settings(1), NODES)
        loop = asyncio.get_running_loop()
        for node in NODES:
            ports = {"PLAINTEXT": {1: 9001, 2: 9002}}
            none = {"PLAINTEXT": 0}
            context = WorkerContext(node, NODES, "/nowhere", ports, node == 1, none, none)
            self.ties[node] = Tie(self.ties, node)
            for tie in self.ties.values():
                tie.on_live_changed(tie.live)
            broker = self.brokers[node] = Broker(
                self.settings(node),
                self.clock,
                self.storage,
                ["/data"],
                loop,
                replace(
                    of_worker(context, self.ties[node], loop),
                    membership=partial(self.membership, context),
                    peers=Peers(self.wires),
                    new_peer_listeners=lambda *_: (),
                ),
            )
            await broker.start()
            self.wires[node] = Wire(Dispatcher(broker), ConnectionLimits.of(broker.settings))

    def membership(self, context, logs, file):
        """What one worker writes the other has at once."""
        return WorkerMembership(context, self.ties[context.node], logs, file, AtOnce())

    async def stop(self):
        for broker in self.brokers.values():
            await broker.stop()

    async def create(self, node, name="t", count=4):
        topic = CreatableTopic(name=name, num_partitions=count, replication_factor=1, assignments=[], configs=[])
        answer = await self.wires[node].ask(CreateTopicsRequest(topics=[topic], timeout_ms=1000), 5)
        return answer.topics[0].error_code

    async def leads(self, node, name="t"):
        """Leader and epoch of every partition, as one worker tells them."""
        request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
        answer = await self.wires[node].ask(request, 12)
        return [(one.leader_id, one.leader_epoch) for one in answer.topics[0].partitions]


@pytest.fixture
async def pair():
    pair = Pair()
    await pair.start()
    yield pair
    await pair.stop()


async def test_both_say_the_same_of_the_cluster(pair):
    assert await pair.create(2) == ErrorCode.NONE
    assert await pair.create(1) == ErrorCode.TOPIC_ALREADY_EXISTS
    told = [await pair.leads(node) for node in NODES]
    assert told[0] == told[1]
    assert sorted(leader for leader, _ in told[0]) == [1, 1, 2, 2]
    for node in NODES:
        answer = await pair.wires[node].ask(DescribeClusterRequest(), 0)
        assert answer.controller_id == 1
        assert [(one.broker_id, one.port) for one in answer.brokers] == [(1, 9001), (2, 9002)]


@pytest.mark.parametrize("asked", NODES)
async def test_assigned_brokers_lead(pair, asked):
    """As in Kafka: whoever names the brokers of a new partition has them."""
    assigned = [CreatableReplicaAssignment(partition_index=index, broker_ids=[2]) for index in range(3)]
    topic = CreatableTopic(name="t", num_partitions=-1, replication_factor=-1, assignments=assigned, configs=[])
    answer = await pair.wires[asked].ask(CreateTopicsRequest(topics=[topic], timeout_ms=1000), 5)
    assert answer.topics[0].error_code == ErrorCode.NONE
    more = [CreatePartitionsAssignment(broker_ids=[node]) for node in (1, 2)]
    grown = CreatePartitionsTopic(name="t", count=5, assignments=more)
    answer = await pair.wires[asked].ask(CreatePartitionsRequest(topics=[grown], timeout_ms=1000), 3)
    assert answer.results[0].error_code == ErrorCode.NONE
    for node in NODES:
        assert await pair.leads(node) == [(2, 0), (2, 0), (2, 0), (1, 0), (2, 0)]
        assert set(pair.brokers[node].cluster.topics["t"].led_here) == {
            one for one in pair.brokers[node].logs.partitions.values() if one.topic == "t"
        }
    assert len(pair.brokers[2].cluster.topics["t"].led_here) == 4


async def test_each_has_its_own_partitions_in_the_folder(pair):
    await pair.create(1)
    found = []
    for node in NODES:
        (folder,) = (await pair.wires[node].ask(DescribeLogDirsRequest(topics=None), 1)).results
        found += [one.partition_index for topic in folder.topics for one in topic.partitions]
    assert sorted(found) == [0, 1, 2, 3]


@pytest.mark.parametrize("asked", NODES)
async def test_any_worker_moves_a_partition(pair, asked):
    await pair.create(1)
    leader = (await pair.leads(1))[0][0]
    wanted = [ReassignableTopic(name="t", partitions=[ReassignablePartition(partition_index=0, replicas=[3 - leader])])]
    answer = await pair.wires[asked].ask(AlterPartitionReassignmentsRequest(topics=wanted), 0)
    assert answer.responses[0].partitions[0].error_code == ErrorCode.NONE
    assert [(await pair.leads(node))[0] for node in NODES] == [(3 - leader, 1)] * 2


async def test_any_worker_deletes_a_topic(pair):
    await pair.create(1)
    doomed = DeleteTopicsRequest(topics=[DeleteTopicState(name="t", topic_id=bytes(16))], timeout_ms=1000)
    answer = await pair.wires[2].ask(doomed, 6)
    assert answer.responses[0].error_code == ErrorCode.NONE
    assert await pair.leads(1) == []
    assert not [name for name in pair.storage.list_dir("/data") if name in {f"t-{index}" for index in range(4)}]


async def test_an_access_list_that_one_worker_changes_counts_at_the_other():
    pair = Pair(authorizer_class_name=STANDARD_AUTHORIZER, super_users="User:admin")
    await pair.start()
    alice = {node: Wire(Dispatcher(pair.brokers[node]), ConnectionLimits.of(pair.settings(node))) for node in NODES}
    for node in NODES:
        pair.wires[node].conversation.serve_as(Principal("User", "admin"))
        alice[node].conversation.serve_as(Principal("User", "alice"))
    everything = MetadataRequest(topics=None)
    assert await pair.create(1) == ErrorCode.NONE
    words = {"operation": 8, "permission_type": 3}
    creation = AclCreation(resource_type=2, resource_name="t", principal="User:alice", host="*", **words)
    await pair.wires[1].ask(CreateAclsRequest(creations=[creation]), 3)
    for node in NODES:
        assert [topic.name for topic in (await alice[node].ask(everything, 12)).topics] == ["t"]
    chosen = DeleteAclsFilter(resource_type_filter=2, **words)
    await pair.wires[2].ask(DeleteAclsRequest(filters=[chosen]), 3)
    for node in NODES:
        assert (await alice[node].ask(everything, 12)).topics == []
    await pair.stop()


async def test_a_quota_that_one_worker_is_told_is_divided_among_all(pair):
    entity = [AlterClientQuotasRequestEntityData(entity_type="user", entity_name=None)]
    quota = OpData(key="controller_mutation_rate", value=2.0)
    entry = AlterClientQuotasRequestEntryData(entity=entity, ops=[quota])
    answer = await pair.wires[1].ask(AlterClientQuotasRequest(entries=[entry]), 1)
    assert answer.entries[0].error_code == ErrorCode.NONE
    for node in NODES:
        every = await pair.wires[node].ask(DescribeClientQuotasRequest(), 1)
        assert [(one.key, one.value) for one in every.entries[0].values] == [("controller_mutation_rate", 2.0)]
        assert pair.brokers[node].quotas.mutate("ann", "", 12, strict=False) == (True, 1.0)


async def test_settings_of_each_worker_are_known_to_all(pair):
    change = IncrementalAlterConfigsRequestAlterableConfig(name="log.retention.ms", config_operation=0, value="7")
    resource = IncrementalAlterConfigsRequestAlterConfigsResource(
        resource_type=BROKER, resource_name="2", configs=[change]
    )
    answer = await pair.wires[1].ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    assert answer.responses[0].error_code == ErrorCode.NONE
    wanted = [
        DescribeConfigsResource(resource_type=BROKER, resource_name=name, configuration_keys=["log.retention.ms"])
        for name in "123"
    ]
    for node in NODES:
        one, two, none = (await pair.wires[node].ask(DescribeConfigsRequest(resources=wanted), 4)).results
        assert two.configs[0].value == "7"
        assert one.configs[0].value != "7"
        assert none.error_code == ErrorCode.INVALID_REQUEST
    assert pair.brokers[2].settings.log_retention_ms == 7


async def test_who_was_not_told_finds_out(pair):
    pair.ties[1].is_silent = True
    await pair.create(1)
    assert await pair.leads(2) == []
    await asyncio.sleep(CATCH_UP_MS / 1000 * 1.5)
    assert len(await pair.leads(2)) == 4


async def test_after_them_the_folder_is_that_of_one_broker():
    pair = Pair()
    await pair.start()
    await pair.create(1)
    await pair.stop()
    assert settling.merge(pair.storage, ["/data"])
    assert not [name for name in pair.storage.list_dir("/data") if name.startswith("horolog-checkpoint")]
