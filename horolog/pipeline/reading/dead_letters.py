"""Writes the records of a task that cannot be read to a topic: once for each range of offsets, however often the range is read.

A letter is the record as it came: bytes of key and value, headers, time. Further headers are those of Kafka Connect:

    __connect.errors.topic, .partition, .offset     where it was read
    __connect.errors.stage                          KEY_CONVERTER or VALUE_CONVERTER
    __connect.errors.exception.class.name           DecodingError
    __connect.errors.exception.message              the reason

All letters of a range are one transaction with a note in it, an offset of the group `horolog-dead-letters-<digest>`; the digest stands for
the range. A task that runs again, or another read of the same range, finds the note and writes nothing. A task that is killed
leaves nothing that readers of committed records see, and a later task for the same range fences an earlier one.
"""

import asyncio
from hashlib import sha256

import numpy as np
import pyarrow as pa

from horolog.client.values.errors import KafkaError
from horolog.client.values.types import Committed, TopicPartition
from horolog.client.wire.client import Client
from horolog.pipeline.base.positions import OffsetRange
from horolog.pipeline.base.varints import Array
from horolog.pipeline.options.options import ReadOptions, WriteOptions
from horolog.pipeline.options.reaching import client_of
from horolog.pipeline.reading.offline import Piece
from horolog.pipeline.typed.decoding import Letters
from horolog.pipeline.writing.exactly_once import WriteFailed
from horolog.pipeline.writing.outgoing import Outgoing, by_partition
from horolog.pipeline.writing.sending import Sending
from horolog.pipeline.writing.transacting import Cluster, OpenTransaction
from horolog.protocol.records.record import Header

PREFIX = "horolog-dead-letters-"
_ERRORS = b"__connect.errors."
_MICROSECONDS = 1000
_BATCH_BYTES = 256 << 10
_DELIVERY_MS = 120_000


def post_of(options: ReadOptions, wanted: OffsetRange, topic_id: str | None) -> "RangePost":
    topic = _topic_of(options)
    return RangePost(options, topic, name_of(topic, wanted, topic_id))


def post_of_piece(options: ReadOptions, piece: Piece) -> "RangePost":
    """Of a range of a segment file, which is the same wherever the file is copied to."""
    topic = _topic_of(options)
    wanted = OffsetRange(piece.partition, piece.first_offset, piece.end_offset)
    return RangePost(options, topic, name_of(topic, wanted, f"file from byte {piece.start} to {piece.end}"))


def _topic_of(options: ReadOptions) -> str:
    assert options.decoding is not None
    assert options.decoding.dead_letters is not None
    return options.decoding.dead_letters


def name_of(topic: str, wanted: OffsetRange, source: str | None) -> str:
    """The name that identifies the letters of a range."""
    said = "\n".join(
        map(str, (topic, wanted.partition.topic, source, wanted.partition.partition, wanted.start, wanted.end))
    )
    return f"{PREFIX}{sha256(said.encode()).hexdigest()[:24]}"


class RangePost:
    """Takes the letters of one range. It does not contact the broker before the first one."""

    def __init__(self, options: ReadOptions, topic: str, name: str) -> None:
        self._options = options
        self._topic = topic
        self._name = name
        self._runner: asyncio.Runner | None = None
        self._open: _Open | None = None

    def send(self, letters: Letters) -> None:
        if self._runner is None:
            self._runner = asyncio.Runner()
            self._open = self._runner.run(self._opened())
        assert self._open is not None
        try:
            self._runner.run(self._open.send(letters))
        except KafkaError as error:
            raise WriteFailed(f"dead.letter.topic {self._topic}: {error}") from error

    async def _opened(self) -> "_Open":
        opened = _Open(self._options, self._topic, self._name)
        await opened.begin()
        return opened

    def close(self) -> None:
        """Make what was written visible."""
        self._end(commit=True)

    def give_up(self) -> None:
        self._end(commit=False)

    def _end(self, *, commit: bool) -> None:
        if self._runner is None:
            return
        runner, self._runner = self._runner, None
        try:
            if self._open is not None:
                runner.run(self._open.end(commit=commit))
        finally:
            runner.close()


class _Open:
    """The transaction of a range's letters."""

    def __init__(self, options: ReadOptions, topic: str, name: str) -> None:
        assert options.bootstrap is not None
        self._client: Client = client_of(options.bootstrap, options)
        self._topic = topic
        self._place = TopicPartition(topic, 0)
        self._name = name
        timeout_ms = options.transaction_timeout_ms
        self._transaction = OpenTransaction(self._client, name, timeout_ms)
        self._cluster = Cluster(self._client, self._place, timeout_ms)
        self._sending = Sending(self._client, _writing(options, topic), self._transaction)
        self._is_written = False
        """Whether the letters of this range were written before."""

    async def begin(self) -> None:
        """Fence other tasks for the same range first: then the note says finally whether the letters were written."""
        try:
            await self._client.topic(self._topic, create=True)
            await self._sending.begin()
            self._is_written = await self._cluster.noted(self._name) is not None
        except BaseException as error:
            await self._client.close()
            if isinstance(error, KafkaError):
                raise WriteFailed(f"dead.letter.topic {self._topic}: {error}") from error
            raise

    async def send(self, letters: Letters) -> None:
        if self._is_written:
            return
        partitions = await self._client.topic(self._topic, create=True)
        records = outgoing(letters)
        chosen: Array = np.full(records.size, -1, np.int64)  # by their keys
        for partition, some in by_partition(self._topic, records, chosen, partitions, self._client.random).items():
            refused = await self._sending.send(partition, some)
            if refused:
                raise WriteFailed(f"dead.letter.topic {self._topic}: {refused[0].code.name}: {refused[0].reason}")

    async def end(self, *, commit: bool) -> None:
        try:
            if self._is_written:
                return
            if commit:
                await self._transaction.note(self._place, Committed(1, ""))
                await self._transaction.commit()
            else:
                await self._transaction.abort()
        except KafkaError as error:
            if commit:
                raise WriteFailed(f"dead.letter.topic {self._topic}: {error}") from error
        finally:
            await self._client.close()


def _writing(options: ReadOptions, topic: str) -> WriteOptions:
    return WriteOptions(
        str(options.bootstrap),
        topic,
        None,
        "none",
        _BATCH_BYTES,
        options.request_timeout_ms,
        _DELIVERY_MS,
        options.client_id,
        options.reach_ms,
        options.reach_option,
        options.security,
    )


def outgoing(letters: Letters) -> Outgoing:
    """The original records, with the reasons in further headers."""
    rows = letters.rows
    times = np.array(rows.column("timestamp").view(pa.int64()), np.int64) // _MICROSECONDS
    given = rows.column("headers").to_pylist()
    places = (rows.column(name).to_pylist() for name in ("topic", "partition", "offset"))
    headers = [
        (*_own(own), *_said(place, fault))
        for own, place, fault in zip(given, zip(*places, strict=True), letters.faults, strict=True)
    ]
    return Outgoing(rows.column("key"), rows.column("value"), times, headers)


def _own(headers: list[dict[str, object]] | None) -> list[Header]:
    return [(str(one["key"]).encode(), one["value"]) for one in headers or ()]  # type: ignore[misc]


def _said(place: tuple[object, ...], fault: tuple[str, str]) -> list[Header]:
    part, why = fault
    said = {
        **dict(zip(("topic", "partition", "offset"), map(str, place), strict=True)),
        "stage": f"{part.upper()}_CONVERTER",
        "exception.class.name": "DecodingError",
        "exception.message": why,
    }
    return [(_ERRORS + name.encode(), text.encode(errors="replace")) for name, text in said.items()]
