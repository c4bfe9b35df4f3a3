"""What every client writes and must read back: keys, values, headers, and times of its own that jump ahead and step back."""

import time
from typing import NamedTuple

BASE_MS = time.time_ns() // 1_000_000 - 3_600_000
"""An hour ago: older ones would fall to the default retention."""
COUNT = 200
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


class Sample(NamedTuple):
    """One record as a client sends and receives it."""

    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]


def sample(number: int) -> Sample:
    """Times jump ahead by a minute every 50 records and step back by 7 ms at every third."""
    time = BASE_MS + number + number // 50 * 60_000 - (7 if number % 3 == 0 else 0)
    key = None if number % 7 == 0 else b"key-%d" % (number % 10)
    value = None if number % 11 == 10 and key is not None else b"value %d " % number * 3
    return Sample(time, key, value, (("number", b"%d" % number), ("empty", b"")))


SAMPLES = [sample(number) for number in range(COUNT)]

TARGETS = [
    BASE_MS - 1000,
    *(SAMPLES[at].timestamp for at in (0, 49, 50, 120, 199)),
    SAMPLES[100].timestamp - 20_000,
    SAMPLES[120].timestamp + 1,
]
BEYOND_MS = BASE_MS + 86_400_000  # later than every sample


def first_at_or_after(target: int) -> tuple[int, int]:
    """(offset, time) of the first sample at or after a target."""
    return next((number, one.timestamp) for number, one in enumerate(SAMPLES) if one.timestamp >= target)
