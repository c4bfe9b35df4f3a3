"""The partitions of a prefix with the segments that their newest manifests name, for programs that read it without being a broker."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, TypeVar

from horolog.broker.bucket import manifest, manifest_pages
from horolog.broker.bucket.bucket_segment import BucketSegment
from horolog.broker.bucket.bucket_state import BucketState
from horolog.broker.bucket.manifest import Manifest
from horolog.broker.bucket.names import key, manifests
from horolog.broker.bucket.sealed_lines import FormatError
from horolog.broker.on_record.cluster_file import Place, StoredTopic
from horolog.broker.prefix.prefix_reader import PrefixReader


class StoredPartition(NamedTuple):
    """The part of a partition's log that lies in segments in the bucket."""

    topic: str
    topic_id: bytes
    partition: int
    start_offset: int
    segments: tuple[BucketSegment, ...] = ()
    """In order; those that end before the start are left out."""


Wanted = Callable[[str, int], bool]
Decoded = TypeVar("Decoded")


def stored_partitions(reader: PrefixReader, state: BucketState, is_wanted: Wanted) -> list[StoredPartition]:
    """All partitions, by topic and index; nothing is read for those that are not wanted. Raises StoreError and FormatError."""
    found = ((topic, index) for _, topic in sorted(state.topics.items()) for index in range(topic.partition_count))

    def stored(one: tuple[StoredTopic, int]) -> StoredPartition:
        topic, index = one
        return _stored(reader, topic, index) if is_wanted(topic.name, index) else _empty(topic, index)

    return reader.each(stored, found)


def _empty(topic: StoredTopic, index: int) -> StoredPartition:
    return StoredPartition(topic.name, topic.id, index, 0)


def _stored(reader: PrefixReader, topic: StoredTopic, index: int) -> StoredPartition:
    """Read it again if its leader has removed a page meanwhile: only what the newest manifest names has to be there."""
    place = topic.id, index
    found = newest_manifest(reader, place)
    while found is not None:
        segments = segments_of(reader, found)
        if segments is not None:
            kept = tuple(one for one in segments if one.next_offset > found.start_offset)
            return StoredPartition(topic.name, topic.id, index, found.start_offset, kept)
        newer = newest_manifest(reader, place)
        if newer == found:
            raise FormatError(f"{found.key} names a page that is missing")
        found = newer
    return _empty(topic, index)


def newest_manifest(reader: PrefixReader, place: Place) -> Manifest | None:
    """None if there is none. Raises FormatError."""
    folder = manifests(*place)
    while (number := max(reader.numbers(folder), default=None)) is not None:
        data = reader.get(key(folder, number))
        if data is not None:  # else a newer one has replaced it
            return _named(key(folder, number), partial(manifest.decode, data))
    return None


def segments_of(reader: PrefixReader, found: Manifest) -> list[BucketSegment] | None:
    """The segments of a manifest and its pages; None if a page is missing. Raises FormatError."""
    segments: list[BucketSegment] = []
    for page in found.pages:
        name = page.name.page_key(found.folder)
        data = reader.get(name)
        if data is None:
            return None
        segments += _named(name, partial(manifest_pages.check, page, data))
    return [*segments, *found.segments]


def _named(name: str, decode: Callable[[], Decoded]) -> Decoded:
    try:
        return decode()
    except FormatError as error:
        raise FormatError(f"{name}: {error}") from None
