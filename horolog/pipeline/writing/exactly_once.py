"""Decides which transactions of a write are committed: a batch counts once, whatever is killed, repeated or started twice.

Each task writes into a transaction of its own and leaves it open; the driver decides, durably, which of them make the batch, and ends
them. All of it hangs on a name (the option `transactionalId`), whose transactional ids and groups are

    <name>-driver            fences earlier drivers; decisions are made in its transactions
    <name>-driver-<i>        a group: the decision, in chunks. offset: the batch; metadata: JSON
                             {"of": the stream's id, "chunks": n, "parts": [[task, attempt, producer id, epoch, rows, digest], ...]}
    <name>-task-<n>-<a>      the transaction of attempt a of task n, and a group: offset the batch, metadata "<producer id>:<epoch>",
                             noted inside of the transaction, so it is there if and only if the rows are

The steps use the protocol `Broker`, so that tests can run them over a model of a broker, with a crash at every step.
"""

import asyncio
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from horolog.client.values.errors import KafkaError
from horolog.client.values.types import Committed
from horolog.protocol.errors import ErrorCode

PARTS_IN_CHUNK = 50
"""A part takes up to 65 characters, and metadata of offsets 4096 by default (offset.metadata.max.bytes)."""
ENDS_AT_ONCE = 32
OPEN, COMMITTED = "Ongoing", frozenset({"PrepareCommit", "CompleteCommit"})
FENCED = frozenset(
    {
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
    }
)


class WriteFailed(Exception):
    """A write cannot go on, and why."""


class Owner(NamedTuple):
    """The producer that holds a transactional id."""

    producer_id: int
    epoch: int


class State(NamedTuple):
    """A transactional id at its coordinator."""

    name: str
    owner: Owner


class Part(NamedTuple):
    """The rows of one task, in the transaction of one of its attempts."""

    task: int
    attempt: int
    owner: Owner
    rows: int
    digest: int

    def transactional_id(self, name: str) -> str:
        return task_id(name, self.task, self.attempt)

    def holds_what(self, other: "Part") -> bool:
        return (self.rows, self.digest) == (other.rows, other.digest)


@dataclass(frozen=True, slots=True)
class Decision:
    """Which transactions make a batch; `of` is the stream that it belongs to, empty for a data frame."""

    batch: int
    of: str
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Standing:
    """What a claim found: the newest batch that was decided, and how its transactions ended."""

    batch: int = -1
    of: str = ""
    there: tuple[Part, ...] = ()
    lost: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True)
class Claim:
    """A driver's right to decide, until another one claims the name."""

    name: str
    owner: Owner
    standing: Standing = field(default_factory=Standing)


class Broker(Protocol):
    """The requests to the target."""

    async def take(self, transactional_id: str, owner: Owner | None = None) -> Owner:
        """InitProducerId: fence the earlier owner and abort its open transaction; with `owner` only if that is still the owner."""
        ...

    async def note(self, transactional_id: str, owner: Owner, group: str, noted: Committed) -> None:
        """Make an offset of a group part of the transaction."""
        ...

    async def end(self, transactional_id: str, owner: Owner, *, commit: bool) -> None: ...

    async def noted(self, group: str) -> Committed | None:
        """The offset, once no transaction on it is open."""
        ...

    async def states(self, transactional_ids: Sequence[str]) -> Mapping[str, State] | None:
        """The states of the ids that are known; None if the broker is too old to tell."""
        ...

    async def open_ids(self) -> Collection[str]:
        """The transactional ids that have an open transaction, as far as the broker can tell."""
        ...


def driver_id(name: str) -> str:
    return f"{name}-driver"


def task_id(name: str, task: int, attempt: int) -> str:
    return f"{name}-task-{task}-{attempt}"


def _chunk_group(name: str, number: int) -> str:
    return f"{driver_id(name)}-{number}"


# -- decisions, as they are noted


def chunks_of(decision: Decision) -> list[Committed]:
    """The decision as offsets with metadata; pure, like everything up to `claim`."""
    parts = [[each.task, each.attempt, *each.owner, each.rows, each.digest] for each in decision.parts]
    pieces = [parts[start : start + PARTS_IN_CHUNK] for start in range(0, len(parts), PARTS_IN_CHUNK)] or [[]]
    return [
        Committed(
            decision.batch,
            json.dumps({"of": decision.of, "chunks": len(pieces), "parts": piece}, separators=(",", ":")),
        )
        for piece in pieces
    ]


def decision_of(name: str, chunks: Sequence[Committed | None]) -> Decision:
    """The decision from all of its chunks."""
    parts: list[Part] = []
    of = ""
    for number, chunk in enumerate(chunks):
        try:
            assert chunk is not None
            said = json.loads(chunk.metadata)
            of = said["of"]
            parts += [
                Part(task, attempt, Owner(*owner), rows, digest)
                for task, attempt, *owner, rows, digest in said["parts"]
            ]
        except (AssertionError, ValueError, KeyError, TypeError) as error:
            text = None if chunk is None else chunk.metadata
            raise WriteFailed(f"the note of group {_chunk_group(name, number)} cannot be read: {text!r}") from error
    assert chunks[0] is not None
    return Decision(chunks[0].offset, of, tuple(parts))


def count_of_chunks(name: str, chunk: Committed) -> int:
    try:
        return int(json.loads(chunk.metadata)["chunks"])
    except (ValueError, KeyError, TypeError) as error:
        raise WriteFailed(f"the note of group {_chunk_group(name, 0)} cannot be read: {chunk.metadata!r}") from error


def is_to_be_written(claim: Claim, batch: int, of: str, task: int) -> bool:
    """Whether a task has to write its rows, or has written them in an earlier run; raises if the numbers contradict each other."""
    standing = claim.standing
    if standing.batch >= 0 and standing.of != of:
        owner = f"the stream {standing.of}" if standing.of else "writes of data frames"
        raise WriteFailed(
            f"the transactionalId {claim.name} belongs to {owner}, whose batch {standing.batch} is noted on the target;"
            " use another transactionalId"
        )
    if batch != standing.batch:
        return batch > standing.batch
    return bool(standing.lost) and task not in {part.task for part in standing.there}


def completed(claim: Claim, batch: int, parts: Iterable[Part]) -> tuple[Part, ...]:
    """All parts of a batch. If it was decided before, the rows of parts that timed out have to be the same as then."""
    written = tuple(sorted(parts))
    if batch != claim.standing.batch:
        return written
    lost = {part.task: part for part in claim.standing.lost}
    again = {part.task: part for part in written}
    wrong = [task for task in sorted(lost.keys() | again.keys()) if not _same(lost.get(task), again.get(task))]
    if wrong:
        tasks = ", ".join(str(task) for task in wrong[:5])
        rows = sum(part.rows for part in lost.values())
        raise WriteFailed(
            f"batch {batch} of {claim.name} was decided before, but {len(lost)} of its transactions with {rows} rows timed out"
            f" since; the rows of task {tasks} are different now, so they are not written;"
            f" tasks {', '.join(str(task) for task in sorted(lost))} of that run are missing in the topic"
        )
    return tuple(sorted((*claim.standing.there, *written)))


def _same(one: Part | None, other: Part | None) -> bool:
    return one is not None and other is not None and one.holds_what(other)


# -- the driver's steps


@contextmanager
def suppress_fenced() -> Iterator[None]:
    """Ignore that the transaction has ended, or has another owner: then there is nothing to do."""
    try:
        yield
    except KafkaError as error:
        if error.code not in FENCED:
            raise


async def claim(broker: Broker, name: str) -> Claim:
    """Take the name over from an earlier driver, and complete what that driver had decided."""
    owner = await broker.take(driver_id(name))
    decision = await _read(broker, name)
    standing = Standing() if decision is None else await _settle(broker, name, decision)
    await abort_open(broker, name)
    return Claim(name, owner, standing)


async def commit(broker: Broker, claimed: Claim, batch: int, of: str, written: Sequence[Part]) -> None:
    """Decide that these parts make the batch, and end their transactions; WriteFailed comes before the decision, or names the lost ones."""
    name = claimed.name
    parts = completed(claimed, batch, written)
    try:
        for number, chunk in enumerate(chunks_of(Decision(batch, of, parts))):
            await broker.note(driver_id(name), claimed.owner, _chunk_group(name, number), chunk)
        await abort_open(broker, name, [part.transactional_id(name) for part in written])
        await check_open(broker, name, written)
        await broker.end(driver_id(name), claimed.owner, commit=True)
    except KafkaError as error:
        if error.code in FENCED:
            raise WriteFailed(f"another driver has taken over {name}; it will write batch {batch}") from error
        raise
    lost = await commit_parts(broker, name, written)
    if lost:
        tasks = ", ".join(str(part.task) for part in lost)
        raise WriteFailed(
            f"batch {batch} of {name}: the transactions of tasks {tasks} timed out, or were taken over, while they were"
            " committed; the same batch again writes their rows, and only those"
        )


async def give_up(broker: Broker, claimed: Claim, written: Sequence[Part]) -> None:
    """Abort what a failed batch has written, unless it is decided, or another driver has taken the name over and completes it."""
    name = claimed.name
    try:
        with suppress_fenced():
            await broker.end(driver_id(name), claimed.owner, commit=False)  # a decision that was begun
        await broker.take(driver_id(name), claimed.owner)
    except KafkaError as error:
        if error.code in FENCED:
            return
        raise
    decision = await _read(broker, name)
    if decision is not None:
        await _settle(broker, name, decision)
    decided = set() if decision is None else {(part.task, part.attempt, part.owner) for part in decision.parts}
    await abort_parts(broker, name, [part for part in written if (part.task, part.attempt, part.owner) not in decided])
    await abort_open(broker, name)


async def _read(broker: Broker, name: str) -> Decision | None:
    """The newest decision, which no other driver can change any more."""
    first = await broker.noted(_chunk_group(name, 0))
    if first is None:
        return None
    rest = range(1, count_of_chunks(name, first))
    more = await asyncio.gather(*(broker.noted(_chunk_group(name, number)) for number in rest))
    return decision_of(name, [first, *more])


async def _settle(broker: Broker, name: str, decision: Decision) -> Standing:
    """Commit the transactions that were decided and have not ended."""
    ids = [part.transactional_id(name) for part in decision.parts]
    states = await broker.states(ids) if ids else {}
    known = {} if states is None else states
    ended = {part for part in decision.parts if _is_committed(part, known.get(part.transactional_id(name)))}
    fenced = await commit_parts(broker, name, [part for part in decision.parts if part not in ended])
    lost = []
    for part in fenced:
        transactional_id = part.transactional_id(name)
        await broker.take(transactional_id)  # its present owner is in no decision, and reading would wait for its note
        noted = await broker.noted(transactional_id)
        if noted is None and states is not None and transactional_id not in states:
            raise WriteFailed(
                f"the target no longer knows how batch {decision.batch} of {name} ended: it keeps that for"
                " offsets.retention.minutes and transactional.id.expiration.ms; use another transactionalId"
            )
        if noted != note_of(decision.batch, part.owner):
            lost.append(part)
    there = tuple(part for part in decision.parts if part not in lost)
    return Standing(decision.batch, decision.of, there, tuple(lost))


def _is_committed(part: Part, state: State | None) -> bool:
    return state is not None and state.name in COMMITTED and state.owner == part.owner


# -- the transactions of tasks


def note_of(batch: int, owner: Owner) -> Committed:
    """What a task notes inside of its transaction."""
    return Committed(batch, f"{owner.producer_id}:{owner.epoch}")


async def check_open(broker: Broker, name: str, parts: Sequence[Part]) -> None:
    """Whether all transactions can still be committed, as far as the broker can tell."""
    states = await broker.states([part.transactional_id(name) for part in parts]) if parts else None
    if states is None:
        return
    for part in parts:
        state = states.get(part.transactional_id(name))
        if state is None or state != (OPEN, part.owner):
            raise WriteFailed(
                f"the transaction of task {part.task} is no longer open: it timed out (kafka.transaction.timeout.ms"
                " has to be longer than a batch takes), or another driver uses the same transactionalId"
            )


async def commit_parts(broker: Broker, name: str, parts: Sequence[Part]) -> list[Part]:
    """Commit these transactions; returns those that have another owner, or have ended."""
    return await _end_parts(broker, name, parts, commit=True)


async def abort_parts(broker: Broker, name: str, parts: Sequence[Part]) -> None:
    """Abort these transactions; one that has ended, or has another owner, needs nothing."""
    await _end_parts(broker, name, parts, commit=False)


async def _end_parts(broker: Broker, name: str, parts: Sequence[Part], *, commit: bool) -> list[Part]:
    room = asyncio.Semaphore(ENDS_AT_ONCE)

    async def is_fenced(part: Part) -> bool:
        async with room:
            try:
                await broker.end(part.transactional_id(name), part.owner, commit=commit)
            except KafkaError as error:
                if error.code in FENCED:
                    return True
                raise
        return False

    found = await asyncio.gather(*(is_fenced(part) for part in parts))
    return [part for part, fenced in zip(parts, found, strict=True) if fenced]


async def abort_open(broker: Broker, name: str, but: Collection[str] = ()) -> None:
    """Abort what killed and superfluous attempts left open: readers of committed records wait behind an open transaction."""
    ours = re.compile(rf"{re.escape(task_id(name, 0, 0).removesuffix('0-0'))}[0-9]+-[0-9]+")
    strays = [each for each in await broker.open_ids() if ours.fullmatch(each) and each not in but]
    await asyncio.gather(*(broker.take(each) for each in strays))
