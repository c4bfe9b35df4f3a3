"""Copies a range of one partition from cluster A to cluster B: what a task of the job `mirror` does.

A transaction on B holds records and, as the offset of a group, how far A has been copied: both are there, or neither. The group is
`horolog-mirror-<cluster id of A>`, its partitions are named as the topic's, an offset is the next one of A to be copied, and its
metadata says where copying began, and of which topic, where A has ids:

    from=<offset on A> topic=<topic id on A>

The transactional id belongs to the partition, so a later task fences an earlier one. Only then does it read how far
the copy has come, which no other task can change any more.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from horolog.client.admin.admin_groups import GroupAdmin
from horolog.client.producing.accumulator import size_of
from horolog.client.producing.producer import Producer
from horolog.client.values.errors import KafkaError
from horolog.client.values.types import Committed, ConsumerRecord, TopicPartition
from horolog.client.wire.client import Client
from horolog.client.wire.decode import Chunk
from horolog.pipeline.options.brokers import Where, at
from horolog.protocol.errors import DecodeError, ErrorCode
from horolog.protocol.records.compression import CODEC_MASK, CODEC_NAMES, Codec
from horolog.protocol.records.head import heads_in

ISOLATION = "read_committed"
CLIENT_ID = "horolog-mirror"
FETCH_BYTES = 4 << 20
LOOK_BYTES = 64 << 10
TRANSACTION_BYTES = 64 << 20
TRANSACTION_SECONDS = 20.0
TRANSACTION_TIMEOUT_MS = 120_000
"""Several times what a transaction takes: after that B aborts what a dead task left open, and its readers continue."""
_FRUITLESS_FETCHES = 120
"""This many fetches in a row may return nothing of what should be there: about a minute."""
_RECORDS_AT_ONCE = 5000
_BEGUN, _TOPIC = "from=", "topic="


class MirrorFailed(Exception):
    """Copying cannot go on, and why."""


@dataclass(frozen=True, slots=True)
class Link:
    """From where to where, and the group on B that holds how far."""

    source: Where
    target: Where
    group: str

    def transactional_id(self, place: TopicPartition) -> str:
        return f"{self.group}-{place}"


class Progress(NamedTuple):
    """Of one partition: the next offset of A to be copied, and the one with which copying began."""

    offset: int
    begun: int
    topic_id: str | None = None
    """Of the topic on A; None where it has none, and in notes of older releases."""

    def committed(self) -> Committed:
        topic = "" if self.topic_id is None else f" {_TOPIC}{self.topic_id}"
        return Committed(self.offset, f"{_BEGUN}{self.begun}{topic}")

    @classmethod
    def of(cls, committed: Committed) -> "Progress":
        """An offset that was set by hand does not say where copying began; 0 is right or too early."""
        begun, _, topic = committed.metadata.partition(" ")
        digits = begun.removeprefix(_BEGUN)
        number = int(digits) if digits.isascii() and digits.isdigit() else 0
        return cls(committed.offset, number, topic.removeprefix(_TOPIC) if topic.startswith(_TOPIC) else None)


class CopyPiece(NamedTuple):
    """What one task copies."""

    place: TopicPartition
    start: int
    end: int


class Copied(NamedTuple):
    """What one task has copied."""

    records: int
    size_bytes: int
    last_ms: int  # -1: none had a time


def rounds(wanted: "dict[TopicPartition, tuple[int, int]]", most: int) -> "list[list[CopyPiece]]":
    """Ranges cut into pieces of at most `most` offsets, a round having the next piece of every partition; pure.

    All partitions go on side by side, so that every core has one; within each, the next piece waits for the one before.
    """
    found: list[list[CopyPiece]] = []
    left = {place: reach for place, reach in sorted(wanted.items()) if reach[0] < reach[1]}
    while left:
        pieces = [CopyPiece(place, start, min(end, start + most)) for place, (start, end) in left.items()]
        found.append(pieces)
        left = {place: (end, left[place][1]) for place, _, end in pieces if end < left[place][1]}
    return found


# -- reading A


async def visible(
    client: Client, place: TopicPartition, start: int, end: int, fetch_bytes: int = FETCH_BYTES
) -> AsyncGenerator[tuple[list[ConsumerRecord], int], None]:
    """The committed records of a range in order, some at a time, each with the offset behind them; the last one is `end`.

    While records are looked at, the next are on their way.
    """
    position, fruitless = start, 0
    coming = asyncio.create_task(client.fetch_raw(place, position, fetch_bytes, ISOLATION)) if start < end else None
    try:
        while coming is not None:
            chunk = Chunk(place, await coming, position, committed_only=True)
            fruitless = 0 if chunk.end_position > position else fruitless + 1
            if fruitless >= _FRUITLESS_FETCHES:
                raise MirrorFailed(f"{place}: no records were received for the offsets from {position} up to {end}")
            position, coming = chunk.end_position, None
            if position < end:
                coming = asyncio.create_task(client.fetch_raw(place, position, fetch_bytes, ISOLATION))
            while not chunk.is_empty:
                records = chunk.take(_RECORDS_AT_ONCE)
                if records and records[-1].offset >= end:
                    records = [record for record in records if record.offset < end]
                yield records, min(chunk.position, end)
    finally:
        if coming is not None:
            coming.cancel()
            await asyncio.gather(coming, return_exceptions=True)


async def codec_at(client: Client, place: TopicPartition, offset: int) -> str:
    """How the batch at an offset is compressed: the copy takes the same room then."""
    names = {codec: name for name, codec in CODEC_NAMES.items()}
    fetched = await client.fetch_raw(place, offset, LOOK_BYTES, ISOLATION, max_wait_ms=0)
    try:
        entry = next(heads_in(fetched.records), None)
    except DecodeError as error:
        raise MirrorFailed(f"{place} at offset {offset}: {error}") from error
    return names[Codec(entry.attributes & CODEC_MASK)] if entry is not None else names[Codec.NONE]


# -- writing B


@asynccontextmanager
async def fenced(
    target: Client, link: Link, place: TopicPartition, compression: str | None = None
) -> AsyncIterator[tuple[Producer, Progress | None]]:
    """A producer that is from now on the only one for the partition, and how far the copy has come, which is now final."""
    async with only_producer(target, link.transactional_id(place), link.group, place, compression) as (producer, have):
        yield producer, None if have is None else Progress.of(have)


@asynccontextmanager
async def only_producer(
    target: Client, transactional_id: str, group: str, place: TopicPartition, compression: str | None = None
) -> AsyncIterator[tuple[Producer, Committed | None]]:
    """A producer that fences the id's earlier owner, and the offset of the group, which no other producer can change then."""
    producer = Producer(
        target,
        transactional_id=transactional_id,
        transaction_timeout_ms=TRANSACTION_TIMEOUT_MS,
        compression=compression,
    )
    async with producer:
        async with producer.transaction():  # an empty one: it fences, and ends what a dead task left open
            have = (await GroupAdmin(target).group_offsets(group, [place], stable=True)).get(place)
        yield producer, have


async def note_progress(producer: Producer, link: Link, place: TopicPartition, progress: Progress) -> None:
    """Set how far the copy has come, without copying anything."""
    async with producer.transaction():
        await producer.send_offsets(link.group, {place: progress.committed()})


def copy(link: Link, piece: CopyPiece) -> Copied:
    return asyncio.run(copy_piece(link, piece))


async def copy_piece(link: Link, piece: CopyPiece) -> Copied:
    """Copy the rest of a piece: the part that a killed or repeated task had copied is not copied again."""
    place, start, end = piece
    async with (
        Client(**at(link.source), client_id=CLIENT_ID) as source,
        Client(**at(link.target), client_id=CLIENT_ID) as target,
    ):
        compression = await codec_at(source, place, start)
        async with fenced(target, link, place, compression) as (producer, have):
            if have is None or have.offset < start:
                raise MirrorFailed(f"{place}: offsets before {start} are not copied yet: another mirror is running")
            async with aclosing(visible(source, place, have.offset, end)) as chunks:
                return await _send_all(producer, link, piece, have, chunks)


async def _send_all(
    producer: Producer,
    link: Link,
    piece: CopyPiece,
    have: Progress,
    chunks: AsyncGenerator[tuple[list[ConsumerRecord], int], None],
) -> Copied:
    """A transaction after the other, up to the end of the piece."""
    position, copied = have.offset, Copied(0, 0, -1)
    while position < piece.end:
        async with producer.transaction():
            position, copied = await _send_some(producer, piece.place, chunks, position, copied)
            progress = have._replace(offset=position)
            await producer.send_offsets(link.group, {piece.place: progress.committed()})
    return copied


async def _send_some(
    producer: Producer,
    place: TopicPartition,
    chunks: AsyncGenerator[tuple[list[ConsumerRecord], int], None],
    position: int,
    copied: Copied,
) -> tuple[int, Copied]:
    """Send as much as one transaction is to hold; the offset behind it."""
    began, most = time.monotonic(), copied.size_bytes + TRANSACTION_BYTES
    records, size_bytes, last_ms = copied
    sent: list[asyncio.Future[Any]] = []
    try:
        async for chunk, following in chunks:
            for each in chunk:
                size_bytes += size_of(each.key, each.value, each.headers)
                sent.append(
                    await producer.send(
                        place.topic, each.value, each.key, each.headers, each.timestamp_ms, place.partition
                    )
                )
            if chunk:
                last_ms = chunk[-1].timestamp_ms
            records += len(chunk)
            position = following
            if size_bytes >= most or time.monotonic() - began >= TRANSACTION_SECONDS:
                break
        await producer.flush()
    finally:
        failures = failures_of(sent)
    if failures:
        raise MirrorFailed(f"{place}: {reason_of(failures[0])}") from failures[0]
    return position, Copied(records, size_bytes, last_ms)


def failures_of(sent: Sequence["asyncio.Future[Any]"]) -> list[BaseException]:
    """Why records were not written; looks at every outcome, so that asyncio does not warn about one that was never retrieved."""
    done = (future for future in sent if future.done() and not future.cancelled())
    return [error for future in done if (error := future.exception()) is not None]


def reason_of(error: BaseException) -> str:
    if isinstance(error, KafkaError):
        hint = " (a bound of the topic on B refuses its time)" if error.code == ErrorCode.INVALID_TIMESTAMP else ""
        return f"{error.code.name}: {error.message}{hint}"
    return f"{type(error).__name__}: {error}"
