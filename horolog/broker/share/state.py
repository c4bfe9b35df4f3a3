"""The persisted state of one share partition, and what each request makes of it (pure).

A state begins when it is initialized. From then on it is a snapshot and the updates since; after enough of them the next one is a snapshot
again. Epochs fence: a request with a state epoch or leader epoch below the known one comes from the past.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from horolog.broker.share.records import Snapshot, Update
from horolog.broker.share.state_batches import NO_OFFSET, PackedBatches, StateBatch, combine
from horolog.protocol.errors import ErrorCode

NO_EPOCH = -1
"""The leader epoch of a reader that is no leader."""
NO_COUNT = -1
COMBINE_ABOVE = 64
"""Batches of updates that are kept as they came, until they are looked at or outnumber this and the combined ones."""


class StateSummary(NamedTuple):
    """A state without its batches."""

    state_epoch: int
    leader_epoch: int
    start_offset: int
    complete_count: int


class StateRead(NamedTuple):
    """What the leader of the partition continues from."""

    state_epoch: int
    start_offset: int
    batches: Sequence[StateBatch]


class StateUpdate(NamedTuple):
    """What a leader has a state updated with; -1 for a start or a count leaves it as it was."""

    state_epoch: int
    leader_epoch: int
    start_offset: int
    complete_count: int
    batches: Sequence[StateBatch]


UNINITIALIZED = StateSummary(0, 0, NO_OFFSET, NO_COUNT)


class ShareState:
    """`snapshot_at` is the offset of the last snapshot in the journal, and `updates` counts those since."""

    __slots__ = ("_combined", "_recent", "_values", "snapshot_at", "updates")

    def __init__(self, snapshot: Snapshot, at: int) -> None:
        self.take_snapshot(snapshot, at)

    def __repr__(self) -> str:
        return f"<ShareState {self.summary}, snapshot {self._values.snapshot_epoch} and {self.updates} updates>"

    def take_snapshot(self, snapshot: Snapshot, at: int) -> None:
        self._combined, self._recent = PackedBatches(snapshot.batches), PackedBatches()
        self._values = snapshot._replace(batches=())
        self.snapshot_at = at
        self.updates = 0

    def take_update(self, update: Update) -> None:
        values = self._values
        self._values = values._replace(
            leader_epoch=update.leader_epoch,
            start_offset=values.start_offset if update.start_offset == NO_OFFSET else update.start_offset,
            complete_count=values.complete_count if update.complete_count == NO_COUNT else update.complete_count,
        )
        self._recent.add(update.batches)
        self.updates += 1
        if len(self._recent) > COMBINE_ABOVE + len(self._combined):
            self._combine()

    def _combine(self) -> None:
        combined = combine([*self._combined, *self._recent], self._values.start_offset)
        self._combined, self._recent = PackedBatches(combined), PackedBatches()

    @property
    def batches(self) -> list[StateBatch]:
        """They do not overlap, and lie at or above the start."""
        if self._recent:
            self._combine()
        return list(self._combined)

    @property
    def summary(self) -> StateSummary:
        values = self._values
        return StateSummary(values.state_epoch, values.leader_epoch, values.start_offset, values.complete_count)

    @property
    def read(self) -> StateRead:
        return StateRead(self._values.state_epoch, self._values.start_offset, self.batches)

    # -- what follows a request

    def snapshot(self, now_ms: int) -> Snapshot:
        """The same state as a new snapshot."""
        values = self._values
        return values._replace(snapshot_epoch=values.snapshot_epoch + 1, written_ms=now_ms, batches=tuple(self.batches))

    def initialized(self, state_epoch: int, start_offset: int, now_ms: int) -> Snapshot | ErrorCode:
        """Begun again: whatever was known is forgotten."""
        if state_epoch < self._values.state_epoch:
            return ErrorCode.FENCED_STATE_EPOCH
        return first_snapshot(state_epoch, start_offset, now_ms, self._values.snapshot_epoch + 1)

    def written(self, request: StateUpdate, now_ms: int, updates_per_snapshot: int) -> Snapshot | Update | ErrorCode:
        values = self._values
        if request.leader_epoch != NO_EPOCH and request.leader_epoch < values.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if request.state_epoch < values.state_epoch:
            return ErrorCode.FENCED_STATE_EPOCH
        update = Update(
            values.snapshot_epoch,
            max(values.leader_epoch, request.leader_epoch),
            request.start_offset,
            request.complete_count,
            tuple(request.batches),
        )
        if self.updates < updates_per_snapshot:
            return update
        after = ShareState(values._replace(batches=tuple(self.batches)), self.snapshot_at)
        after.take_update(update)
        return after.snapshot(now_ms)

    def led(self, leader_epoch: int) -> Update | ErrorCode | None:
        """Read by the leader of an epoch; None if that is known already."""
        values = self._values
        if leader_epoch in {NO_EPOCH, values.leader_epoch}:
            return None
        if leader_epoch < values.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        return Update(values.snapshot_epoch, leader_epoch, NO_OFFSET, NO_COUNT, ())


def first_snapshot(state_epoch: int, start_offset: int, now_ms: int, snapshot_epoch: int = 0) -> Snapshot:
    return Snapshot(snapshot_epoch, state_epoch, 0, start_offset, 0, now_ms, now_ms, ())
