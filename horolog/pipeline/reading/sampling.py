"""Samples the records after an offset with one small fetch: how many bytes an offset takes, and which times come next.

Sizes are an estimate, because later records may be smaller or larger: good enough to cut ranges for tasks and batches of a stream. It
needs only the right to read, whereas sizes of a broker's folders need the right to describe the cluster.
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from horolog.client.values.errors import KafkaError
from horolog.client.values.types import TopicPartition
from horolog.client.wire.client import Client
from horolog.client.wire.fetch import RawFetch
from horolog.protocol.records.entries import iter_records
from horolog.protocol.records.head import Head, heads_in

SAMPLE_BYTES = 64 << 10
"""Enough for some batches of the usual size; a larger first batch comes whole all the same."""
AT_ONCE = 16


class Sample(NamedTuple):
    """What lies at a position."""

    position: int
    heads: tuple[Head, ...]
    first_time_ms: int | None
    """Of the first record at or after the position; None if it has no time."""

    @property
    def earliest_ms(self) -> int | None:
        """Of the first record and the newest of each batch, so that one record of the future in front does not count for all."""
        times = [self.first_time_ms, *(head.max_timestamp for head in self.heads)]
        return min((time for time in times if time is not None and time >= 0), default=None)

    @property
    def bytes_per_offset(self) -> float:
        """Offsets that compaction has emptied count as those that hold a record."""
        first, last = self.heads[0], self.heads[-1]
        begin = first.base_offset if first.base_offset >= 0 else min(self.position, last.last_offset)
        return sum(head.size_bytes for head in self.heads) / (last.last_offset - begin + 1)

    def end_before(self, time_ms: int) -> int:
        """The offset behind the batches that come before one with this time or a later one; the first batch is one of them."""
        end = self.heads[0].last_offset + 1
        for head in self.heads[1:]:
            if head.max_timestamp >= time_ms:
                break
            end = head.last_offset + 1
        return max(end, self.position + 1)


async def samples(
    client: Client, positions: Mapping[TopicPartition, int], isolation: str
) -> dict[TopicPartition, Sample]:
    """A sample of each position, without those where the fetch returned nothing: reading there will report why."""
    bound = asyncio.Semaphore(AT_ONCE)

    async def take(partition: TopicPartition, position: int) -> Sample | None:
        async with bound:
            try:
                fetched = await client.fetch_raw(partition, position, SAMPLE_BYTES, isolation, max_wait_ms=0)
            except KafkaError:
                return None
        return _sample(fetched, position)

    taken = await asyncio.gather(*(take(*each) for each in positions.items()))
    return {partition: each for partition, each in zip(positions, taken, strict=True) if each is not None}


def _sample(fetched: RawFetch, position: int) -> Sample | None:
    heads = tuple(head for head in heads_in(fetched.records) if head.last_offset >= position)
    if not heads:
        return None
    times: Iterable[int] = (record.timestamp for record in iter_records(fetched.records) if record.offset >= position)
    first = next(iter(times), -1)
    return Sample(position, heads, first if first >= 0 else None)
