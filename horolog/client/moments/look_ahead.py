"""How far past the end of a time range one partition is read to find late records; pure.

A broker's lookup of t finds a running maximum: the first record with a time >= t, so all before it are earlier. That makes
the beginning of a range exact, but not its end: records of the range may follow the first later one. A record that
is late by no more than L (behind the largest time before it) lies before the lookup of `until + L`. Reading goes that
far, and on while times there are out of order. It ends

- at the end of the partition: nothing was left out;
- when `QUIET_RECORDS` in a row were later than `until + L`: records after them, late by more than L, are not found; nothing
was left out if the topic accepts no records that late;
- when the byte limit is reached.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

QUIET_RECORDS = 1000
"""This many records in order end the search for late ones."""
SMALLEST_SHARE_BYTES = 256 << 10
BEYOND_ALL_MS = 2**63 - 1


@dataclass(frozen=True, slots=True)
class LookAhead:
    """The bounds. None: no bound; without both, partitions are read to the end."""

    late_ms: int | None = 600_000
    """Records late by no more than this are found."""
    most_bytes: int | None = 32 << 20
    """Bytes read after the end of the range, over all partitions."""

    def share(self, partitions: int) -> int | None:
        """The byte limit of each of this many partitions."""
        return None if self.most_bytes is None else max(self.most_bytes // max(partitions, 1), SMALLEST_SHARE_BYTES)


DEFAULT = LookAhead()
TO_THE_END = LookAhead(None, None)


class Ended(StrEnum):
    """Why reading of a partition ended."""

    AT_END = "end"
    PROVEN = "proven"
    """The topic accepts no record that could be missing."""
    QUIET = "quiet"
    BYTES = "bytes"
    PASSED_OVER = "passed over"
    """Offsets in the middle were left out, because times around them lie before the range."""


def most_late_ms(settings: Mapping[str, str | None]) -> int | None:
    """How late a record of a topic with these settings can be, as far as they bound it.

    The broker stamps a record, or rejects it if its time is too far from the broker's clock.
    """
    if settings.get("message.timestamp.type") == "LogAppendTime":
        return 0
    bounds = [settings.get(f"message.timestamp.{side}.max.ms") for side in ("before", "after")]
    if any(bound is None or not bound.isdecimal() for bound in bounds):
        return None
    late_ms = sum(int(bound or 0) for bound in bounds)
    return late_ms if late_ms < BEYOND_ALL_MS else None


class Search:
    """Decides when the reading of one partition may end. `range_end` and `late_end` are the lookups of `until` and `until + L`."""

    def __init__(
        self,
        *,
        range_end: int,
        late_end: int,
        end: int,
        quiet_from_ms: int,
        most_bytes: int | None,
        proven: bool,
    ) -> None:
        self._range_end = range_end
        self._late_end = late_end
        self._end = end
        self._quiet_from_ms = quiet_from_ms
        self._most_bytes = self._bytes_left = most_bytes
        self._proven = proven
        self._quiet = 0

    def __repr__(self) -> str:
        return f"<Search behind {self._range_end}, quiet for {self._quiet} records>"

    def see(self, timestamp_ms: int) -> None:
        """Note a record that was read."""
        self._quiet = self._quiet + 1 if timestamp_ms >= self._quiet_from_ms else 0

    def pay(self, position: int, size_bytes: int) -> None:
        """Note bytes fetched from a position on."""
        if self._bytes_left is not None and position >= self._range_end:
            self._bytes_left -= size_bytes

    def renew(self) -> None:
        """Restore the byte limit: reading continues elsewhere."""
        self._bytes_left = self._most_bytes
        self._quiet = 0

    def ended(self, position: int) -> Ended | None:
        """Whether to end before reading at this position, and why."""
        if position >= self._end:
            return Ended.AT_END
        if position >= self._late_end and self._quiet >= QUIET_RECORDS:
            return Ended.PROVEN if self._proven else Ended.QUIET
        if self._bytes_left is not None and self._bytes_left <= 0 and position >= self._range_end:
            return Ended.BYTES
        return None
