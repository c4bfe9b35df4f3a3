"""Sends lines of files as records, and remembers the line and reason of each that was not written."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import IO, Any, NamedTuple

from horolog.client.producing.producer import Producer
from horolog.client.values.errors import KafkaError
from horolog.client.values.types import Sent
from horolog.commands.errors import UsageError
from horolog.commands.online.lines import STDIN, LineTooLong, lines_of
from horolog.commands.online.record_text import Line, RecordTextError
from horolog.commands.online.units import UnitInDoubt

LINES_BETWEEN_YIELDS = 500
"""The event loop must turn now and then, so that responses are handled while a large file is read."""
MAX_REFUSALS = 10_000
"""How many refusals are remembered; the rest are only counted."""


class Refusal(NamedTuple):
    source: str
    line: int
    reason: str


class Sending:
    """One run of `produce`."""

    def __init__(
        self,
        producer: Producer,
        topic: str,
        *,
        key: bytes | None = None,
        headers: tuple[tuple[bytes, bytes | None], ...] = (),
        timestamp_ms: int | None = None,
        partition: int | None = None,
        null_empty: bool = False,
        stop_at_error: bool = True,
        settle_doubt: Callable[[UnitInDoubt], Awaitable[bool]] | None = None,
    ) -> None:
        self._producer = producer
        self._topic = topic
        self._key = key
        self._headers = headers
        self._timestamp_ms = timestamp_ms
        self._partition = partition
        self._null_empty = null_empty
        self._stop_at_error = stop_at_error
        self._settle_doubt = settle_doubt
        self._refusals: list[Refusal] = []
        self._began = time.monotonic()
        self.refused = 0
        self.written = 0
        self.written_bytes = 0
        self.stopped_early = False

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    def refusals(self) -> Iterator[Refusal]:
        """In the order of the input; responses come in the order of partitions."""
        return iter(sorted(self._refusals, key=lambda each: (each.source, each.line)))

    @property
    def _must_stop(self) -> bool:
        return self.refused > 0 and self._stop_at_error

    async def file(
        self, path: str, stdin: IO[Any], read: Callable[[bytes], Line], advance: Callable[[int], Any]
    ) -> bool:
        """Send the lines of one file; whether to continue with the next."""
        source = "standard input" if path == STDIN else path
        number = 0
        try:
            async for lines in lines_of(path, stdin):
                for line in lines:
                    if self._must_stop:
                        self.stopped_early = True
                        return False
                    number += 1
                    await self._send(source, number, line, read)
                    advance(len(line) + 1)
                    if number % LINES_BETWEEN_YIELDS == 0:
                        await asyncio.sleep(0)
        except LineTooLong as error:
            self._refuse(source, number + 1, str(error))
            return False
        return True

    async def _send(self, source: str, number: int, text: bytes, read: Callable[[bytes], Line]) -> None:
        try:
            line = await self._read(text, read)
        except (RecordTextError, UsageError) as error:
            self._refuse(source, number, str(error))
            return
        value = None if self._null_empty and not line.value else line.value
        try:
            future = await self._producer.send(
                self._topic,
                value,
                key=self._key if line.key is None else line.key,
                headers=(*self._headers, *line.headers),
                timestamp_ms=self._timestamp_ms if line.timestamp_ms is None else line.timestamp_ms,
                partition=self._partition if line.partition is None else line.partition,
            )
        except (KafkaError, ValueError) as error:
            self._refuse(source, number, str(error))
            return
        future.add_done_callback(lambda done: self._settle(done, source, number, len(text)))

    async def _read(self, text: bytes, read: Callable[[bytes], Line]) -> Line:
        """The record of a line; if the unit of its time is in doubt, read again once that is settled."""
        try:
            return read(text)
        except UnitInDoubt as doubt:
            if self._settle_doubt is None or not await self._settle_doubt(doubt):
                raise
        return read(text)

    def _settle(self, done: "asyncio.Future[Sent]", source: str, number: int, size_bytes: int) -> None:
        error = done.exception() if not done.cancelled() else None
        if done.cancelled():
            self._refuse(source, number, "given up")
        elif error is not None:
            self._refuse(source, number, str(error))
        else:
            self.written += 1
            self.written_bytes += size_bytes

    def _refuse(self, source: str, number: int, reason: str) -> None:
        self.refused += 1
        if len(self._refusals) < MAX_REFUSALS:
            self._refusals.append(Refusal(source, number, reason))
