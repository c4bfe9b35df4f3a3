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
from typing import NamedTuple, Protocol

from horolog.broker.cluster import changes
from horolog.broker.cluster.cluster import Cluster
from horolog.broker.cluster.cluster_state import ClusterState, Lead, LeadsChanged
from horolog.broker.cluster.placement import NO_NODE, Placement
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


class _HandOver(NamedTuple):
    """A hand-over under way; `done` gets its outcome."""

    topic_id: bytes
    partition: Partition
    node: int
    done: Moved


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
            done(ClusterError(ErrorCode.REASSIGNMENT_IN_PROGRESS, f"{name}-{index} is being moved already"))
        elif leader == node:
            done(None)
        elif node not in self._placement.members.live:
            done(ClusterError(ErrorCode.BROKER_NOT_AVAILABLE, f"worker {node} is away"))
        elif leader == self._placement.me:
            self._withdraw(topic.id, name, index, node, done)
        elif leader == NO_NODE:
            done(ClusterError(ErrorCode.LEADER_NOT_AVAILABLE, f"the worker that leads {name}-{index} is away"))
        else:
            self._ask(leader, name, index, node, done)

    def _ask(self, leader: int, name: str, index: int, node: int, done: Moved) -> None:
        wanted = ReassignablePartition(partition_index=index, replicas=[node])
        request = AlterPartitionReassignmentsRequest(
            timeout_ms=ASKED_TIMEOUT_MS, topics=[ReassignableTopic(name=name, partitions=[wanted])]
        )
        self._peers.ask(leader, request, ASKED_VERSION, partial(_told, leader, done), ASKED_TIMEOUT_MS)

    # -- this worker leads it

    def _withdraw(self, topic_id: bytes, name: str, index: int, node: int, done: Moved) -> None:
        """What was appended before is answered before anything is closed."""
        found = self._cluster.topics[name].find(index)
        if isinstance(found, ErrorCode) or not found.condition.takes_appends:
            done(
                ClusterError(ErrorCode.KAFKA_STORAGE_ERROR, f"{name}-{index} cannot be closed: its disk does not work")
            )
            return
        self._cluster.withdraw(name, index)
        self.moves[name, index] = node
        move = _HandOver(topic_id, found, node, done)
        self._committer.submit(InternalCommit([found], partial(self._written, move), durable=True))

    def _written(self, move: _HandOver, failures: Failures) -> None:
        try:
            for fault in failures.values():
                raise fault
            closing.complete(move.partition)
        except StorageFault as fault:
            self._stays(move, ClusterError(ErrorCode.KAFKA_STORAGE_ERROR, str(fault)), was_clean=False)
            return
        settled = self._loop.run_in_executor(self._disk, closing.settle, move.partition)
        settled.add_done_callback(partial(self._settled, move))

    def _settled(self, move: _HandOver, settled: asyncio.Future[None]) -> None:
        error = None if settled.cancelled() else settled.exception()
        if settled.cancelled() or error is not None:
            self._stays(move, ClusterError(ErrorCode.KAFKA_STORAGE_ERROR, str(error or "stopping")), was_clean=False)
            return
        closing.let_go(move.partition)
        move.partition.condition.go_offline(LED_ELSEWHERE)
        name, place = move.partition.topic, (move.topic_id, move.partition.index)

        def decide(state: ClusterState) -> LeadsChanged | ClusterError:
            known = state.topics.get(name)
            if known is None or known.id != move.topic_id:
                return ClusterError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "it was deleted meanwhile")
            epoch = max(move.partition.leader_epoch, state.epoch(*place)) + 1
            return LeadsChanged(((place, Lead(move.node, epoch)),))

        def made(outcome: changes.Failures | ClusterError) -> None:
            if isinstance(outcome, ClusterError):
                self._stays(move, outcome, was_clean=True)
            else:
                self._end(move, None)

        self._cluster.changes.make(decide, made)

    def _stays(self, move: _HandOver, reason: ClusterError, *, was_clean: bool) -> None:
        """Open the partition again and lead it as before, or remove it if its topic is gone."""
        log.error("%r is not handed over: %s", move.partition, reason.message)
        closing.close_files(move.partition)
        move.partition.condition.go_offline(LED_ELSEWHERE)
        if move.topic_id in self._cluster.by_id:
            self._cluster.lead_again(move.topic_id, move.partition.index, was_clean=was_clean)
        else:
            self._cluster.remove_withdrawn(move.partition)
        self._end(move, reason)

    def _end(self, move: _HandOver, reason: ClusterError | None) -> None:
        del self.moves[move.partition.topic, move.partition.index]
        move.done(reason)


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
