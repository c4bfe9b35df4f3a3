"""What a share partition is asked with, and its answers: plain values (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

from horolog.broker.share.state_batches import StateBatch
from horolog.protocol.errors import ErrorCode


class AcknowledgeType(IntEnum):
    """What became of a record; a gap is an offset without one."""

    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


class Limits(NamedTuple):
    """The settings of a share group that a partition goes by; they may change at any time."""

    lock_s: float = 30.0
    deliveries: int = 5
    """How often a record is delivered before it is archived."""
    locks: int = 2_000
    """How many offsets may be in flight."""
    may_renew: bool = True


class Wish(NamedTuple):
    """The terms on which a member asks for records."""

    max_records: int
    batch_size: int
    is_strict: bool = False
    """Never more than `max_records`, not even to complete a batch."""


class Fetched(NamedTuple):
    """What was read from the log for a share partition."""

    offset: int
    """Where the read began."""
    batches: Sequence[tuple[int, int]]
    """The first and last offset of each batch."""
    aborted: Sequence[tuple[int, int]] = ()
    """The same of batches that belong to aborted transactions, where such are not to be read."""


class Acquired(NamedTuple):
    """Records that a member has acquired."""

    first: int
    last: int
    delivery_count: int

    @property
    def size(self) -> int:
        return self.last - self.first + 1


class Acknowledgement(NamedTuple):
    """What a member says of consecutive offsets: one type for all, or one for each."""

    first: int
    last: int
    types: Sequence[int]


class StateChange(NamedTuple):
    """A change that is kept once it is written, and taken back if it cannot be."""

    batches: tuple[StateBatch, ...]
    acknowledged: Sequence[tuple[AcknowledgeType, int]] = ()
    """How many records were acknowledged in which way."""


class Refused(NamedTuple):
    """Nothing has changed."""

    code: ErrorCode
    reason: str
