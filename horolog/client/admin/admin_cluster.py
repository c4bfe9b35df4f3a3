"""Admin calls about brokers, their API versions and log directories, and about producers and transactions."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

from horolog.client.admin.admin_base import AdminBase
from horolog.client.values.errors import check, first, only_partition
from horolog.client.values.types import TopicPartition
from horolog.client.wire.cluster_view import Node
from horolog.client.wire.versions import BrokerVersions, Versioned
from horolog.protocol.apis import ApiKey
from horolog.protocol.messages.log_dirs import DescribeLogDirsRequest
from horolog.protocol.messages.metadata import DescribeClusterRequest
from horolog.protocol.messages.transactions import (
    DescribeProducersRequest,
    DescribeTransactionsRequest,
    ListTransactionsRequest,
    TopicRequest,
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from horolog.protocol.wire import Message


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    cluster_id: str | None
    controller_id: int
    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class LogDir:
    node_id: int
    path: str
    total_bytes: int  # -1: unknown
    usable_bytes: int  # -1: unknown
    sizes: dict[TopicPartition, int]  # bytes
    error_code: int = 0


@dataclass(frozen=True, slots=True)
class ActiveProducer:
    producer_id: int
    epoch: int
    last_sequence: int
    last_timestamp_ms: int
    coordinator_epoch: int
    transaction_start_offset: int  # -1: none is open


@dataclass(frozen=True, slots=True)
class TransactionListing:
    transactional_id: str
    producer_id: int
    state: str


@dataclass(frozen=True, slots=True)
class TransactionDescription:
    transactional_id: str
    state: str
    producer_id: int
    epoch: int
    timeout_ms: int
    start_ms: int  # -1: none has begun
    partitions: tuple[TopicPartition, ...]


class ClusterAdmin(AdminBase):
    async def describe_cluster(self) -> ClusterDescription:
        if not (await self.client.versions()).serves(ApiKey.DESCRIBE_CLUSTER):
            view = await self.client.metadata([])
            return ClusterDescription(view.cluster_id, view.controller_id, tuple(view.nodes.values()))
        response = await self._ask(DescribeClusterRequest(), code_of=lambda answer: int(answer.error_code))
        check(response.error_code, response.error_message)
        nodes = tuple(Node(each.broker_id, each.host, each.port, each.rack) for each in response.brokers)
        return ClusterDescription(response.cluster_id, response.controller_id, nodes)

    async def api_versions(self, node_id: int | None = None) -> BrokerVersions:
        """The versions that a broker serves: `ranges` by API key; `told` is False if the broker is too old to report them."""
        return await self.client.versions(node_id)

    async def log_dirs(self) -> list[LogDir]:
        """The data folders of all brokers, and their contents."""
        view = await self.client.metadata([])
        nodes = list(view.nodes)
        answers = await asyncio.gather(
            *(self._ask(DescribeLogDirsRequest(topics=None), node_id=node) for node in nodes)
        )
        found: list[LogDir] = []
        for node, answer in zip(nodes, answers, strict=True):
            check(answer.error_code)
            for each in answer.results:
                sizes = {
                    TopicPartition(topic.name, partition.partition_index): partition.partition_size
                    for topic in each.topics
                    for partition in topic.partitions
                }
                found.append(LogDir(node, each.log_dir, each.total_bytes, each.usable_bytes, sizes, each.error_code))
        return found

    # Producers and transactions

    async def describe_producers(self, partition: TopicPartition) -> list[ActiveProducer]:
        """The producers whose sequence numbers or open transactions a partition knows."""
        request = DescribeProducersRequest(
            topics=[TopicRequest(name=partition.topic, partition_indexes=[partition.partition])]
        )
        response = await self._ask(
            request, leader_of=partition, code_of=lambda answer: only_partition(answer).error_code
        )
        answer = only_partition(response)
        check(answer.error_code, answer.error_message, topic=partition.topic)
        return [
            ActiveProducer(
                each.producer_id,
                each.producer_epoch,
                each.last_sequence,
                each.last_timestamp,
                each.coordinator_epoch,
                each.current_txn_start_offset,
            )
            for each in answer.active_producers
        ]

    async def list_transactions(
        self, states: Iterable[str] = (), producer_ids: Iterable[int] = (), *, longer_than_ms: int = -1
    ) -> list[TransactionListing]:
        """The transactional ids that the brokers know."""
        wanted, ids = list(states), list(producer_ids)

        def build(version: int) -> Message:
            return ListTransactionsRequest(
                state_filters=wanted,
                producer_id_filters=ids,
                duration_filter=longer_than_ms if version >= 1 else -1,
            )

        found: list[TransactionListing] = []
        for response in await self._ask_every_broker(Versioned(ApiKey.LIST_TRANSACTIONS, build)):
            check(response.error_code)
            found += [
                TransactionListing(each.transactional_id, each.producer_id, each.transaction_state)
                for each in response.transaction_states
            ]
        return sorted(found, key=lambda each: each.transactional_id)

    async def describe_transactions(self, transactional_ids: Iterable[str]) -> dict[str, TransactionDescription]:
        found: dict[str, TransactionDescription] = {}
        for transactional_id in transactional_ids:
            response = await self._ask(
                DescribeTransactionsRequest(transactional_ids=[transactional_id]),
                coordinator_of=("transaction", transactional_id),
                code_of=lambda answer: first(answer.transaction_states, "transaction states").error_code,
            )
            each = first(response.transaction_states, "transaction states")
            check(each.error_code, transactional_id=transactional_id)
            found[transactional_id] = TransactionDescription(
                each.transactional_id,
                each.transaction_state,
                each.producer_id,
                each.producer_epoch,
                each.transaction_timeout_ms,
                each.transaction_start_time_ms,
                tuple(TopicPartition(topic.topic, index) for topic in each.topics for index in topic.partitions),
            )
        return found

    async def abort_transaction(self, partition: TopicPartition, producer: ActiveProducer) -> None:
        """Write an abort marker for a producer's open transaction into one partition, as Kafka's tool for hanging ones does."""
        marker = WritableTxnMarker(
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            transaction_result=False,
            topics=[WritableTxnMarkerTopic(name=partition.topic, partition_indexes=[partition.partition])],
            coordinator_epoch=max(producer.coordinator_epoch, 0),
        )
        response = await self._ask(WriteTxnMarkersRequest(markers=[marker]), leader_of=partition, code_of=_marker_code)
        check(_marker_code(response), topic=partition.topic)


def _marker_code(answer: WriteTxnMarkersResponse) -> int:
    """The code of the only partition of the only marker."""
    return int(only_partition(first(answer.markers, "markers")).error_code)
