"""Keeps the states of share partitions of the shards that this broker leads: Kafka's share coordinator.

Everything runs on the event loop's thread. A state changes when its record is appended; the caller is answered once that is written.
If a write fails, the shard is read again: nothing of it was acknowledged.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, TypeVar

from horolog.base.clock import Clock
from horolog.broker.cluster.cluster import Cluster
from horolog.broker.coordination.timers import Timer, Timers
from horolog.broker.share.journal import StateJournal
from horolog.broker.share.records import SharePartitionKey, Snapshot, Update
from horolog.broker.share.state import UNINITIALIZED, ShareState, StateRead, StateSummary, StateUpdate, first_snapshot
from horolog.protocol.errors import ErrorCode

log = logging.getLogger(__name__)

Answer = TypeVar("Answer")
Done = Callable[[ErrorCode], None]

SPARSE_ABOVE: Final = 1_000
"""The records of a shard beyond which states that were not written for long get a new snapshot, so that older records can go."""


class StateKeeper:
    """The states by share partition; those of a shard in `unread` are not known yet."""

    def __init__(self, cluster: Cluster, journal: StateJournal, clock: Clock, timers: Timers) -> None:
        self._cluster = cluster
        self._journal = journal
        self._clock = clock
        self._timers = timers
        self._states: dict[int, dict[SharePartitionKey, ShareState]] = {}
        self._unread: set[int] = set()
        self._pruning = Timer(self._prune)

    def __repr__(self) -> str:
        return f"<StateKeeper of {sum(map(len, self._states.values()))} states, {len(self._unread)} shards are unread>"

    # -- shards

    def open(self) -> None:
        for partition in self._journal.led_here:
            self.gained(partition.index)

    def gained(self, shard: int) -> None:
        """Keep the states of a shard from now on, or read it again. While it cannot be read, requests get a retriable error."""
        stored = self._journal.read(shard)
        if stored is None:
            self._unread.add(shard)
            return
        self._unread.discard(shard)
        states = self._states[shard] = {}
        for offset, key, value in stored:
            _take(states, key, value, offset)

    def lost(self, shard: int) -> None:
        self._unread.discard(shard)
        self._states.pop(shard, None)

    def retry_unread(self, shard: int) -> None:
        """A partition of the topic works again."""
        if shard in self._unread:
            self.gained(shard)

    # -- requests

    def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int, done: Done) -> None:
        """Begin a state; with a start of -1 the leader of the partition finds it, as the group's settings say."""
        found = self._find(key, must_exist=True)
        if isinstance(found, ErrorCode):
            done(found)
            return
        now_ms = self._clock.wall_ms()
        if found.state is None:
            self._write(found, first_snapshot(state_epoch, start_offset, now_ms), done)
        else:
            self._write(found, found.state.initialized(state_epoch, start_offset, now_ms), done)

    def write(self, key: SharePartitionKey, request: StateUpdate, done: Done) -> None:
        found = self._find(key)
        if isinstance(found, ErrorCode):
            done(found)
        elif found.state is None:
            done(ErrorCode.INVALID_REQUEST)
        else:
            settings = self._cluster.settings
            most = settings.share_coordinator_snapshot_update_records_per_snapshot
            value = found.state.written(request, self._clock.wall_ms(), most)
            self._write(found, value, done, durable=settings.horolog_offsets_commit_sync)

    def read(self, key: SharePartitionKey, leader_epoch: int, done: Callable[[StateRead | ErrorCode], None]) -> None:
        """The state, for the leader of an epoch: leaders of older ones are fenced from then on."""
        found = self._find(key)
        if isinstance(found, ErrorCode):
            done(found)
            return
        state = found.state
        if state is None:
            done(ErrorCode.INVALID_REQUEST)
            return
        update = state.led(leader_epoch)
        if update is None:
            done(state.read)
        else:
            self._write(found, update, lambda code: done(code or state.read))

    def read_summary(self, key: SharePartitionKey, done: Callable[[StateSummary | ErrorCode], None]) -> None:
        found = self._find(key, must_exist=True)
        if isinstance(found, ErrorCode):
            done(found)
        else:
            done(UNINITIALIZED if found.state is None else found.state.summary)

    def delete(self, key: SharePartitionKey, done: Done) -> None:
        """Forget a state; there need be none. Its topic may be gone already."""
        found = self._find(key)
        if isinstance(found, ErrorCode):
            done(found)
        elif found.state is None:
            done(ErrorCode.NONE)
        else:
            self._write(found, None, done)

    # -- one state

    def _find(self, key: SharePartitionKey, *, must_exist: bool = False) -> _Place | ErrorCode:
        if key.partition < 0:
            return ErrorCode.INVALID_REQUEST
        shard = self._journal.shard_of_state(key)
        if shard in self._unread:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        if not self._journal.leads(shard):
            return self._journal.absence(shard)
        topic = self._cluster.by_id.get(key.topic_id)
        if must_exist and (topic is None or not topic.has(key.partition)):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return _Place(shard, key, self._states.get(shard, {}).get(key))

    def _write(
        self, place: _Place, value: Snapshot | Update | ErrorCode | None, done: Done, *, durable: bool | None = None
    ) -> None:
        """What members acknowledge is as durable as an offset commit, everything else as `acks=all`."""
        if isinstance(value, ErrorCode):
            done(value)
            return
        shard, key = place.shard, place.key
        if durable is None:
            durable = self._cluster.settings.horolog_acks_all_sync
        offset = self._journal.append(shard, key, value, partial(self._written, shard, done), durable=durable)
        if isinstance(offset, ErrorCode):
            done(offset)
            return
        _take(self._states.setdefault(shard, {}), key, value, offset)
        if not self._pruning.running:
            self._timers.start(self._pruning, self._cluster.settings.share_coordinator_state_topic_prune_interval_ms)

    def _written(self, shard: int, done: Done, code: ErrorCode) -> None:
        if code:
            self.gained(shard)
        done(code)

    # -- superfluous records

    def _prune(self) -> None:
        """Runs only after a write, so an idle broker does nothing."""
        for shard, states in self._states.items():
            partition = self._journal.find(shard)
            if isinstance(partition, ErrorCode):
                continue
            end = partition.log_end_offset
            self._renew(
                shard, [key for key, one in states.items() if end - one.snapshot_at > SPARSE_ABOVE + 2 * len(states)]
            )
            self._journal.prune(shard, min((one.snapshot_at for one in states.values()), default=end))

    def _renew(self, shard: int, keys: Iterable[SharePartitionKey]) -> None:
        """Write states again that hold up the records of others."""
        for key in keys:
            state = self._states[shard][key]
            place = _Place(shard, key, state)
            self._write(place, state.snapshot(self._clock.wall_ms()), partial(_renewed, key))


class _Place:
    """Where a state is kept, and the state if there is one."""

    __slots__ = ("key", "shard", "state")

    def __init__(self, shard: int, key: SharePartitionKey, state: ShareState | None) -> None:
        self.shard = shard
        self.key = key
        self.state = state

    def __repr__(self) -> str:
        return f"<_Place of {self.key} in shard {self.shard}>"


def _take(
    states: dict[SharePartitionKey, ShareState], key: SharePartitionKey, value: Snapshot | Update | None, offset: int
) -> None:
    """Apply a record; an update without its snapshot belongs to a state that was deleted."""
    state = states.get(key)
    if value is None:
        states.pop(key, None)
    elif isinstance(value, Snapshot):
        if state is None:
            states[key] = ShareState(value, offset)
        else:
            state.take_snapshot(value, offset)
    elif state is not None:
        state.take_update(value)


def _renewed(key: SharePartitionKey, code: ErrorCode) -> None:
    if code:
        log.warning("the state of %s could not be written again: %s", key, code.message)
