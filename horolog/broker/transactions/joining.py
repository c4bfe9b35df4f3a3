"""Asks a transaction's coordinator, on this broker or another, whether partitions written to here are part of the transaction.

The coordinator here is asked each time. A remote one is asked once for each transaction and partition: from then on the partition itself
knows that the transaction is open, until its marker arrives. Questions to one broker in one tick of the event loop share one request.

A response and a marker arrive on different connections. If the marker was first, the transaction has ended and the response is void:
records accepted because of it would belong to no transaction.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Protocol

from horolog.broker.cluster.cluster import Cluster
from horolog.broker.cluster.cluster_state import NO_NODE
from horolog.broker.log.partition import Partition
from horolog.broker.log.producers import KnownProducer
from horolog.broker.transactions.other_brokers import Codes, OtherBrokers, Question
from horolog.broker.transactions.states import VERSION_2, Producer, Transaction
from horolog.protocol.errors import ErrorCode
from horolog.protocol.topic_partition import TopicPartition

log = logging.getLogger(__name__)

CodeCallback = Callable[[ErrorCode], None]

_NOT_NOW = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.OPERATION_NOT_ATTEMPTED})
"""Errors between brokers that mean nothing to clients: it is no longer the coordinator, or does not know the topic yet."""


HERE = -2
"""No node's number: this broker's own coordinator."""


class Here(Protocol):
    """The coordinator of this broker."""

    def add(
        self,
        transactional_id: str,
        producer: Producer,
        partitions: Iterable[TopicPartition],
        client_version: int,
        done: CodeCallback,
    ) -> None:
        """Add partitions to the transaction; this is on record when `done` gets NONE."""
        ...

    def verify(self, transactional_id: str, producer: Producer, partition: TopicPartition, done: CodeCallback) -> None:
        """Whether a producer may write to a partition now; TRANSACTION_ABORTABLE if the partition was not added."""
        ...

    def get(self, transactional_id: str) -> Transaction | None:
        """The transaction, if it is coordinated here."""
        ...


class _Asked(NamedTuple):
    """A question and its callback."""

    question: Question
    done: CodeCallback
    before: list[KnownProducer | None]
    """The producer's state in each partition when the question was asked."""

    def tell(self, code: ErrorCode) -> None:
        """An error in one callback does not keep the others from being called."""
        try:
            self.done(code)
        except Exception:
            log.exception(
                "transaction %s: could not handle the response of its coordinator", self.question.transactional_id
            )


class Joining:
    """Asks the coordinator here for its own ids, and other brokers for theirs."""

    def __init__(
        self,
        here: Here,
        others: OtherBrokers,
        cluster: Cluster,
        call_soon: Callable[[Callable[[int], None], int], Any],
    ) -> None:
        self._here = here
        self._others = others
        self._cluster = cluster
        self._call_soon = call_soon
        self._waiting: dict[int, list[_Asked]] = {}

    def __repr__(self) -> str:
        return f"<Joining: {sum(map(len, self._waiting.values()))} questions to be sent>"

    def add(
        self,
        transactional_id: str,
        producer: Producer,
        partitions: Iterable[TopicPartition],
        client_version: int,
        done: CodeCallback,
    ) -> None:
        node = self._coordinator_of(transactional_id)
        if node == HERE:
            self._here.add(transactional_id, producer, partitions, client_version, lambda code: done(_told(code)))
            return
        assert client_version == VERSION_2, "who adds partitions without their client's word is of version 2"
        self._ask(node, Question(transactional_id, producer, partitions, adds=True), done)

    def verify(self, transactional_id: str, producer: Producer, partition: TopicPartition, done: CodeCallback) -> None:
        node = self._coordinator_of(transactional_id)
        if node == HERE:
            self._here.verify(transactional_id, producer, partition, lambda code: done(_told(code)))
        else:
            self._ask(node, Question(transactional_id, producer, (partition,), adds=False), done)

    def _coordinator_of(self, transactional_id: str) -> int:
        """The node of another coordinator; HERE also while an id has none, for the coordinator here says why not."""
        if self._here.get(transactional_id) is not None:
            return HERE
        node = self._others.coordinator_of(transactional_id)
        return HERE if node in (self._others.me, NO_NODE) else node

    def _ask(self, node: int, question: Question, done: CodeCallback) -> None:
        known = [self._known(question.producer, place) for place in question.places]
        if all(_is_open(one, question.producer) for one in known):
            done(ErrorCode.NONE)
            return
        waiting = self._waiting.setdefault(node, [])
        if not waiting:
            self._call_soon(self._send, node)
        waiting.append(_Asked(question, done, known))

    def _known(self, producer: Producer, place: TopicPartition) -> KnownProducer | None:
        topic = self._cluster.topics.get(place[0])
        partition = None if topic is None else topic.find(place[1])
        return partition.producers.get(producer.id) if isinstance(partition, Partition) else None

    def _has_ended(self, asked: _Asked) -> bool:
        """Whether a marker was written since the question was asked; states are replaced, never changed."""
        producer = asked.question.producer
        now = (self._known(producer, place) for place in asked.question.places)
        return any(
            one is not before and not _is_open(one, producer) for one, before in zip(now, asked.before, strict=True)
        )

    def _send(self, node: int) -> None:
        """Send the questions of a broker, those about one transaction merged."""
        merged: dict[tuple[str, Producer, bool], list[_Asked]] = {}
        for one in self._waiting.pop(node):
            question = one.question
            merged.setdefault((question.transactional_id, question.producer, question.adds), []).append(one)
        questions = [
            Question(name, producer, (place for one in asked for place in one.question.places), adds=adds)
            for (name, producer, adds), asked in merged.items()
        ]

        def answered(found: list[Codes]) -> None:
            for asked, codes in zip(merged.values(), found, strict=True):
                for one in asked:
                    code = _first_refusal(codes[place] for place in one.question.places)
                    if code == ErrorCode.NONE and self._has_ended(one):
                        code = ErrorCode.CONCURRENT_TRANSACTIONS
                    one.tell(code)

        self._others.ask(node, questions, answered)


def _is_open(known: KnownProducer | None, producer: Producer) -> bool:
    """Whether a partition has records of this very transaction: the coordinator confirmed it before they were written."""
    return known is not None and known.epoch == producer.epoch and known.transaction_start >= 0


def _first_refusal(codes: Iterable[ErrorCode]) -> ErrorCode:
    return _told(next((one for one in codes if one), ErrorCode.NONE))


def _told(code: ErrorCode) -> ErrorCode:
    return ErrorCode.COORDINATOR_NOT_AVAILABLE if code in _NOT_NOW else code
