"""The manifests that were superseded: for a while a restore may go back to each of them, so what they name stays as long.

A manifest was superseded when the next one was made, by the store's clock. Older ones are removed, except the first one of each epoch:
leaders of earlier epochs that live on find its number taken. There may be many manifests, and each differs little from the one before:
a line about a segment is read once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple

from horolog.broker.bucket import bucket_segment, manifest
from horolog.broker.bucket.bucket_segment import BucketSegment
from horolog.broker.bucket.manifest import Manifest, Page
from horolog.broker.bucket.manifest_reader import paged
from horolog.broker.bucket.names import manifests, number_of
from horolog.broker.bucket.parallel import in_parallel
from horolog.broker.bucket.store_access import StoreAccess
from horolog.broker.bucket.unread_pages import unread_offsets
from horolog.broker.on_record.cluster_file import Place
from horolog.stores.object_store import Stored

READ_AT_ONCE = 4


class History(NamedTuple):
    """What superseded manifests of a partition need, and those that may go."""

    named: frozenset[str] = frozenset()
    unread: tuple[range, ...] = ()
    """The offsets of their pages that cannot be read."""
    outdated: tuple[str, ...] = ()


class _Reading:
    """What the manifests that are recent name, as far as they were read."""

    def __init__(self, newest: Manifest) -> None:
        self._newest = newest
        self._lines: set[bytes] = set()
        self._pages: dict[Page, None] = {}

    def add(self, found: Manifest, body: bytes) -> None:
        self._lines |= set(body.splitlines()) - self._lines
        self._pages |= dict.fromkeys(page for page in found.pages if page not in self._newest.pages)

    async def named(self, store: StoreAccess) -> tuple[set[str], list[range]]:
        folder = self._newest.folder
        segments: list[BucketSegment] = [bucket_segment.decode_line(line, folder) for line in self._lines]
        segments += await paged(store, self._newest, list(self._pages))
        names = {key for one in segments for key in (one.log_key, one.meta_key)}
        return names | {page.name.page_key(folder) for page in self._pages}, unread_offsets(segments)


async def history_of(store: StoreAccess, place: Place, newest: Manifest, before_ms: int) -> History:
    """The history of a partition; manifests that were superseded before that time are outdated. Raises FormatError."""
    listed = [one for one in await store.list(manifests(*place)) if number_of(one.key) is not None]
    listed = sorted((one for one in listed if one.key <= newest.key), key=lambda one: one.key)
    recent = [after.last_modified_ms >= before_ms for _, after in pairwise(listed)] + [True]
    reading, epochs = _Reading(newest), []
    for begin in range(0, len(listed), READ_AT_ONCE):
        for is_recent, data in zip(
            recent[begin:], await _read(store, listed[begin : begin + READ_AT_ONCE]), strict=False
        ):
            found, body = (None, b"") if data is None else manifest.decode_head(data)
            epochs.append(None if found is None else found.epoch)
            if is_recent and found is not None:
                reading.add(found, body)
    named, unread = await reading.named(store)
    followed = zip(pairwise(epochs), listed[1:], recent[1:], strict=True)
    outdated = tuple(one.key for (before, epoch), one, is_recent in followed if not is_recent and before == epoch)
    return History(frozenset(named), tuple(unread), outdated)


async def _read(store: StoreAccess, several: Sequence[Stored]) -> Sequence[bytes | None]:
    return await in_parallel([partial(store.read, one.key) for one in several], READ_AT_ONCE)
