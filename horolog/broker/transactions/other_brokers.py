"""Asks the other brokers on behalf of transactions: they lead some of their partitions, and coordinate some of their ids.

Every question is one of Kafka's own requests. Without a response the leader or coordinator may have changed: the caller retries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from horolog.broker.base.answers import Answer, run
from horolog.broker.base.java_hash import partition_for
from horolog.broker.base.topic_names import TRANSACTION_STATE
from horolog.broker.cluster.cluster import Cluster
from horolog.broker.cluster.cluster_state import NO_NODE
from horolog.broker.cluster.peers import Peers
from horolog.broker.cluster.placement import Placement
from horolog.broker.coordination.keyed_queue import gather
from horolog.broker.transactions.states import STATES_BY_TITLE, Producer, Transaction, TransactionState
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.list_offsets import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from horolog.protocol.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    ListTransactionsRequest,
    ListTransactionsResponse,
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from horolog.protocol.topic_partition import TopicPartition, by_topic
from horolog.protocol.wire import Message

ADD_VERSION, MARKERS_VERSION, LIST_VERSION, DESCRIBE_VERSION, EPOCHS_VERSION = 5, 2, 0, 0, 4

SOON_MS = 5_000
"""The timeout of requests that a client waits for: it gets a retriable error then."""

MARKERS_MS = 30_000
"""Longer than a broker may hang before it is killed: no marker arrives late, after the next transaction has begun."""

_MARKED = frozenset({ErrorCode.NONE, ErrorCode.INVALID_PRODUCER_EPOCH})
"""The partition has its marker, or needs none because a newer producer has written there."""

_BY_NUMBER = {int(code): code for code in ErrorCode}

Codes = dict[TopicPartition, ErrorCode]
Left = frozenset[TopicPartition]
Found = list[tuple[int, Transaction]]
"""Transactions, each with the node of its coordinator."""
Shards = dict[int, int]
"""Partitions of the transactions' log, with their leader epochs."""


class Question:
    """Asks whether partitions are part of a producer's transaction; with `adds`, adds them."""

    __slots__ = ("adds", "places", "producer", "transactional_id")

    def __init__(
        self, transactional_id: str, producer: Producer, places: Iterable[TopicPartition], *, adds: bool
    ) -> None:
        self.transactional_id = transactional_id
        self.producer = producer
        self.places = tuple(dict.fromkeys(places))
        self.adds = adds

    def __repr__(self) -> str:
        return f"<Question about {len(self.places)} partitions of {self.transactional_id}>"


class OtherBrokers:
    """The other brokers, as transactions see them."""

    def __init__(self, cluster: Cluster, placement: Placement, peers: Peers) -> None:
        self._cluster = cluster
        self._placement = placement
        self._peers = peers

    def __repr__(self) -> str:
        return f"<OtherBrokers by {self._peers!r}>"

    # -- the brokers

    @property
    def me(self) -> int:
        return self._placement.me

    def leader_of(self, topic_name: str, index: int) -> int:
        """The leader's node; NO_NODE if the partition has no leader or its topic is unknown."""
        topic = self._cluster.topics.get(topic_name)
        return NO_NODE if topic is None else self._placement.lead(topic.id, index).node

    def coordinator_of(self, transactional_id: str) -> int:
        """The coordinator's node; NO_NODE while an id has none."""
        topic = self._cluster.topics.get(TRANSACTION_STATE)
        if topic is None:
            return NO_NODE
        return self._placement.lead(topic.id, partition_for(transactional_id, topic.partition_count)).node

    # -- partitions of transactions

    def ask(self, node: int, questions: Sequence[Question], done: Callable[[list[Codes]], None]) -> None:
        """Ask a coordinator with one request; `done` gets the code of every partition, question by question in their order."""
        request = AddPartitionsToTxnRequest(
            transactions=[
                AddPartitionsToTxnTransaction(
                    transactional_id=one.transactional_id,
                    producer_id=one.producer.id,
                    producer_epoch=one.producer.epoch,
                    verify_only=not one.adds,
                    topics=[
                        AddPartitionsToTxnTopic(name=name, partitions=indexes)
                        for name, indexes in by_topic(sorted(one.places)).items()
                    ],
                )
                for one in questions
            ]
        )
        self._peers.ask(node, request, ADD_VERSION, lambda answer: done(_codes_of(answer, questions)), SOON_MS)

    # -- markers

    def write_markers(
        self,
        transaction: Transaction,
        places: Iterable[TopicPartition],
        coordinator_epoch: int,
        done: Callable[[Left], None],
    ) -> None:
        """End a transaction in partitions that others lead, with one request to each; `done` gets those that are left."""
        by_node: dict[int, list[TopicPartition]] = {}
        for place in places:
            by_node.setdefault(self.leader_of(*place), []).append(place)
        unreachable = [*by_node.pop(NO_NODE, ()), *by_node.pop(self.me, ())]
        asks = [partial(self._write_to, node, transaction, there, coordinator_epoch) for node, there in by_node.items()]

        def all_told(lefts: list[Left]) -> None:
            done(frozenset(unreachable).union(*lefts))

        gather(asks, all_told)

    def _write_to(
        self,
        node: int,
        transaction: Transaction,
        places: Sequence[TopicPartition],
        coordinator_epoch: int,
        done: Callable[[Left], None],
    ) -> None:
        marker = WritableTxnMarker(
            producer_id=transaction.producer_id,
            producer_epoch=transaction.producer_epoch,
            transaction_result=transaction.state == TransactionState.PREPARE_COMMIT,
            topics=[
                WritableTxnMarkerTopic(name=name, partition_indexes=indexes)
                for name, indexes in by_topic(sorted(places)).items()
            ],
            coordinator_epoch=coordinator_epoch,
            transaction_version=transaction.client_version,
        )
        request = WriteTxnMarkersRequest(markers=[marker])
        self._peers.ask(node, request, MARKERS_VERSION, lambda answer: done(_left(answer, places)), MARKERS_MS)

    # -- transactions of other coordinators

    def transactions_of(self, producer_ids: Iterable[int], done: Callable[[Found | None], None]) -> None:
        """Every transaction of these producers that others coordinate, with its node; None while that is not known for each shard.

        A broker that answers may not have learned yet which shards it coordinates. So it has to serve each shard that it leads on record,
        before and after it lists its transactions.
        """
        wanted, shards = sorted(producer_ids), self._shards()
        others = self._placement.members.others
        if not shards.keys() <= {self.me, *others}:
            done(None)
            return

        def merge(found: list[Found | None]) -> None:
            known = [one for one in found if one is not None]
            is_whole = len(known) == len(found) and self._shards() == shards
            done([one for each in known for one in each] if is_whole else None)

        gather([partial(self._ask_for_transactions, node, wanted, shards.get(node, {})) for node in others], merge)

    def _shards(self) -> dict[int, Shards]:
        """The shards of the transactions' log that each broker leads on record."""
        found: dict[int, Shards] = {}
        topic = self._cluster.topics.get(TRANSACTION_STATE)
        if topic is not None:
            for index in range(topic.partition_count):
                node = self._placement.keeper(topic.id, index)
                found.setdefault(node, {})[index] = self._placement.recorded_epoch(topic.id, index)
        return found

    def _ask_for_transactions(
        self, node: int, producer_ids: list[int], shards: Shards, done: Callable[[Found | None], None]
    ) -> None:
        async def ask() -> None:
            is_serving = await self._serves(node, shards)
            found = await self._transactions_at(node, producer_ids) if is_serving else None
            done(found if found is not None and await self._serves(node, shards) else None)

        run(ask())

    async def _serves(self, node: int, shards: Shards) -> bool:
        """Whether a broker serves the shards, each with its leader epoch on record."""
        if not shards:
            return True
        asked = [
            OffsetForLeaderPartition(partition=index, current_leader_epoch=epoch, leader_epoch=epoch)
            for index, epoch in shards.items()
        ]
        request = OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic=TRANSACTION_STATE, partitions=asked)])
        answer = await self._asked(node, request, EPOCHS_VERSION)
        if not isinstance(answer, OffsetForLeaderEpochResponse):
            return False
        served = {one.partition for topic in answer.topics for one in topic.partitions if not one.error_code}
        return served == shards.keys()

    async def _transactions_at(self, node: int, producer_ids: list[int]) -> Found | None:
        listed = await self._asked(node, ListTransactionsRequest(producer_id_filters=producer_ids), LIST_VERSION)
        if not isinstance(listed, ListTransactionsResponse) or listed.error_code:
            return None
        ids = [one.transactional_id for one in listed.transaction_states]
        if not ids:
            return []
        request = DescribeTransactionsRequest(transactional_ids=ids)
        found = _transactions_in(await self._asked(node, request, DESCRIBE_VERSION))
        return None if found is None else [(node, one) for one in found]

    def _asked(self, node: int, request: Message, version: int) -> Answer[Message | None]:
        """The response of another broker; None if there is none in time."""
        return Answer(lambda told: self._peers.ask(node, request, version, told, SOON_MS))


def _codes_of(answer: Message | None, questions: Sequence[Question]) -> list[Codes]:
    """The codes of the response; COORDINATOR_NOT_AVAILABLE for partitions that are not in it."""
    found: list[Codes] = [{} for _ in questions]
    if isinstance(answer, AddPartitionsToTxnResponse):
        for codes, result in zip(found, answer.results_by_transaction, strict=False):
            for topic in result.topic_results:
                for one in topic.results_by_partition:
                    codes[topic.name, one.partition_index] = _BY_NUMBER[one.partition_error_code]
    unknown = ErrorCode.COORDINATOR_NOT_AVAILABLE
    return [
        {place: codes.get(place, unknown) for place in question.places}
        for question, codes in zip(questions, found, strict=True)
    ]


def _left(answer: Message | None, places: Iterable[TopicPartition]) -> Left:
    if not isinstance(answer, WriteTxnMarkersResponse):
        return frozenset(places)
    marked = {
        (topic.name, one.partition_index)
        for marker in answer.markers
        for topic in marker.topics
        for one in topic.partitions
        if one.error_code in _MARKED
    }
    return frozenset(places) - marked


def _transactions_in(answer: Message | None) -> list[Transaction] | None:
    """The transactions that DescribeTransactions lists; None if one of them has an error."""
    if not isinstance(answer, DescribeTransactionsResponse) or any(one.error_code for one in answer.transaction_states):
        return None
    return [
        Transaction(
            one.transactional_id,
            one.producer_id,
            one.producer_epoch,
            one.transaction_timeout_ms,
            STATES_BY_TITLE[one.transaction_state],
            frozenset((topic.topic, index) for topic in one.topics for index in topic.partitions),
        )
        for one in answer.transaction_states
    ]
