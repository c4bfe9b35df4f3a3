"""Spreads names over partitions as every Kafka broker does: by the hash that Java gives them."""

from __future__ import annotations

from functools import lru_cache

REMEMBERED = 4096
LONGEST_REMEMBERED = 128
"""Hashes of this many names are cached, for a group's is needed with every commit; longer names are not."""

_SMALLEST = -(1 << 31)


def java_hash(text: str) -> int:
    """Java's String.hashCode, which counts UTF-16 units."""
    value = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


_remembered_hash = lru_cache(REMEMBERED)(java_hash)


def partition_for(name: str, partition_count: int) -> int:
    """The partition of an internal topic that keeps what belongs to a name."""
    value = _remembered_hash(name) if len(name) <= LONGEST_REMEMBERED else java_hash(name)
    return (0 if value == _SMALLEST else abs(value)) % partition_count
