"""Moves a partition from the worker that leads it to another: closed here first, and opened there once that is on record.

    1. it is taken out of service here: requests get NOT_LEADER_OR_FOLLOWER, its coordinator stops
    2. everything is written, synced and sealed, in a thread of the disk
    3. the journal says who leads it from now on, in the next leader epoch
    4. that worker opens it without reading its log, and this one forgets it

Until step 3 is on the disk this worker leads. If it ends before, its successor opens the partition again; if a step fails, it does so
itself at once. Any worker takes the request and passes it on to the leader, which alone can close the log.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from typing import Protocol

from horolog.broker.base.answers import Answer, run
from horolog.broker.cluster.changes import Outcome
from horolog.broker.cluster.cluster import Cluster
from horolog.broker.cluster.cluster_state import NO_NODE, ClusterState, Lead, LeadsChanged
from horolog.broker.cluster.placement import Placement
from horolog.broker.cluster.served_topics import LED_ELSEWHERE
from horolog.broker.commit.committer import Committer, InternalCommit
from horolog.broker.commit.safety import Failures
from horolog.broker.log.partition import Partition, closing
from horolog.broker.log.storage import StorageFault
from horolog.broker.on_record.cluster_errors import ClusterError
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from horolog.protocol.wire import Message

log = logging.getLogger(__name__)

ASKED_VERSION = 1
ASKED_TIMEOUT_MS = 30_000

Moved = Callable[[ClusterError | None], None]


class RequestSender(Protocol):
    """Sends requests to other workers."""

    def ask(
        self, node: int, request: Message, version: int, done: Callable[[Message | None], None], timeout_ms: int
    ) -> None: ...


class HandOvers:
    """The hand-overs under way here; `moves` has the new leader of each partition, by its topic's name and its number."""

    def __init__(
        self,
        cluster: Cluster,
        placement: Placement,
        peers: RequestSender,
        committer: Committer,
        disk: Executor,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.moves: dict[tuple[str, int], int] = {}
        self._cluster = cluster
        self._placement = placement
        self._peers = peers
        self._committer = committer
        self._disk = disk
        self._loop = loop

    def __repr__(self) -> str:
        return f"<HandOvers: {self.moves} under way>"

    def move(self, name: str, index: int, node: int, done: Moved) -> None:
        """Move an existing partition to an existing worker; `done` gets None, or the error."""
        topic = self._cluster.topics[name]
        leader = self._placement.lead(topic.id, index).node
        if (name, index) in self.moves:
            done(ClusterError(ErrorCode.REASSIGNMENT_IN_PROGRESS, f"{name}-{index} is already being moved"))
        elif leader == node:
            done(None)
        elif node not in self._placement.members.live:
            done(ClusterError(ErrorCode.BROKER_NOT_AVAILABLE, f"worker {node} is not running"))
        elif leader == self._placement.me:
            run(self._hand_over(topic.id, name, index, node, done))
        elif leader == NO_NODE:
            done(ClusterError(ErrorCode.LEADER_NOT_AVAILABLE, f"the worker that leads {name}-{index} is not running"))
        else:
            self._ask(leader, name, index, node, done)

    def _ask(self, leader: int, name: str, index: int, node: int, done: Moved) -> None:
        wanted = ReassignablePartition(partition_index=index, replicas=[node])
        request = AlterPartitionReassignmentsRequest(
            timeout_ms=ASKED_TIMEOUT_MS, topics=[ReassignableTopic(name=name, partitions=[wanted])]
        )
        self._peers.ask(leader, request, ASKED_VERSION, partial(_told, leader, done), ASKED_TIMEOUT_MS)

    # -- this worker leads it

    async def _hand_over(self, topic_id: bytes, name: str, index: int, node: int, done: Moved) -> None:
        """What was appended before is answered before anything is closed."""
        partition = self._cluster.topics[name].find(index)
        if isinstance(partition, ErrorCode) or not partition.condition.takes_appends:
            done(_storage_error(f"{name}-{index} cannot be moved: its disk does not work"))
            return
        self._cluster.withdraw(name, index)
        self.moves[name, index] = node
        refusal = await self._closed(partition)
        was_clean = refusal is None
        if refusal is None:
            self._let_go(partition)
            change = partial(_lead_change, topic_id, partition, node)
            outcome = await Answer[Outcome](partial(self._cluster.changes.make, change))
            refusal = outcome if isinstance(outcome, ClusterError) else None
        if refusal is not None:
            self._stays(topic_id, partition, refusal, was_clean=was_clean)
        del self.moves[name, index]
        done(refusal)

    @staticmethod
    def _let_go(partition: Partition) -> None:
        """Nothing is read or written here from now on."""
        closing.let_go(partition)
        partition.condition.go_offline(LED_ELSEWHERE)

    async def _closed(self, partition: Partition) -> ClusterError | None:
        """Write, sync and seal everything; returns why that failed."""
        failures = await Answer[Failures](
            lambda told: self._committer.submit(InternalCommit([partition], told, durable=True))
        )
        try:
            for fault in failures.values():
                raise fault
            closing.complete(partition)
        except StorageFault as fault:
            return _storage_error(str(fault))
        settling = self._loop.run_in_executor(self._disk, closing.settle, partition)
        settled = await Answer[asyncio.Future[None]](settling.add_done_callback)
        if settled.cancelled():
            return _storage_error("stopping")
        error = settled.exception()
        return None if error is None else _storage_error(str(error))

    def _stays(self, topic_id: bytes, partition: Partition, reason: ClusterError, *, was_clean: bool) -> None:
        """Open the partition again and lead it as before, or remove it if its topic is gone."""
        log.error("%s could not be handed over: %s", partition, reason.message)
        closing.close_files(partition)
        partition.condition.go_offline(LED_ELSEWHERE)
        if topic_id in self._cluster.by_id:
            self._cluster.lead_again(topic_id, partition.index, was_clean=was_clean)
        else:
            self._cluster.remove_withdrawn(partition)


def _storage_error(reason: str) -> ClusterError:
    return ClusterError(ErrorCode.KAFKA_STORAGE_ERROR, reason)


def _lead_change(topic_id: bytes, partition: Partition, node: int, state: ClusterState) -> LeadsChanged | ClusterError:
    """The entry that says who leads a partition that is closed here."""
    known = state.topics.get(partition.topic)
    if known is None or known.id != topic_id:
        return ClusterError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "it was deleted in the meantime")
    place = (topic_id, partition.index)
    epoch = max(partition.leader_epoch, state.epoch(*place)) + 1
    return LeadsChanged(((place, Lead(node, epoch)),))


def _told(leader: int, done: Moved, answer: Message | None) -> None:
    """Pass on the leader's response for the one partition of the request."""
    if not isinstance(answer, AlterPartitionReassignmentsResponse):
        done(ClusterError(ErrorCode.REQUEST_TIMED_OUT, f"worker {leader} has not answered"))
        return
    told = [one for topic in answer.responses for one in topic.partitions]
    codes = {int(code): code for code in ErrorCode}
    for one in told[:1]:
        code = codes[one.error_code]
        done(None if code == ErrorCode.NONE else ClusterError(code, one.error_message or code.message))
