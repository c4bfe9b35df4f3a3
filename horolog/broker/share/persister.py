"""The states of share partitions, wherever they are kept: by this broker, or by another one that is asked with Kafka's own requests.

Each call is about one share partition, and `done` is called once: at once, or when the state is written. Without a response from the
other broker, it gets COORDINATOR_NOT_AVAILABLE, and the caller tries again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeVar

from horolog.broker.base.late_answers import InTime
from horolog.broker.base.topic_names import SHARE_GROUP_STATE
from horolog.broker.cluster.cluster import Cluster
from horolog.broker.cluster.cluster_state import NO_NODE
from horolog.broker.cluster.peers import Peers
from horolog.broker.cluster.placement import Placement
from horolog.broker.on_record.cluster_errors import ClusterError
from horolog.broker.share.journal import StateJournal
from horolog.broker.share.records import SharePartitionKey
from horolog.broker.share.state import NO_EPOCH, StateRead, StateSummary, StateUpdate
from horolog.broker.share.state_batches import StateBatch
from horolog.broker.share.state_keeper import StateKeeper
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.share_state import (
    DeleteShareGroupStateRequest,
    DeleteStateTopic,
    InitializeShareGroupStateRequest,
    InitializeStatePartition,
    InitializeStateTopic,
    ReadShareGroupStateRequest,
    ReadShareGroupStateSummaryRequest,
    ReadStatePartition,
    ReadStateTopic,
    ShareStateBatch,
    StatePartition,
    WriteShareGroupStateRequest,
    WriteStatePartition,
    WriteStateTopic,
)
from horolog.protocol.wire import Message

ANSWER_MS: Final = 5_000
WITH_COUNT, WITHOUT_COUNT = 1, 0
"""The versions of requests: those with the number of records that were delivered completely, and others."""

Answer = TypeVar("Answer")
_BY_NUMBER = {int(code): code for code in ErrorCode}


class SharePersister:
    """Finds the broker that keeps a state, and passes requests about it on."""

    def __init__(
        self, cluster: Cluster, placement: Placement, peers: Peers, journal: StateJournal, keeper: StateKeeper
    ) -> None:
        self._cluster = cluster
        self._placement = placement
        self._peers = peers
        self._journal = journal
        self._keeper = keeper

    def __repr__(self) -> str:
        return f"<SharePersister over {self._keeper!r} and {self._peers!r}>"

    def ensure_topic(self, done: Callable[[ErrorCode], None]) -> None:
        """Create the topic of states if it is missing."""
        self._journal.when_made(lambda refusal: done(ErrorCode.NONE if refusal is None else refusal.code))

    def node_of(self, key: SharePartitionKey) -> int:
        """The broker that keeps a state; NO_NODE while there is none."""
        topic = self._cluster.topics.get(SHARE_GROUP_STATE)
        if topic is None:
            return NO_NODE
        return self._placement.lead(topic.id, self._journal.shard_of_state(key)).node

    def initialize(
        self, place: tuple[str, bytes, int], state_epoch: int, start_offset: int, done: Callable[[ErrorCode], None]
    ) -> None:
        key = SharePartitionKey(*place)
        asked = InitializeStatePartition(partition=key.partition, state_epoch=state_epoch, start_offset=start_offset)
        topics = [InitializeStateTopic(topic_id=key.topic_id, partitions=[asked])]
        self._ask(
            key,
            lambda told: self._keeper.initialize(key, state_epoch, start_offset, told),
            InitializeShareGroupStateRequest(group_id=key.group, topics=topics),
            WITHOUT_COUNT,
            _code_of,
            done,
        )

    def read(
        self, place: tuple[str, bytes, int], leader_epoch: int, done: Callable[[StateRead | ErrorCode], None]
    ) -> None:
        key = SharePartitionKey(*place)
        self._ask(
            key,
            lambda told: self._keeper.read(key, leader_epoch, told),
            ReadShareGroupStateRequest(group_id=key.group, topics=_to_read(key, leader_epoch)),
            WITHOUT_COUNT,
            _read_in,
            done,
        )

    def write(self, place: tuple[str, bytes, int], written: StateUpdate, done: Callable[[ErrorCode], None]) -> None:
        """The request is made only where another broker is asked: acknowledgements are many."""
        key = SharePartitionKey(*place)
        self._ask(
            key,
            lambda told: self._keeper.write(key, written, told),
            partial(_writing, key, written),
            WITH_COUNT,
            _code_of,
            done,
        )

    def delete(self, place: tuple[str, bytes, int], done: Callable[[ErrorCode], None]) -> None:
        key = SharePartitionKey(*place)
        topics = [DeleteStateTopic(topic_id=key.topic_id, partitions=[StatePartition(partition=key.partition)])]
        self._ask(
            key,
            lambda told: self._keeper.delete(key, told),
            DeleteShareGroupStateRequest(group_id=key.group, topics=topics),
            WITHOUT_COUNT,
            _code_of,
            done,
        )

    def read_summary(self, place: tuple[str, bytes, int], done: Callable[[StateSummary | ErrorCode], None]) -> None:
        key = SharePartitionKey(*place)
        self._ask(
            key,
            lambda told: self._keeper.read_summary(key, told),
            ReadShareGroupStateSummaryRequest(group_id=key.group, topics=_to_read(key, NO_EPOCH)),
            WITH_COUNT,
            _summary_in,
            done,
        )

    def _ask(
        self,
        key: SharePartitionKey,
        keep: Callable[[Callable[[Answer | ErrorCode], None]], None],
        request: Message | Callable[[], Message],
        version: int,
        read: Callable[[Message | None], Answer | ErrorCode],
        done: Callable[[Answer | ErrorCode], None],
    ) -> None:
        """Have a state kept here, or ask the other broker; where no broker keeps it, the keeper says why not. Neither waits for ever."""

        def made(refusal: ClusterError | None) -> None:
            node = self.node_of(key)
            if refusal is not None:
                done(read(None))
            elif node in {self._placement.me, NO_NODE}:
                keep(InTime(done, read(None), self._cluster.later))
            else:
                asked = request if isinstance(request, Message) else request()
                self._peers.ask(node, asked, version, lambda answer: done(read(answer)), ANSWER_MS)

        self._journal.when_made(made)


def _to_read(key: SharePartitionKey, leader_epoch: int) -> list[ReadStateTopic]:
    part = ReadStatePartition(partition=key.partition, leader_epoch=leader_epoch)
    return [ReadStateTopic(topic_id=key.topic_id, partitions=[part])]


def _writing(key: SharePartitionKey, written: StateUpdate) -> WriteShareGroupStateRequest:
    part = WriteStatePartition(
        partition=key.partition,
        state_epoch=written.state_epoch,
        leader_epoch=written.leader_epoch,
        start_offset=written.start_offset,
        delivery_complete_count=written.complete_count,
        state_batches=[
            ShareStateBatch(first_offset=first, last_offset=last, delivery_state=state, delivery_count=count)
            for first, last, state, count in written.batches
        ],
    )
    topics = [WriteStateTopic(topic_id=key.topic_id, partitions=[part])]
    return WriteShareGroupStateRequest(group_id=key.group, topics=topics)


def _only(answer: Message | None) -> Any:
    """The one partition of a response; None without one."""
    results = getattr(answer, "results", None)
    return results[0].partitions[0] if results and results[0].partitions else None


def _code_of(answer: Message | None) -> ErrorCode:
    result = _only(answer)
    if result is None:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return _BY_NUMBER.get(result.error_code, ErrorCode.UNKNOWN_SERVER_ERROR)


def _read_in(answer: Message | None) -> StateRead | ErrorCode:
    code, result = _code_of(answer), _only(answer)
    if code:
        return code
    batches = [
        StateBatch(one.first_offset, one.last_offset, one.delivery_state, one.delivery_count)
        for one in result.state_batches
    ]
    return StateRead(result.state_epoch, result.start_offset, batches)


def _summary_in(answer: Message | None) -> StateSummary | ErrorCode:
    code, result = _code_of(answer), _only(answer)
    if code:
        return code
    return StateSummary(result.state_epoch, result.leader_epoch, result.start_offset, result.delivery_complete_count)
