"""A partition whose records count once they are shipped: readers see them then, and markers end transactions then.

The local log is a copy. It is written first, and what it holds behind the high watermark may end with this broker, so no reader, group or
producer learns of it. A local log that comes back from a fault with another end than it had cannot be trusted: runs of it may be on their
way. It stays offline until the partition is opened from the store.

Retention moves its start only after a manifest says so, because a log that is opened from the store again would begin before its start.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from horolog.broker.bucket.new_lead import NewLead, is_second
from horolog.broker.bucket.producers_behind import ProducersAt, known_at
from horolog.broker.bucket.remote_front import RemoteFront
from horolog.broker.bucket.shipped_expiry import MoveStart, ShippedExpiry
from horolog.broker.config.topic_settings import TopicConfig
from horolog.broker.log.integrity import BLOCK_BYTES
from horolog.broker.log.partition import OpenedPartition, Partition
from horolog.broker.log.producers import Completed
from horolog.broker.log.segments import Allowance
from horolog.broker.log.validation import AppendResult, RefusedSet
from horolog.protocol.errors import ErrorCode

log = logging.getLogger(__name__)

MOST_BYTES = 32 << 20
"""Segments are no larger, whatever `segment.bytes` says: each is uploaded with one request, from memory. One batch may be."""


def limited(config: TopicConfig) -> TopicConfig:
    """The same settings with segments that fit the bucket: those that are appended to, and those that are compacted."""
    return config if config.segment_bytes <= MOST_BYTES else replace(config, segment_bytes=MOST_BYTES)


def _always() -> bool:
    return True


class ShippedPartition(Partition):
    """A partition of a broker that shares a store: at first, all that it holds is shipped."""

    __slots__ = (
        "_counted_bytes",
        "_is_certain",
        "_new_lead",
        "_unshipped",
        "ends",
        "front",
        "shipping_end",
        "unread_bases",
    )

    def __init__(self, opened: OpenedPartition) -> None:
        self._unshipped: list[Completed] = []
        self._counted_bytes = 0
        self._new_lead = NewLead()
        self._is_certain: Callable[[], bool] = _always
        super().__init__(replace(opened, config=limited(opened.config)))
        self.epochs.is_synced = False  # no broker relies on this copy after a crash
        self.ends: dict[int, ProducersAt] = {}
        """The producers just behind each segment that was closed here and is not in the bucket yet, by the offset."""
        self.shipping_end = self.high_watermark
        """The end of the records that are shipped or under way."""
        self.unread_bases: tuple[int, ...] = ()
        """Where segments begin that lie in the bucket, and could not be brought here with the others."""
        self.front: RemoteFront | None = None
        """Its segments that lie in the bucket."""
        self.move_start_by(None)

    def have_front(self, front: RemoteFront) -> None:
        """These segments of the partition lie in the bucket."""
        self.front = front
        self.aborted.elsewhere = front.decided()

    def move_start_by(self, move_start: MoveStart | None) -> None:
        """Have retention move the start in this way; without one it removes nothing."""
        expiry = self.expiry = ShippedExpiry(f"{self.topic}-{self.index}", self.sync_state)
        expiry.move_start = move_start

    def configure(self, config: TopicConfig) -> None:
        super().configure(limited(config))

    def roll(self, now_ms: int) -> None:
        super().roll(now_ms)
        self.ends[self.log_end_offset] = known_at(self.producers, self.log_end_offset)

    def served_while(self, is_certain: Callable[[], bool]) -> None:
        """Clients are served of it from now on. `is_certain` says whether this broker leads it for certain at the time of the call."""
        self._new_lead = NewLead()
        self._is_certain = is_certain

    def append(self, records: bytes | memoryview, now_ms: int, *, produce_version: int) -> AppendResult:
        """Batches behind one that was refused are refused alike: see `new_lead`.

        A process that stood still may lack batches that its successor has acknowledged: a gap says nothing then.
        """
        is_new = self._new_lead.holds(now_ms)
        if is_new and is_second(self.producers, records):
            raise RefusedSet(ErrorCode.NOT_LEADER_OR_FOLLOWER, "the first batch of its producer is missing")
        try:
            return super().append(records, now_ms, produce_version=produce_version)
        except RefusedSet as refused:
            is_gap = refused.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
            if is_gap and (is_new or not self._is_certain()):
                raise RefusedSet(ErrorCode.NOT_LEADER_OR_FOLLOWER, refused.message) from None
            raise

    def take_growth(self) -> int:
        """How many bytes were appended since this was asked last."""
        grown = self.appended_bytes - self._counted_bytes
        self._counted_bytes = self.appended_bytes
        return grown

    @property
    def last_stable_offset(self) -> int:
        stable = super().last_stable_offset
        if not self._unshipped:
            return stable
        first = min((one.first_offset for one in self._unshipped), default=stable)
        return min(max(first, self.log_start_offset), stable)

    def _write(self) -> None:
        shown, ended = self.high_watermark, list(self.producers.completed)
        super()._write()
        self.high_watermark = shown
        self._unshipped += ended

    def read(
        self,
        offset: int,
        max_bytes: int,
        *,
        at_least_one: bool = True,
        cuts_first: bool = True,
        upto: int | None = None,
        upconvert: Allowance | None = None,
    ) -> bytes:
        """A reader of the bucket gets no more at a time than a block or two hold: all have to be here at once."""
        if self.front is not None and offset < self.front.end_offset:
            max_bytes = min(max_bytes, BLOCK_BYTES)
        return super().read(
            offset, max_bytes, at_least_one=at_least_one, cuts_first=cuts_first, upto=upto, upconvert=upconvert
        )

    def shipped(self, end_offset: int) -> None:
        """Everything before this offset counts from now on."""
        assert self.high_watermark <= end_offset <= self.written_end, f"{self!r}: shipped up to {end_offset}"
        self.high_watermark = end_offset
        self._unshipped = [one for one in self._unshipped if one.last_offset >= end_offset]

    def replace_log(self, opened: OpenedPartition) -> None:
        shown, written, front = self.high_watermark, self.written_end, self.front
        expiry = self.expiry
        super().replace_log(opened if front is None else front.put_before(opened, self.log_start_offset))
        assert isinstance(expiry, ShippedExpiry)
        self.move_start_by(expiry.move_start)
        if front is not None:
            self.have_front(front)
        if self.written_end != written:
            self.condition.go_offline(f"its local log ended at {written} and ends at {self.written_end} now")
            log.error("%s %s", self, self.condition)
        self.high_watermark = min(shown, self.written_end)
