"""Sends rows to a topic so that a run that is killed at any point can be resumed: what `replay` and `bootstrap` do.

The rows are divided into lanes, each in an order that is the same in every run: for `replay` a lane is a partition that the rows come
from, a row's position its offset there; for `bootstrap` there is one lane, and a position counts the rows. The progress of each lane
is kept on the target, as the offset of a group (a partition of the topic for each lane, further groups if it has fewer):

    horolog-<job>-<12 hex digits of source and target>        offset: the position of the next row to be sent
    metadata: {"sent": rows so far, "ends": n, ...}                 ends: the sum of the topic's end offsets when the job began

and what the job settled when it began (the range of times, the identity of the dump); on the first lane of a completed run also
"twice", how many rows are there twice; and "upto", if rows are wanted up to that position only. A lane that was sent whole is noted to
be read up to where its rows ended (`Reach`), whether or not the last ones were wanted: offsets that are gone before that are no loss. A
lane whose positions have gaps, as those of a table have, notes in "due" how many rows the run has found, with those that were sent
before it, and the position behind them: if a later run finds fewer, some are gone. With `exactly_once` rows and progress are in one
transaction, and a later run fences an earlier one: no row is there twice. Otherwise progress is noted after the rows, and
what was sent since the last note is sent again after a kill. The number of these rows is what the topic has got since the job
began (its end offsets), minus what was sent: an upper bound if others wrote to it, too. A run that continues a completed one
counts from its end on, so that records that others wrote between the two do not count as duplicates.
"""

import asyncio
import hashlib
import json
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field, replace
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from horolog.client.admin.admin_groups import GroupAdmin
from horolog.client.producing.accumulator import size_of
from horolog.client.producing.producer import Producer
from horolog.client.values.types import LATEST, Committed, TopicPartition
from horolog.client.wire.client import Client
from horolog.client.wire.offsets import ends
from horolog.commands.errors import CommandError
from horolog.pipeline.jobs.mirror_copy import failures_of, only_producer, reason_of
from horolog.pipeline.options.brokers import Where, at
from horolog.protocol.records.timestamps import NO_TIMESTAMP

if TYPE_CHECKING:
    import pyarrow as pa

CLIENT_ID = "horolog-pipeline"
NOTE_RECORDS = 20_000
NOTE_SECONDS = 5.0
COLUMNS = ("lane", "position", "key", "value", "headers", "partition", "timestamp_ms")
SENT = "lane long, records long, size_bytes long, last_ms long"
PREFETCHED_SECONDS = 0.05


class SendFailed(CommandError):
    """A row was not written, and why."""


class Row(NamedTuple):
    lane: int
    position: int | None
    key: bytes | None
    value: bytes | None
    headers: Any
    partition: int | None
    timestamp_ms: int | None
    """-1: the record has no time; None: that of its sending."""


class LaneResult(NamedTuple):
    """The result of one lane in one task."""

    lane: int
    records: int
    size_bytes: int
    last_ms: int  # -1: none had a time


class Due(NamedTuple):
    """Rows of a lane, and a position behind them."""

    rows: int
    end: int


@dataclass(frozen=True, slots=True)
class Begun:
    """What was settled when the job began: the same for every lane, and for every run that resumes it."""

    ends: int
    settled: dict[str, Any] = field(default_factory=dict)
    twice: int | None = field(default=None, compare=False)
    """How many rows are there twice, once a run is complete."""
    upto: int | None = field(default=None, compare=False)
    """Of this lane: no row from this position on is wanted, as far as a run could see; None: any may be."""
    due: Due | None = field(default=None, compare=False)
    """Of this lane: the rows that the last run has found, with those that were sent before it."""

    def committed(self, position: int, sent: int) -> Committed:
        said = {"sent": sent, "ends": self.ends, **self.settled}
        said |= {} if self.twice is None else {"twice": self.twice}
        said |= {} if self.upto is None else {"upto": self.upto}
        said |= {} if self.due is None else {"due": self.due}
        return Committed(position, json.dumps(said, separators=(",", ":")))


class Reach(NamedTuple):
    """The positions that a run reads of a lane."""

    start: int = 0
    end: int = 0
    is_over: bool = False
    """Whether no row from `end` on is wanted, as far as this run sees."""

    def upto(self, noted: int | None) -> int | None:
        """The note for the lane: once a run has seen the end of the range, later ones know it, too."""
        return max(self.end, noted or 0) if self.is_over or noted is not None else None


@dataclass(frozen=True, slots=True)
class Lanes:
    """Where the rows go, and where their progress is kept."""

    bootstrap: Where
    topic: str
    partitions: int
    job: str
    exactly_once: bool = False
    note_records: int = NOTE_RECORDS
    reach: Mapping[int, Reach] = field(default_factory=dict)
    """Of lanes whose positions can be gone before they are sent."""
    due: Mapping[int, Due] = field(default_factory=dict)
    """Of lanes whose positions have gaps."""

    @classmethod
    def of(
        cls, kind: str, source: Iterable[object], bootstrap: Where, topic: str, partitions: int, **more: Any
    ) -> "Lanes":
        """The job's name comes from the rows and their target: the same job again is resumed."""
        digest = hashlib.sha256(json.dumps([str(each) for each in source]).encode()).hexdigest()
        return cls(bootstrap, topic, partitions, f"horolog-{kind}-{digest[:12]}", **more)

    def group(self, lane: int) -> str:
        return self.job if lane < self.partitions else f"{self.job}-{lane // self.partitions}"

    def place(self, lane: int) -> TopicPartition:
        return TopicPartition(self.topic, lane % self.partitions)

    def transactional_id(self, lane: int) -> str:
        return f"{self.job}-{self.topic}-{lane}"


class Noted(NamedTuple):
    """How far a lane has come."""

    position: int
    sent: int
    begun: Begun

    @classmethod
    def of(cls, lane: int, committed: Committed | None) -> "Noted":
        if committed is None:
            raise SendFailed(f"lane {lane}: its beginning was not recorded")
        try:
            said = json.loads(committed.metadata)
            sent, ends, twice = int(said.pop("sent")), int(said.pop("ends")), said.pop("twice", None)
            upto, due = said.pop("upto", None), said.pop("due", None)
            return cls(committed.offset, sent, Begun(ends, said, twice, upto, None if due is None else Due(*due)))
        except (ValueError, KeyError, AttributeError, TypeError) as error:
            raise SendFailed(
                f"lane {lane}: the note of its progress cannot be read: {committed.metadata!r}",
                "use --again to send all of it again",
            ) from error


# -- progress, read and noted by the driver


async def noted(client: Client, lanes: Lanes, numbers: Iterable[int], *, stable: bool = True) -> dict[int, Noted]:
    """The progress of these lanes, as far as it is noted; if not `stable`, with that of open transactions."""
    admin = GroupAdmin(client)
    found: dict[int, Noted] = {}
    for group, members in groupby(sorted(numbers), lanes.group):
        chosen = list(members)
        offsets = await admin.group_offsets(group, [lanes.place(lane) for lane in chosen], stable=stable)
        for lane in chosen:
            committed = offsets.get(lanes.place(lane))
            if committed is not None:
                found[lane] = Noted.of(lane, committed)
    return found


async def noted_alone(client: Client, lanes: Lanes, numbers: Iterable[int]) -> dict[int, Noted]:
    """The same, after fencing other senders of these lanes, so that it does not wait for a transaction that a kill left open."""
    found: dict[int, Noted] = {}
    if await begun_before(client, lanes) is None:
        return found
    for lane in numbers:
        place = lanes.place(lane)
        async with only_producer(client, lanes.transactional_id(lane), lanes.group(lane), place) as (_, committed):
            if committed is not None:
                found[lane] = Noted.of(lane, committed)
    return found


async def begun_before(client: Client, lanes: Lanes) -> Begun | None:
    """What was settled when this job began, if it did."""
    found = await GroupAdmin(client).group_offsets(lanes.job)
    ours = (each for place, each in found.items() if place.topic == lanes.topic and each is not None)
    return next((Noted.of(0, each).begun for each in ours), None)


async def before_of(lanes: Lanes) -> Begun | None:
    async with Client(**at(lanes.bootstrap), client_id=CLIENT_ID) as client:
        return await begun_before(client, lanes)


async def noted_of(lanes: Lanes, numbers: Iterable[int]) -> dict[int, Noted]:
    async with Client(**at(lanes.bootstrap), client_id=CLIENT_ID) as client:
        return await noted(client, lanes, numbers)


async def begin(
    client: Client, lanes: Lanes, numbers: Iterable[int], settled: Mapping[str, Any], *, again: bool = False
) -> dict[int, Noted]:
    """The progress of each lane; lanes without a note are noted to begin where this run does, with `again` all lanes."""
    wanted = sorted(numbers)
    ask = noted_alone if lanes.exactly_once else noted
    have = {} if again else await ask(client, lanes, wanted)
    first = next(iter(have.values()), None)
    begun = (
        Begun(await end_sum(client, lanes.topic), dict(settled))
        if first is None
        else replace(first.begun, upto=None, due=None)
    )
    twice = next((each.begun.twice for each in have.values() if each.begun.twice is not None), None)
    if twice is not None and not lanes.exactly_once:
        ends = await end_sum(client, lanes.topic) - sum(each.sent for each in have.values()) - twice
        begun = Begun(ends, begun.settled)
        have = {lane: each._replace(begun=replace(begun, upto=each.begun.upto)) for lane, each in have.items()}
        await _note(client, lanes, have)
    new = {lane: Noted(lanes.reach.get(lane, Reach()).start, 0, begun) for lane in wanted if lane not in have}
    now = {lane: _reaching(lanes, lane, each) for lane, each in (have | new).items()}
    changed = {lane: each for lane, each in now.items() if lane in new or _about_lane(each) != _about_lane(have[lane])}
    await _note(client, lanes, changed)
    return now


def _reaching(lanes: Lanes, lane: int, noted: Noted) -> Noted:
    """With how far the rows of this lane are wanted, and how many there are."""
    upto = lanes.reach.get(lane, Reach()).upto(noted.begun.upto)
    return noted._replace(begun=replace(noted.begun, upto=upto, due=lanes.due.get(lane)))


def _about_lane(noted: Noted) -> tuple[int | None, Due | None]:
    return noted.begun.upto, noted.begun.due


async def _note(client: Client, lanes: Lanes, notes: Mapping[int, Noted]) -> None:
    for group, members in groupby(sorted(notes), lanes.group):
        offsets = {
            lanes.place(lane): (each := notes[lane]).begun.committed(each.position, each.sent) for lane in members
        }
        await GroupAdmin(client).alter_group_offsets(group, offsets)


async def end_sum(client: Client, topic: str) -> int:
    places = [TopicPartition(topic, index) for index in await client.topic(topic)]
    return sum((await ends(client, dict.fromkeys(places, LATEST))).values())


async def sent_twice(client: Client, lanes: Lanes, numbers: Iterable[int]) -> int:
    """How many rows the topic has more than once since the job began: at most, for others may write to it too."""
    have = await noted(client, lanes, numbers)
    if lanes.exactly_once or not have:
        return 0
    begun = next(iter(have.values())).begun
    return max(0, await end_sum(client, lanes.topic) - begun.ends - sum(each.sent for each in have.values()))


async def finish(client: Client, lanes: Lanes, numbers: Iterable[int]) -> int:
    """Note that a run is complete; how many rows the topic has more than once, at most."""
    chosen = list(numbers)
    twice = await sent_twice(client, lanes, chosen)
    have = {} if lanes.exactly_once else await noted(client, lanes, chosen[:1])
    await _note(
        client, lanes, {lane: each._replace(begun=replace(each.begun, twice=twice)) for lane, each in have.items()}
    )
    return twice


# -- sending, by tasks


def send_batches(lanes: Lanes, batches: "Iterable[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
    """What a task does with its rows: those of each lane lie together, in their order."""
    rows = (Row(*row) for batch in batches for row in zip(*(column.to_pylist() for column in batch), strict=True))
    for lane, members in by_lane(rows):
        yield sent_batch(lanes, lane, members)


def sent_batch(lanes: Lanes, lane: int, rows: Iterable[Row]) -> "pa.RecordBatch":
    """Sends the rest of a lane; returns the result in the form for Spark."""
    import pyarrow as pa

    return pa.RecordBatch.from_pylist([asyncio.run(send_lane(lanes, lane, rows))._asdict()])


def by_lane(rows: Iterable[Row]) -> Iterator[tuple[int, Iterator[Row]]]:
    """The rows of each lane; where they have no positions of their own (None), they are counted."""
    for lane, members in groupby(rows, lambda row: row.lane):
        counted = enumerate(members)
        yield lane, (row._replace(position=n) if row.position is None else row for n, row in counted)


async def send_lane(lanes: Lanes, lane: int, rows: Iterable[Row], turn: "Turn | None" = None) -> LaneResult:
    """Send the rest of a lane; rows noted as sent are not sent again."""
    async with (
        Client(**at(lanes.bootstrap), client_id=CLIENT_ID) as client,
        _sender(client, lanes, lane) as (producer, have),
    ):
        sending = _Sending(producer, client, lanes, lane, have, turn)
        missing = (row for row in rows if row.position is not None and row.position >= have.position)
        for row in missing:
            await sending.send_some(chain((row,), missing))
        await sending.pass_to(lanes.reach.get(lane, Reach()).end)
        return LaneResult(lane, sending.records, sending.size_bytes, sending.last_ms)


@asynccontextmanager
async def _sender(client: Client, lanes: Lanes, lane: int) -> AsyncIterator[tuple[Producer, Noted]]:
    group, place = lanes.group(lane), lanes.place(lane)
    if lanes.exactly_once:
        async with only_producer(client, lanes.transactional_id(lane), group, place) as (producer, have):
            yield producer, Noted.of(lane, have)
        return
    offsets = await GroupAdmin(client).group_offsets(group, [place])
    async with Producer(client) as producer:
        yield producer, Noted.of(lane, offsets.get(place))


class Turn:
    """When the next row may be sent, at this many per second."""

    def __init__(self, rate: int) -> None:
        self._rate = rate
        self._began = time.monotonic()
        self._taken = 0

    async def wait(self) -> None:
        early = self._began + self._taken / self._rate - time.monotonic()
        self._taken += 1
        if early > PREFETCHED_SECONDS:
            await asyncio.sleep(early)


class _Sending:
    """A lane that is being sent: some rows, then a note of the progress, and so on."""

    def __init__(
        self, producer: Producer, client: Client, lanes: Lanes, lane: int, have: Noted, turn: Turn | None
    ) -> None:
        self._producer = producer
        self._client = client
        self._lanes = lanes
        self._group, self._place = lanes.group(lane), lanes.place(lane)
        self._have = have
        self._turn = turn
        self._position = have.position
        self.records = 0
        self.size_bytes = 0
        self.last_ms = -1

    async def send_some(self, rows: Iterator[Row]) -> None:
        """Send the rows that one note covers; when this returns they are written and noted."""
        async with self._transaction():
            await self._note(await self._send(rows))

    async def pass_to(self, position: int) -> None:
        """Note that no row before that position is left to be sent."""
        if position > self._position:
            async with self._transaction():
                await self._note(position)

    def _transaction(self) -> AbstractAsyncContextManager[object]:
        return self._producer.transaction() if self._lanes.exactly_once else nullcontext()

    async def _note(self, position: int) -> None:
        self._position = position
        progress = {self._place: self._have.begun.committed(position, self._have.sent + self.records)}
        if self._lanes.exactly_once:
            await self._producer.send_offsets(self._group, progress)
        else:
            await GroupAdmin(self._client).alter_group_offsets(self._group, progress)

    async def _send(self, rows: Iterator[Row]) -> int:
        """The position after the last row that was sent."""
        began, position = time.monotonic(), 0
        futures: list[asyncio.Future[Any]] = []
        try:
            for row in rows:
                futures.append(await self._send_row(row))
                position = (row.position or 0) + 1
                if len(futures) >= self._lanes.note_records or time.monotonic() - began >= NOTE_SECONDS:
                    break
            await self._producer.flush()
        finally:
            failures = failures_of(futures)
        if failures:
            raise SendFailed(f"topic {self._lanes.topic}: {reason_of(failures[0])}") from failures[0]
        return position

    async def _send_row(self, row: Row) -> "asyncio.Future[Any]":
        if self._turn is not None:
            await self._turn.wait()
        headers = tuple((each["key"].encode(), _bytes(each["value"])) for each in row.headers or ())
        value, key = _bytes(row.value), _bytes(row.key)
        sent = await self._producer.send(self._lanes.topic, value, key, headers, row.timestamp_ms, row.partition)
        self.records += 1
        self.size_bytes += size_of(key, value, headers)
        if row.timestamp_ms is not None and row.timestamp_ms != NO_TIMESTAMP:
            self.last_ms = row.timestamp_ms
        return sent


def _bytes(data: Any) -> bytes | None:
    return None if data is None else bytes(data)
