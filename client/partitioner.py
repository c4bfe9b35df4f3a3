"""Chooses the partition of a record: Kafka's murmur2 of the key, so that all clients agree; without a key one partition at a time."""

from collections.abc import Callable, Sequence
from functools import lru_cache

_SEED = 0x9747B28C
_FACTOR = 0x5BD1E995
_MASK = 0xFFFF_FFFF
_POSITIVE = 0x7FFF_FFFF
REMEMBERED_KEYS = 4096


def murmur2(data: bytes) -> int:
    """The 32-bit hash of Kafka's own clients, as an unsigned number."""
    length = len(data)
    value = (_SEED ^ length) & _MASK
    whole = length & ~3
    for position in range(0, whole, 4):
        word = int.from_bytes(data[position : position + 4], "little") * _FACTOR & _MASK
        word = (word ^ word >> 24) * _FACTOR & _MASK
        value = value * _FACTOR & _MASK ^ word
    if whole < length:
        value = (value ^ int.from_bytes(data[whole:], "little")) * _FACTOR & _MASK
    value = (value ^ value >> 13) * _FACTOR & _MASK
    return value ^ value >> 15


@lru_cache(maxsize=REMEMBERED_KEYS)
def partition_of_key(key: bytes, partition_count: int) -> int:
    return (murmur2(key) & _POSITIVE) % partition_count


class StickyPartitioner:
    """Without a key, records of a topic stay with one partition until a batch is full: fewer and larger batches."""

    def __init__(self, random: Callable[[], float]) -> None:
        self._random = random
        self._current: dict[str, int] = {}

    def partition(self, topic: str, key: bytes | None, partitions: Sequence[int]) -> int:
        """One of `partitions`, the numbers of the topic's partitions in ascending order."""
        if key is not None:
            return partitions[partition_of_key(key, len(partitions))]
        chosen = self._current.get(topic)
        if chosen is None or chosen not in partitions:
            chosen = self._current[topic] = partitions[int(self._random() * len(partitions)) % len(partitions)]
        return chosen

    def batch_is_full(self, topic: str, partition: int) -> None:
        """The next record without a key goes elsewhere."""
        if self._current.get(topic) == partition:
            del self._current[topic]
