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
    """Without a key, records of a topic go to one partition until its batch is closed, then to the next: larger batches."""

    def __init__(self, random: Callable[[], float]) -> None:
        self._random = random
        self._places: dict[str, int] = {}  # per topic, the index into its list of partitions
        self._begun: set[str] = set()  # topics with a record at their present place

    def without_key(self, topic: str, partitions: Sequence[int], has_open_batch: Callable[[int], bool]) -> int:
        """One of `partitions`, the numbers of the topic's partitions in ascending order."""
        place = self._places.get(topic)
        if place is None:
            place = self._places[topic] = int(self._random() * len(partitions))
        chosen = partitions[place % len(partitions)]
        if topic not in self._begun:
            self._begun.add(topic)
        elif not has_open_batch(chosen):
            self._places[topic] = place + 1
            chosen = partitions[(place + 1) % len(partitions)]
        return chosen
