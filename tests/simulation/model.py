"""What was sent, what was promised of it, and what a broker must therefore show: the oracle of the simulation.

Every record's value is unique, so that whatever is read can be told from everything else. Levels of a promise:

    REFUSED   the broker said that it did not take it: it must never be read
    UNKNOWN   no answer, or an error that leaves it open: it may be read, once
    WRITTEN   acknowledged with acks=1, or shown to a reader: survives the end of the process
    DURABLE   acknowledged with acks=all or before what was, found after a power cut, or handed over: survives everything but damage
    GONE      a start has not found it: it must never come back
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from itertools import pairwise

from horolog.protocol.records.record import Header


class Level(IntEnum):
    REFUSED = 0
    GONE = 1
    UNKNOWN = 2
    WRITTEN = 3
    DURABLE = 4


@dataclass(frozen=True, slots=True)
class Sent:
    """A record as a producer sends it."""

    timestamp: int
    key: bytes | None
    value: bytes
    headers: tuple[Header, ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """A record as a reader gets it."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes
    headers: tuple[Header, ...]


@dataclass(slots=True, eq=False)
class Attempt:
    """One batch or set that a producer has sent, perhaps more than once."""

    number: int
    producer: str
    records: list[Sent]
    transaction: str | None = None
    level: Level = Level.UNKNOWN
    base_offset: int | None = None
    taken_back: bool = False
    """Written and rolled back, so far not on the disk: a power cut may bring it back."""
    refused_from: int = 0
    """If it was refused because a write of a segment failed: what lies before that one was written, in the same tick, and stays."""
    divisible: bool = False
    """Of messages that may survive a power cut one by one."""
    append_time: int | None = None
    """-1: the records keep their own times; None: nobody has said."""

    def __repr__(self) -> str:
        return f"<{self.producer} #{self.number}: {len(self.records)} records, {self.level.name} at {self.base_offset}>"


class Outcome(IntEnum):
    """How a transaction ended, as far as its producer knows."""

    OPEN = 0  # nobody has asked for a commit: nothing of it may be shown
    ASKED = 1  # a commit was asked for: it may have ended either way, but in one piece
    COMMITTED = 2
    ABORTED = 3


@dataclass(slots=True, eq=False)
class PartitionModel:
    """One partition of one topic that was made once."""

    topic: str
    index: int
    attempts: list[Attempt] = field(default_factory=list)
    by_value: dict[bytes, tuple[Attempt, int]] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    """What was read last."""
    start_is_unknown: bool = False
    must_start: int = 0
    may_start: int = 0
    damaged: set[int] = field(default_factory=set)
    producers_damaged: bool = False
    """A file that knows producers was hit: what the log has no more may be forgotten."""
    keeps_all: bool = False
    """Nobody has said what may go."""
    was_compacted: bool = False
    was_log_append: bool = False
    after_power_cut: bool = False
    lost_to_power: set[Attempt] = field(default_factory=set)
    """What was never on the disk when the power was cut; what its producer had sent behind it may have been."""

    def __repr__(self) -> str:
        return f"{self.topic}-{self.index}"

    def attempt(self, attempt: Attempt) -> None:
        self.attempts.append(attempt)
        for place, sent in enumerate(attempt.records):
            self.by_value[sent.value] = attempt, place

    def may_have_forgotten(self, attempt: Attempt) -> bool:
        """Whether a batch that is sent again may be appended again: damage took it, or took what was known of it when it was gone."""
        if attempt.base_offset is None:
            return False
        offsets = range(attempt.base_offset, attempt.base_offset + len(attempt.records))
        if not self.damaged.isdisjoint(offsets):
            return True
        return self.producers_damaged and not any(row.offset in offsets for row in self.rows)

    def learn_places(self, rows: Iterable[tuple[int, bytes]]) -> None:
        """Where records are that nobody has been told of: they may have been the reason to clean others away."""
        for offset, value in rows:
            found = self.by_value.get(value)
            if found is not None and found[0].level == Level.UNKNOWN and found[0].base_offset is None:
                found[0].base_offset = offset - found[1]

    def broker_ended(self, *, power: bool, clean: bool) -> None:
        """The promises that are left."""
        for attempt in self.attempts:
            if power and (attempt.level == Level.WRITTEN or attempt.taken_back):
                attempt.level, attempt.taken_back = Level.UNKNOWN, False
            elif clean and attempt.level == Level.WRITTEN:
                attempt.level = Level.DURABLE
        self.after_power_cut = power

    def synced_before(self, offset: int) -> None:
        """A record acknowledged with acks=all is on the disk with all that lies before it."""
        for attempt in self.written_only():
            if attempt.base_offset is not None and attempt.base_offset < offset:
                attempt.level = Level.DURABLE

    def written_only(self) -> list[Attempt]:
        """What a power cut may take."""
        return [attempt for attempt in self.attempts if attempt.level == Level.WRITTEN]

    def disk_failed(self) -> None:
        """A sync has failed: what was only written may be gone."""
        for attempt in self.written_only():
            attempt.level = Level.UNKNOWN

    def started(self) -> None:
        """A start has been looked at: what was not found then must not come later."""
        for attempt in self.attempts:
            if attempt.level == Level.UNKNOWN and attempt.base_offset not in self.damaged:
                attempt.level = Level.GONE
                if self.after_power_cut:
                    self.lost_to_power.add(attempt)
        self.after_power_cut = self.start_is_unknown = False

    # -- what was read

    def check(self, rows: list[Row], start: int, end: int) -> Iterator[str]:
        """The faults of all that a reader gets; the model learns from what it sees."""
        if self.start_is_unknown:
            self.must_start = self.may_start = start
        if self.damaged.issuperset(range(start, self.must_start)):
            self.must_start = min(self.must_start, start)  # the log ends where its last batch was damaged
        if not self.must_start <= start <= self.may_start:
            yield f"{self}: starts at {start}, not in {self.must_start} to {self.may_start}"
        if any(after.offset <= before.offset for before, after in pairwise(rows)):
            yield f"{self}: offsets are not in order"
        if rows and not (start <= rows[0].offset and rows[-1].offset < end):
            yield f"{self}: {rows[0].offset} to {rows[-1].offset} are outside of {start} to {end}"
        self._divide({row.value for row in rows})
        seen: dict[bytes, int] = {}
        for row in rows:
            if row.value in seen:
                yield f"{self}: {row.value!r} is at {seen[row.value]} and at {row.offset}"
            seen[row.value] = row.offset
            yield from self._check_row(row)
        yield from self._missing(seen, rows, start)
        yield from self._out_of_order(rows)
        self.rows = rows

    def _divide(self, seen: set[bytes]) -> None:
        """Sets of which a part has survived are a batch for each message from now on."""
        for attempt in list(self.attempts):
            there = sum(one.value in seen for one in attempt.records)
            if attempt.divisible and attempt.level == Level.UNKNOWN and 0 < there < len(attempt.records):
                self.attempts.remove(attempt)
                for sent in attempt.records:
                    self.attempt(replace(attempt, records=[sent], base_offset=None))

    def _check_row(self, row: Row) -> Iterator[str]:
        found = self.by_value.get(row.value)
        if found is None:
            yield f"{self}: nobody has sent {row}"
            return
        attempt, place = found
        sent = attempt.records[place]
        if (row.key, row.headers) != (sent.key, sent.headers):
            yield f"{self}: {row} was sent as {sent}"
        own_time = attempt.append_time == -1 or not self.was_log_append
        if own_time and row.timestamp != sent.timestamp:
            yield f"{self}: {row} has the wrong time: {sent}"
        if attempt.append_time not in (-1, None) and row.timestamp != attempt.append_time:
            yield f"{self}: {row} was acknowledged with the time {attempt.append_time}"
        if attempt.base_offset is not None and attempt.level >= Level.WRITTEN:
            if row.offset != attempt.base_offset + place:
                yield f"{self}: {row} was acknowledged at {attempt.base_offset + place}"
        else:
            attempt.base_offset = row.offset - place
        refused = attempt.level == Level.REFUSED and row.offset >= attempt.refused_from
        if refused or attempt.level == Level.GONE:
            yield f"{self}: {row} is there, {attempt} must not be"
        attempt.level = max(attempt.level, Level.DURABLE if self.after_power_cut else Level.WRITTEN)

    def _missing(self, seen: dict[bytes, int], rows: Sequence[Row], start: int) -> Iterator[str]:
        latest = self._latest(rows) if self.was_compacted else {}
        for attempt in self.attempts:
            if attempt.level < Level.WRITTEN or attempt.base_offset is None:
                continue
            for place, sent in enumerate(attempt.records):
                offset = attempt.base_offset + place
                if sent.value in seen or offset < start or offset in self.damaged:
                    continue
                if self.was_compacted and (sent.key is None or latest.get(sent.key, -1) > offset):
                    continue
                yield f"{self}: {sent} of {attempt} at {offset} is not there"

    def _latest(self, rows: Iterable[Row]) -> dict[bytes | None, int]:
        """The newest offset of each key; a record that is damaged now may have been the reason to clean another away."""
        latest = {row.key: row.offset for row in rows}
        for attempt in self.attempts:
            for offset, sent in enumerate(attempt.records, attempt.base_offset or 0):
                if attempt.base_offset is not None and offset in self.damaged:
                    latest[sent.key] = max(latest.get(sent.key, -1), offset)
        return latest

    def _out_of_order(self, rows: Iterable[Row]) -> Iterator[str]:
        last: dict[str, int] = {}
        for row in rows:
            found = self.by_value.get(row.value)
            if found is not None:
                attempt, _ = found
                if attempt.number < last.get(attempt.producer, -1):
                    yield f"{self}: {row} of {attempt} comes behind a later one"
                last[attempt.producer] = attempt.number

    def check_committed(
        self, rows: list[Row], stable_offset: int, outcomes: dict[str, Outcome], start: int
    ) -> Iterator[str]:
        """The faults of all that a reader of committed records gets."""
        seen = {row.value for row in rows}
        for row in self.rows:
            if row.offset >= stable_offset:
                break
            found = self.by_value.get(row.value)
            transaction = found[0].transaction if found is not None else None
            outcome = Outcome.COMMITTED if transaction is None else outcomes[transaction]
            shown = row.value in seen
            if shown and outcome in (Outcome.OPEN, Outcome.ABORTED):
                yield f"{self}: {row} of {transaction} is shown, which is {outcome.name}"
            if not shown and outcome == Outcome.COMMITTED:
                yield f"{self}: {row} of {transaction} is not shown, which is {outcome.name}"
        known = {row.value for row in self.rows}
        for row in rows:
            if row.value not in known or row.offset >= stable_offset or row.offset < start:
                yield f"{self}: {row} is shown to readers of committed records only"


def first_at_or_after(rows: Iterable[Row], timestamp: int) -> tuple[int, int] | None:
    """The linear scan that every lookup must equal."""
    return next(((row.offset, row.timestamp) for row in rows if row.timestamp >= timestamp), None)


@dataclass(slots=True, eq=False)
class TopicModel:
    """One topic that was made once; `name` may have been used before."""

    name: str
    id: bytes | None = None
    counts: set[int] = field(default_factory=set)
    """How many partitions there may be: one number, unless a request for more was not answered."""
    configs: list[dict[str, str]] = field(default_factory=list)
    """The overrides there may be: one set, unless a change was not answered."""
    partitions: list[PartitionModel] = field(default_factory=list)
    must_exist: bool = True
    may_exist: bool = True

    def __repr__(self) -> str:
        return f"<topic {self.name}>"
