"""The local copies of segments that lie in the bucket: they stay as long as there is room beside the blocks that were brought here.

The ones that were uploaded first go first.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from horolog.broker.bucket.bucket_segment import BucketSegment
from horolog.broker.bucket.shipped_partition import ShippedPartition
from horolog.broker.log.storage import StorageFault

log = logging.getLogger(__name__)


class _Copy(NamedTuple):
    partition: ShippedPartition
    segment: BucketSegment


class LocalSegments:
    """See the module's docstring. `look` is called now and then."""

    def __init__(self, room_bytes: Callable[[], int], now_ms: Callable[[], int]) -> None:
        """`room_bytes` is how much of the cache the blocks leave."""
        self._room_bytes = room_bytes
        self._now_ms = now_ms
        self._copies: OrderedDict[str, _Copy] = OrderedDict()
        """By the keys of the logs in the bucket."""
        self._keys: dict[ShippedPartition, set[str]] = {}
        self.kept_bytes = 0

    def __repr__(self) -> str:
        return f"<LocalSegments: {len(self._copies)}, {self.kept_bytes} bytes>"

    def add(self, partition: ShippedPartition, segment: BucketSegment) -> None:
        """A manifest names a segment that lies here as well."""
        self._copies[segment.log_key] = _Copy(partition, segment)
        self._keys.setdefault(partition, set()).add(segment.log_key)
        self.kept_bytes += segment.contents.size_bytes

    def drop(self, partition: ShippedPartition) -> None:
        """Its local log goes."""
        for key in self._keys.pop(partition, ()):
            self.kept_bytes -= self._copies.pop(key).segment.contents.size_bytes

    def look(self) -> None:
        while self._copies and self.kept_bytes > self._room_bytes():
            key, (partition, segment) = self._copies.popitem(last=False)
            self._keys[partition].remove(key)
            self.kept_bytes -= segment.contents.size_bytes
            self._move(partition, segment)

    def _move(self, partition: ShippedPartition, segment: BucketSegment) -> None:
        """Have readers of a segment use the bucket."""
        assert partition.front is not None
        try:
            partition.front.take(partition, segment, self._now_ms())
        except StorageFault as fault:  # the disk fails: what lies here is removed at the next start
            log.error("%s: the local copy of a segment could not be given up: %s", partition, fault)
