"""Reads one partition's records of a time range, from an offset on, until its search lets it end.

A record from the future hides those after it from lookups: for every time up to its own, it is the first. If the byte limit is
reached while times still lie before the range, the range is found by bisection, with a small fetch at each step, as if
times were in order from there on; `passed_over` says what was left out.
"""

import asyncio
from typing import TYPE_CHECKING

from horolog.client.moments.look_ahead import Ended, Search
from horolog.client.moments.sorting import Placed
from horolog.client.values.errors import KafkaError
from horolog.client.values.types import EARLIEST, TopicPartition
from horolog.client.wire.decode import Chunk
from horolog.client.wire.fetch import RawFetch
from horolog.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from horolog.client.moments.moment_source import Source

WAIT_MS = 500
PROBE_BYTES = 16 << 10
PROBE_RECORDS = 50
NEAR_MS = 60_000
"""How far before the range reading continues after a bisection."""
LARGEST_RECORD_BYTES = 128 << 20
"""How far fetches grow for a record that the oldest brokers cut off."""


class Strand:
    """`reached_ms` is the time of the last record read, -1 before the first; `saw_late`: not all were in time order."""

    def __init__(
        self,
        source: "Source",
        partition: TopicPartition,
        start: int,
        end: int,
        times: tuple[int, int],
        search: Search,
        *,
        isolation: str,
        fetch_bytes: int,
    ) -> None:
        self.partition = partition
        self.position = start
        self.end = end
        self.ended: Ended | None = None
        self.reached_ms = -1
        self.saw_late = False
        self.without_time = 0
        self.lost = 0
        self.passed_over: tuple[int, int] | None = None
        self._source = source
        self._since_ms, self._until_ms = times
        self._search = search
        self._isolation = isolation
        self._fetch_bytes = fetch_bytes
        self._largest_ms = -1
        self._chunk: Chunk | None = None
        self._coming: asyncio.Task[RawFetch] | None = None

    def __repr__(self) -> str:
        return f"<Strand of {self.partition} at {self.position}, to {self.end}>"

    def start(self) -> None:
        """Start to fetch from the position on, unless already started."""
        if self._coming is None and self._chunk is None:
            self._coming = asyncio.create_task(self._fetch(self.position, 0))

    async def close(self) -> None:
        if self._coming is not None:
            self._coming.cancel()
            await asyncio.gather(self._coming, return_exceptions=True)
            self._coming = None

    async def read(self, most: int) -> list[Placed]:
        """Of the next `most` records those in the range: perhaps none. Sets `ended`."""
        self.ended = self._search.ended(self.position)
        if self.ended == Ended.BYTES and self.passed_over is None and 0 <= self.reached_ms < self._since_ms:
            await self._pass_over()
            self.ended = self._search.ended(self.position)
        if self.ended is not None:
            await self.close()
            return []
        if self._chunk is None:
            self._chunk = await self._next_chunk()
        records = self._chunk.take(most)
        self.position = max(self.position, self._chunk.position)
        if self._chunk.is_empty:
            self._chunk = None
        found = []
        for record in records:
            if record.offset >= self.end:
                break
            time_ms = record.timestamp_ms
            if time_ms < 0:
                self.without_time += 1
                continue
            self._search.see(time_ms)
            self.reached_ms = time_ms
            late_ms = self._largest_ms - time_ms
            if late_ms < 0:
                self._largest_ms, late_ms = time_ms, 0
            elif late_ms:
                self.saw_late = True
            if self._since_ms <= time_ms < self._until_ms:
                found.append(Placed(record, late_ms))
        return found

    async def _pass_over(self) -> None:
        """Continue where times come near the range, with the full byte limit."""
        await self.close()
        self._chunk = None
        low, high = self.position, self.end
        while high - low > 1:
            middle = (low + high) // 2
            time_ms = await self._time_at(middle)
            low, high = (middle, high) if 0 <= time_ms < self._since_ms - NEAR_MS else (low, middle)
        self.passed_over = (self.position, low)
        self.position = low
        self._search.renew()

    async def _time_at(self, offset: int) -> int:
        """The time of the first record with one, from an offset on; -1 if none is near."""
        raw = await self._source.fetch_raw(self.partition, offset, PROBE_BYTES, self._isolation, max_wait_ms=0)
        chunk = Chunk(self.partition, raw, offset, committed_only=self._isolation == "read_committed")
        return next((each.timestamp_ms for each in chunk.take(PROBE_RECORDS) if each.timestamp_ms >= 0), -1)

    async def _next_chunk(self) -> Chunk:
        """The next chunk, whole; starts the fetch of the one after it."""
        raw = await self._arrived()
        while True:
            chunk = Chunk(self.partition, raw, self.position, committed_only=self._isolation == "read_committed")
            if not chunk.brought_nothing_whole:
                break
            if self._fetch_bytes >= LARGEST_RECORD_BYTES:
                raise KafkaError(
                    ErrorCode.MESSAGE_TOO_LARGE,
                    f"{self.partition} at offset {self.position}: a record is larger than {self._fetch_bytes} bytes",
                )
            self._fetch_bytes *= 2
            raw = await self._fetch(self.position, WAIT_MS)
        self._search.pay(self.position, chunk.size_bytes)
        if self._search.ended(chunk.end_position) is None:
            self._coming = asyncio.create_task(self._fetch(chunk.end_position, 0))
        return chunk

    async def _arrived(self) -> RawFetch:
        """The fetch from the position on; waits if a broker does not show yet what it named as its end."""
        self.start()
        assert self._coming is not None
        coming, self._coming = self._coming, None
        raw = await self._in_reach(coming)
        give_up = self._source.clock.monotonic() + self._source.request_timeout_ms / 1000
        while not raw.records:
            if self._source.clock.monotonic() > give_up:
                raise KafkaError(
                    ErrorCode.REQUEST_TIMED_OUT,
                    f"{self.partition} gives no records from offset {self.position} on, though it ended at {self.end}",
                )
            raw = await self._in_reach(asyncio.create_task(self._fetch(self.position, WAIT_MS)))
        return raw

    async def _in_reach(self, coming: "asyncio.Task[RawFetch]") -> RawFetch:
        """The fetch; from the first remaining offset if its own was deleted meanwhile."""
        try:
            return await coming
        except KafkaError as error:
            if error.code != ErrorCode.OFFSET_OUT_OF_RANGE:
                raise
            found = await self._source.offsets_at(EARLIEST, [self.partition], "read_uncommitted")
            first = found[self.partition] or 0
            if first <= self.position:
                raise
        self.lost += min(first, self.end) - self.position
        self.position = first
        return await self._fetch(first, WAIT_MS)

    async def _fetch(self, offset: int, wait_ms: int) -> RawFetch:
        return await self._source.fetch_raw(
            self.partition, offset, self._fetch_bytes, self._isolation, max_wait_ms=wait_ms
        )
