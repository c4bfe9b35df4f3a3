"""Finds objects that nothing names, and removes them: those of uploads that were given up, of brokers that died, and of deleted topics.

The leader of a partition sweeps its folder: only what the newest manifest, one of its own epoch, does not name, and no upload of a later
leader. The first broker of the cluster sweeps the rest: WALs that have ended and that no lineage names, and topics that are gone. Of such a
WAL its fences stay, and a mark says that all other numbers are gone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import NamedTuple

from horolog.broker.bucket import wal_object
from horolog.broker.bucket.mark import WalMark
from horolog.broker.bucket.names import DATA, MANIFESTS, MERGED, WALS, SegmentName, Wal, key, number_of
from horolog.broker.bucket.parallel import in_parallel
from horolog.broker.bucket.sealed_lines import FormatError
from horolog.broker.bucket.store_access import StoreAccess
from horolog.broker.bucket.wal_fencing import newest_mark
from horolog.stores.object_store import Stored

log = logging.getLogger(__name__)

AT_ONCE = 2
"""Producers wait for the same store."""
FENCE_BYTES = 1_024
"""Larger objects of a WAL are no fences."""


class Named(NamedTuple):
    """What stays in the folder of a partition."""

    keys: Collection[str] = ()
    unread: Sequence[range] = ()
    """The offsets of pages that cannot be read: any object of a segment that begins there may be named by them."""

    def and_more(self, keys: Collection[str], unread: Sequence[range]) -> Named:
        return Named({*self.keys, *keys}, (*self.unread, *unread))

    def keeps(self, key: str, name: SegmentName) -> bool:
        return key in self.keys or any(name.base_offset in offsets for offsets in self.unread)


def left_over(objects: Iterable[Stored], named: Named, epoch: int, before_ms: int) -> list[str]:
    """The keys of a partition's objects that nothing names, and that no later leader than the one of this epoch may be about to name."""
    return [
        one.key
        for one in objects
        if one.last_modified_ms < before_ms
        and (name := SegmentName.of_key(one.key)) is not None
        and name.epoch <= epoch
        and not named.keeps(one.key, name)
    ]


async def remove_all(store: StoreAccess, keys: Sequence[str]) -> None:
    await in_parallel([partial(store.delete, one) for one in keys], AT_ONCE)


async def sweep_topics(
    store: StoreAccess, gone: Callable[[Collection[bytes]], Collection[bytes]], before_ms: int
) -> Sequence[str]:
    """Remove the manifests, then the segments, of topics that are gone; `gone` says which ones of the ids that were found are."""
    removed: list[str] = []
    for folder in (MANIFESTS, DATA):
        found: dict[bytes, list[str]] = {}
        for one in await store.list(folder):
            topic_id = _topic_of(one.key)
            if topic_id is not None and one.last_modified_ms < before_ms:
                found.setdefault(topic_id, []).append(one.key)
        going = [name for topic_id in gone(found.keys()) for name in found[topic_id]]
        await remove_all(store, going)
        removed += going
    return removed


def _topic_of(name: str) -> bytes | None:
    """The topic id in the key of a manifest or a segment; None if it is none of ours."""
    shown = name.split("/")[1]
    try:
        return bytes.fromhex(shown) if len(shown) == 32 else None
    except ValueError:
        return None


async def sweep_wals(
    store: StoreAccess, spent: Callable[[Collection[Wal]], Collection[Wal]], new_nonce: Callable[[], bytes]
) -> None:
    """Remove the WALs that no leader reads any more; `spent` says which ones of those that were found are.

    One whose mark cannot be read stays.
    """
    found: set[Wal] = set()
    for folder in (WALS, MERGED):
        found |= {wal for name in await store.folders(folder) if (wal := _wal_of(name)) is not None}
    for wal in sorted(spent(found)):
        try:
            await _remove_wal(store, wal, new_nonce())
        except FormatError as error:
            log.error("%s stays, because its mark cannot be read: %s", wal.folder, error)


def _wal_of(name: str) -> Wal | None:
    try:
        return Wal.parse(name)
    except ValueError:
        return None


async def _remove_wal(store: StoreAccess, wal: Wal, nonce: bytes) -> None:
    """Mark a WAL up to its end, then remove everything but its fences and the mark."""
    numbers = [one.key for one in await store.list(wal.folder) if await _is_data(store, one)]
    merged = [one.key for one in await store.list(wal.merged_folder)]
    if not numbers and not merged:
        return
    before = await newest_mark(store, wal) or WalMark(wal, -1, 0, (), nonce)
    upto = max([before.upto, *(number + 1 for one in numbers if (number := number_of(one)) is not None)])
    new = WalMark(wal, before.number + 1, upto, (), nonce)
    if await store.create(key(wal.marks, new.number), new.encode()) is None:
        marks = [one.key for one in await store.list(wal.marks) if (number_of(one.key) or 0) < new.number]
        await remove_all(store, [*numbers, *merged, *marks])


async def _is_data(store: StoreAccess, one: Stored) -> bool:
    if number_of(one.key) is None:
        return False
    if one.size_bytes > FENCE_BYTES:
        return True
    data = await store.read(one.key)
    return data is not None and wal_object.is_object(data)
