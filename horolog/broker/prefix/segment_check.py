"""Checks the segments that manifests name: pages, each `.meta`, each log against the sums of its blocks; and objects that none names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from crc32c import crc32c

from horolog.broker.bucket import manifest_pages, segment_meta
from horolog.broker.bucket.bucket_segment import BucketSegment
from horolog.broker.bucket.manifest import Manifest, Page, named_by
from horolog.broker.bucket.names import SegmentName
from horolog.broker.bucket.sealed_lines import FormatError
from horolog.broker.bucket.segment_meta import SegmentMeta
from horolog.broker.log.integrity import BLOCK_BYTES, BlockSums, blocks_in
from horolog.broker.on_record.cluster_file import Place
from horolog.broker.prefix.findings import Finding, damaged, left_over, missing
from horolog.broker.prefix.prefix_reader import PrefixReader

FOLDER = "data"
READ_BLOCKS = 8
"""So many blocks of a log are read with one request."""

_NEEDED = "the newest manifest names it: records that were acknowledged lay there"


class CheckedSegments(NamedTuple):
    """`names` has the keys of all objects that the manifests name."""

    names: frozenset[str]
    findings: tuple[Finding, ...]
    unread: Mapping[str, Sequence[range]] = {}
    """The offsets of pages that cannot be read, by the folder of their partition: they may name any object of a segment that begins there."""

    def may_name(self, key: str) -> bool:
        folder, segment = key.rpartition("/")[0], SegmentName.of_key(key)
        return key in self.names or (
            segment is not None and any(segment.base_offset in one for one in self.unread.get(folder, ()))
        )


def check_segments(reader: PrefixReader, manifests: Iterable[Manifest]) -> CheckedSegments:
    """Check all that the newest manifests of partitions name. Segments before the start of a log have expired, and may be gone."""
    names: set[str] = set()
    findings: list[Finding] = []
    unread: dict[str, list[range]] = {}
    tasks: list[tuple[Place, BucketSegment]] = []
    for one in manifests:
        names |= named_by(one)
        segments = list(one.segments)
        for page in one.pages:
            found = _page(reader, one, page)
            if isinstance(found, Finding):
                findings.append(found)
                unread.setdefault(one.folder, []).append(range(page.name.base_offset, page.next_offset))
            else:
                names |= {name for each in found for name in (each.log_key, each.meta_key)}
                segments += found
        place = one.topic_id, one.partition
        tasks += [(place, each) for each in segments if each.next_offset > one.start_offset]
    for several in reader.each(partial(_segment, reader), tasks):
        findings += several
    return CheckedSegments(frozenset(names), tuple(findings), unread)


def unnamed(listed: Mapping[str, int], may_be_named: Callable[[str], bool]) -> Iterator[Finding]:
    """The objects beside segments that no manifest names."""
    others = {name: size for name, size in listed.items() if name.startswith(f"{FOLDER}/") and not may_be_named(name)}
    reason = "no manifest names them; they are being uploaded, are kept for restores, or a broker ended before it removed them"
    yield from left_over(FOLDER, others, reason)


def _page(reader: PrefixReader, manifest: Manifest, page: Page) -> Sequence[BucketSegment] | Finding:
    name = page.name.page_key(manifest.folder)
    data = reader.get(name)
    if data is None:
        return missing(name, _NEEDED)
    try:
        return manifest_pages.check(page, data)
    except FormatError as error:
        return damaged(name, error)


def _segment(reader: PrefixReader, task: tuple[Place, BucketSegment]) -> list[Finding]:
    place, segment = task
    data = reader.get(segment.meta_key)
    if data is None:
        return [missing(segment.meta_key, _NEEDED)]
    try:
        meta = segment_meta.decode(data)
    except FormatError as error:
        return [damaged(segment.meta_key, error)]
    if not belongs(meta, place, segment):
        return [damaged(segment.meta_key, "it belongs to another segment than the one that the manifest names")]
    return list(_log(partial(reader.get_range, segment.log_key), segment.log_key, meta.seal.sums()))


def belongs(meta: SegmentMeta, place: Place, segment: BucketSegment) -> bool:
    """Whether a `.meta` object is the one of a segment that a manifest names."""
    name = SegmentName.parse(segment.meta_key.rpartition("/")[2].removesuffix(".meta"))
    holds, named = meta.seal.contents, segment.contents
    facts = meta.place, meta.nonce, meta.seal.base_offset, holds.size_bytes, holds.next_offset
    wanted = place, name and name.nonce, segment.base_offset, named.size_bytes, named.next_offset
    return facts == wanted


def _log(read: Callable[[int, int], bytes | None], name: str, sums: BlockSums) -> Iterator[Finding]:
    wrong = []
    for first in range(0, blocks_in(sums.size_bytes), READ_BLOCKS):
        begin = first * BLOCK_BYTES
        data = read(begin, min(begin + READ_BLOCKS * BLOCK_BYTES, sums.size_bytes))
        if data is None:
            yield missing(name, _NEEDED)
            return
        for block in range(first, min(first + READ_BLOCKS, blocks_in(sums.size_bytes))):
            start, end = sums.span_of(block)
            part = memoryview(data)[start - begin : end - begin]
            if len(part) != end - start or crc32c(part) != sums.sum_of(block):
                wrong.append(f"{start} to {end}")
    if wrong:
        yield damaged(name, f"bytes {', '.join(wrong)} are not those that were uploaded")
