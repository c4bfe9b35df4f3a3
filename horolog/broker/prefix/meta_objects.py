"""Reads `.meta` objects for programs that are no broker: many at a time, and the last ones stay in memory; of all others the seals stay."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable

from horolog.broker.bucket import segment_meta
from horolog.broker.bucket.bucket_segment import BucketSegment
from horolog.broker.bucket.sealed_lines import FormatError
from horolog.broker.bucket.segment_meta import SegmentMeta
from horolog.broker.log.integrity import Seal
from horolog.broker.log.storage import FileMissing, StorageFault
from horolog.broker.on_record.cluster_file import Place
from horolog.broker.prefix.prefix_reader import PrefixReader
from horolog.broker.prefix.segment_check import belongs

MOST_KEPT = 256
"""About 32 MiB for segments of 32 MiB."""


class MetaObjects:
    """See the module's docstring. Methods raise StoreError, FileMissing for an object that is gone, and StorageFault for a damaged one."""

    def __init__(self, reader: PrefixReader, seen: Callable[[str, int], None]) -> None:
        """`seen` is called with the key and the size of each object that was read."""
        self._reader = reader
        self._seen = seen
        self._kept: OrderedDict[str, SegmentMeta] = OrderedDict()
        self._seals: dict[str, Seal] = {}

    def __repr__(self) -> str:
        return f"<MetaObjects: {len(self._seals)} have been read>"

    def seal_of(self, segment: BucketSegment) -> Seal | None:
        """None if the object has not been read."""
        return self._seals.get(segment.meta_key)

    def bring(self, segments: Iterable[tuple[Place, BucketSegment]]) -> None:
        """Read those that have not been read yet."""
        missing = [one for one in segments if one[1].meta_key not in self._seals]
        for meta, (_, segment) in zip(self._reader.each(lambda one: self._read(*one), missing), missing, strict=True):
            self._keep(segment, meta)

    def get(self, place: Place, segment: BucketSegment) -> SegmentMeta:
        kept = self._kept.get(segment.meta_key)
        if kept is None:
            kept = self._read(place, segment)
            self._keep(segment, kept)
        return kept

    def _read(self, place: Place, segment: BucketSegment) -> SegmentMeta:
        name = segment.meta_key
        data = self._reader.get(name)
        if data is None:
            raise FileMissing(f"read {name}: the object is gone", path=name)
        self._seen(name, len(data))
        try:
            meta = segment_meta.decode(data)
        except FormatError as error:
            raise StorageFault(f"read {name}: {error}", path=name) from None
        if not belongs(meta, place, segment):
            raise StorageFault(f"read {name}: it belongs to another segment", path=name)
        return meta

    def _keep(self, segment: BucketSegment, meta: SegmentMeta) -> None:
        self._seals[segment.meta_key] = meta.seal
        self._kept[segment.meta_key] = meta
        if len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)
