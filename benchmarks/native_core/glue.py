"""The Python side of the core: the broker's own objects decide and do whatever the core does not.

One `Turns` belongs to an event loop. The core calls it: for a partition's facts and a producer's sequence, and once a turn to append
and write. Rolling, indexes, times, failures and waiting readers are left to the partition and the committer.
"""

# The prototype reaches into the objects that it measures. A core that is built would have fronts for this.
# ruff: noqa: SLF001

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from horolog.broker.commit.safety import NotSafe
from horolog.broker.handlers import produce
from horolog.broker.log.partition import Partition
from horolog.broker.log.producers import ProducerBatch
from horolog.broker.log.segments import HAS_PRODUCERS
from horolog.broker.log.storage import StorageFault
from horolog.broker.log.validation import Mark, RefusedSet, Validated
from horolog.broker.network import listener as listeners
from horolog.broker.network.conversation import ConversationState
from horolog.broker.network.meters import SECONDS
from horolog.protocol.errors import ErrorCode
from horolog.protocol.records.head import HEADER

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType

    from horolog.broker.commit.safety import Failures
    from horolog.broker.network.dispatch import Dispatcher, Route

LARGEST_SEQUENCE = 2**31 - 1
BATCH_MAGIC = 2
PRODUCER_CODEC = "producer"
Appended = tuple[Partition, Any, int, int, int, int, int, int, int, tuple[tuple[int, int, int, int, int], ...] | None]
"""Partition, bytes, their size, first and last offset, count, largest time and its offset, first time, and a mark for each batch."""


class TurnCommit:
    """What one turn has appended, as the committer sees it. Answers are the core's."""

    __slots__ = ("durable", "failures", "partitions", "timeout_ms")

    def __init__(self) -> None:
        self.partitions: list[Partition] = []
        self.timeout_ms = 0
        self.durable = False
        self.failures: Failures = {}

    def finish(self, failures: Failures) -> None:
        self.failures = failures


class Turns:
    """Stands between the core and one broker."""

    def __init__(self, native: ModuleType, dispatcher: Dispatcher, max_request_bytes: int) -> None:
        self._broker = broker = dispatcher._broker
        self._cluster = broker.cluster
        self._committer = broker.committer
        self.wall_ms = broker.clock.wall_ms
        self._commit = TurnCommit()
        self.core = native.Core(
            self, dispatcher._routes, broker.cluster.partition_cache, max_request_bytes, SECONDS.bounds
        )
        asyncio.get_running_loop().add_reader(self.core.fileno(), self.core.turn)

    # -- called by the core

    def find(self, key: str | bytes, index: int) -> Partition | None:
        """The partition that a request names, if it is one of ours and of the plain kind."""
        place = self._cluster.partition_cache.get((key, index)) or produce._find(self._broker, key, index)
        return place if type(place) is Partition else None

    def facts(self, partition: Partition) -> tuple[object, ...] | None:
        """The facts that the verdict on a batch needs; None where Python has to decide."""
        if not partition.condition.takes_appends or partition._failed is not None or partition.counts_to_flush:
            return None
        config = partition.config
        if config.log_append_time or config.compression != PRODUCER_CODEC or config.stored_magic is not None:
            return None
        return (
            partition.log_end_offset,
            partition.leader_epoch,
            partition.log_start_offset,
            config.segment_bytes,
            config.max_message_bytes,
            config.before_max_ms,
            config.after_max_ms,
            config.compact,
        )

    def route(self, route: Route) -> tuple[object, ...] | None:
        """The counters of a route; None where access, quotas or anything else stands before the handler."""
        if route.handle is not produce.handle or route.wait_s is not None or self._committer.holds_all:
            return None
        meter = route.meter
        return route.requests, route.received, meter._sent, meter._seconds, meter._seconds.counts

    def producer(self, partition: Partition, header: bytes, first_offset: int, is_note: bool) -> bool:
        """Whether a producer's batch is the next of its sequence; `is_note` makes it the newest."""
        fields = HEADER.unpack(header)
        last_delta, max_timestamp, producer_id, epoch, sequence = (
            fields[6],
            fields[8],
            fields[9],
            fields[10],
            fields[11],
        )
        batch = ProducerBatch(
            producer_id,
            epoch,
            sequence,
            (sequence + last_delta) & LARGEST_SEQUENCE,
            first_offset,
            first_offset + last_delta,
            max_timestamp,
            False,
            None,
        )
        if not is_note:
            return partition.producers.check(batch) is None
        partition.producers.update(batch, self.wall_ms())
        partition._active.magics |= HAS_PRODUCERS
        return True

    def end_turn(self, appended: list[Appended], now_ms: int) -> Mapping[Partition, int] | None:
        """Append and write everything of a turn; the code for each partition that could not."""
        refused: dict[Partition, StorageFault | RefusedSet] = {}
        commit = self._commit
        commit.partitions = partitions = []
        for one in appended:
            partition = one[0]
            if partition in refused:
                continue
            try:
                _append(one, now_ms)
            except (StorageFault, RefusedSet) as error:
                refused[partition] = error
            else:
                partitions.append(partition)
        self._committer._queued.append(commit)
        self._committer._write_queued()
        failures: dict[Partition, Any] = {**commit.failures, **refused}
        return {partition: _code(fault) for partition, fault in failures.items()} if failures else None


def _append(one: Appended, now_ms: int) -> None:
    partition, data, size, first, last, count, highest, highest_at, first_timestamp, marks = one
    if marks is not None:
        active = partition._active
        if partition._limits.exceeded_by(size, last, highest, active, now_ms) is not None:
            _append_each(one, now_ms)
            return
        if active.bytes_since_entry + size <= active.index_interval_bytes:
            marks = ()  # no entry is due inside: one place stands for all
    partition.append_checked(
        Validated(
            data,
            size,
            first,
            last,
            count,
            highest,
            highest_at,
            first_timestamp,
            -1,
            tuple(Mark(*mark) for mark in marks or ()),
            (),
            BATCH_MAGIC,
        ),
        now_ms,
    )


def _append_each(one: Appended, now_ms: int) -> None:
    """Batch by batch, as the segment may end between two."""
    partition, data, size, *_, marks = one
    assert marks is not None
    view = memoryview(data)
    ends = [*(mark[0] for mark in marks[1:]), size]
    for (position, first, last, highest, highest_at), end in zip(marks, ends, strict=True):
        batch, count = view[position:end], last - first + 1
        _append((partition, batch, end - position, first, last, count, highest, highest_at, highest, None), now_ms)


def _code(fault: StorageFault | RefusedSet | NotSafe) -> int:
    if isinstance(fault, RefusedSet):
        return int(fault.code)
    return int(fault.error if isinstance(fault, NotSafe) else ErrorCode.KAFKA_STORAGE_ERROR)


class CoreTransport(listeners.SocketTransport):
    """A connection whose socket the core reads, once the event loop has accepted it. Answers of Python leave by the event loop."""

    native: ModuleType
    turns: Turns | None = None

    def __init__(self, listener: Any, conversation: Any) -> None:
        super().__init__(listener, conversation)
        self._id = -1

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if not self.conversation.closing:
            asyncio.get_running_loop().call_soon(self._hand_over)

    def _hand_over(self) -> None:
        wire = self._wire
        if wire is None or wire.is_closing() or self.conversation.reader.held_bytes:
            return
        listener = self._listener
        if CoreTransport.turns is None:
            CoreTransport.turns = Turns(self.native, listener._dispatcher, listener._limits.max_request_bytes)
        wire.pause_reading()
        self.conversation.on_large_request = None
        self._id = CoreTransport.turns.core.adopt(self._descriptor, self, self.conversation)

    def connection_lost(self, error: Exception | None) -> None:
        if self._id >= 0 and CoreTransport.turns is not None:
            CoreTransport.turns.core.forget(self._id)
        super().connection_lost(error)

    def state_changed(self) -> None:
        if self._id < 0 or CoreTransport.turns is None:
            super().state_changed()
            return
        conversation = self.conversation
        CoreTransport.turns.core.listen_to(self._id, conversation.wants_to_read and not conversation.closing)
        if conversation.closing:
            super().state_changed()
        elif conversation.wants_turn:
            asyncio.get_running_loop().call_soon(conversation.resume_if_allowed)

    # -- called by the core

    def is_clear(self) -> bool:
        """Whether nothing of this peer waits here: its next request may be served by the core."""
        conversation, wire = self.conversation, self._wire
        return (
            conversation.state is ConversationState.SERVING
            and conversation.wants_to_read
            and not len(conversation.unanswered)
            and self._waiting is None
            and wire is not None
            and not wire.get_write_buffer_size()
        )

    def send_rest(self, rest: bytes) -> None:
        """What the socket did not take."""
        if self._wire is not None:
            self._wire.write(rest)

    def unfinished(self, size_bytes: int) -> None:
        """So much of a request has come."""
        self.conversation._count_unfinished(size_bytes, is_new=True)

    def gone(self) -> None:
        """The peer has closed, or the connection failed."""
        if self._wire is not None:
            self._wire.close()


def install(native: ModuleType) -> None:
    """From now on, connections to plain listeners are read by the core."""
    CoreTransport.native = native
    listeners.SocketTransport = CoreTransport
