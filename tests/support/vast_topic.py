"""Makes a topic of 100 million records within seconds, through the log's own code; each record's time can be computed.

Two batches are encoded once; each appended batch is one of them with another offset, base time and checksum. Hence a record's time
is that of its batch plus a delta that all batches of its kind share, and two searches find the first offset at a time. A
partition's records span a year, their times often go back, and there are none for thirty days in the middle.
"""

import random
import struct
from bisect import bisect_left
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path

import cramjam
import crc32c

from horolog.broker.log.partition import Partition
from horolog.broker.log.validation import Validated
from horolog.protocol.records.batch import encode_batch
from horolog.protocol.records.compression import Codec
from horolog.protocol.records.head import HEADER_BYTES
from horolog.protocol.records.record import Record
from tests.support.logs import open_logs

RECORDS, PARTITIONS = 100_000_000, 4
PER_BATCH = 10_000
BATCHES = RECORDS // PARTITIONS // PER_BATCH
BUSY_EVERY = 25
"""One batch of so many holds the records of ten seconds: at milliseconds there is something to see."""
MINUTE, DAY = 60_000, 86_400_000
YEAR = 365 * DAY
PAUSE_MS = 30 * DAY
BUSY_MS = 10_000
LATE_MS = 4 * MINUTE
LATE_EVERY = 50
TOGETHER = 4
"""Records of one time: a batch is half as large then when it is compressed."""
SEGMENT_BYTES = 16 << 20
_COVERED_FROM, _BASE_TIME_AT = 21, 27


@dataclass(frozen=True, slots=True)
class Kind:
    """A batch that is appended many times; its record n is `deltas[n]` later than its base."""

    template: bytes
    deltas: list[int]
    highs: list[int] = field(default_factory=list)
    """The largest delta up to and with each record."""

    def at(self, base_offset: int, base_ms: int) -> Validated:
        body = bytearray(self.template)
        struct.pack_into(">q", body, 0, base_offset)
        struct.pack_into(">qq", body, _BASE_TIME_AT, base_ms, base_ms + self.highs[-1])
        struct.pack_into(">I", body, _COVERED_FROM - 4, crc32c.crc32c(memoryview(body)[_COVERED_FROM:]))
        last, largest = base_offset + PER_BATCH - 1, base_ms + self.highs[-1]
        return Validated(
            bytes(body), len(body), base_offset, last, PER_BATCH, largest, last, base_ms + self.deltas[0], -1, (), (), 2
        )


def kind(span_ms: int, chance: random.Random) -> Kind:
    """Records spread over a time, one of fifty late."""
    step = span_ms // PER_BATCH
    late = min(LATE_MS, span_ms // 4)
    deltas = [
        max(0, number // TOGETHER * TOGETHER * step - (chance.randrange(late) if number % LATE_EVERY == 0 else 0))
        for number in range(PER_BATCH)
    ]
    records = [Record(number, delta, 0, b"k%d" % (number % 10), b"x") for number, delta in enumerate(deltas)]
    plain = bytes(encode_batch(records, Codec.NONE))
    body = bytes(cramjam.zstd.compress(plain[HEADER_BYTES:], 19))
    head = bytearray(plain[:HEADER_BYTES])
    struct.pack_into(">i", head, 8, HEADER_BYTES - 12 + len(body))
    struct.pack_into(">h", head, _COVERED_FROM, Codec.ZSTD)
    return Kind(bytes(head) + body, deltas, list(accumulate(deltas, max)))


class VastTopic:
    """The content of the topic, computed without reading it."""

    def __init__(self, until_ms: int, *, batches: int = BATCHES, partitions: int = PARTITIONS) -> None:
        chance = random.Random(7)
        busy = batches // BUSY_EVERY
        length = (YEAR - PAUSE_MS - busy * BUSY_MS) // (batches - busy)
        self.quiet, self.busy = kind(length, chance), kind(BUSY_MS, chance)
        self.partitions = partitions
        self.kinds = [self.busy if number % BUSY_EVERY == BUSY_EVERY - 1 else self.quiet for number in range(batches)]
        self.since_ms = until_ms - YEAR
        self.bases, at = [], self.since_ms
        for number, one in enumerate(self.kinds):
            at += PAUSE_MS if number == batches // 2 else 0
            self.bases.append(at)
            at += BUSY_MS if one is self.busy else length

    @property
    def records(self) -> int:
        return self.partitions * len(self.kinds) * PER_BATCH

    def base(self, partition: int, number: int) -> int:
        """The base time of a batch; partitions are some seconds apart."""
        return self.bases[number] + partition * 7_001

    def offset_at(self, partition: int, time_ms: int) -> int:
        """The first offset at or after a time, or the end."""
        number = bisect_left(
            range(len(self.kinds)), time_ms, key=lambda one: self.base(partition, one) + self.kinds[one].highs[-1]
        )
        if number == len(self.kinds):
            return number * PER_BATCH
        return number * PER_BATCH + bisect_left(self.kinds[number].highs, time_ms - self.base(partition, number))

    def count(self, since_ms: int, until_ms: int) -> int:
        """The number of records by lookups at both ends."""
        return sum(self.offset_at(one, until_ms) - self.offset_at(one, since_ms) for one in range(self.partitions))

    def times_of(self, partition: int, since_ms: int, until_ms: int) -> list[int]:
        """The sorted times of all records of a range, including late ones."""
        first = bisect_left(self.bases, since_ms - YEAR // len(self.bases) * 4 - LATE_MS)
        found = []
        for number in range(first, len(self.bases)):
            base = self.base(partition, number)
            if base >= until_ms:
                break
            found += [base + delta for delta in self.kinds[number].deltas if since_ms <= base + delta < until_ms]
        return sorted(found)

    def write(self, data: Path, name: str) -> None:
        """Write it into the folder of a stopped broker that knows the topic."""
        logs = open_logs(data, {"segment.bytes": str(SEGMENT_BYTES), "retention.ms": "-1"})
        try:
            for index in range(self.partitions):
                self._write(logs.partitions[name, index], index)
        finally:
            logs.close()

    def _write(self, partition: Partition, index: int) -> None:
        for number, one in enumerate(self.kinds):
            base = self.base(index, number)
            partition.append_checked(one.at(number * PER_BATCH, base), base)
            if number % 32 == 31:
                partition.flush()
        partition.flush()
