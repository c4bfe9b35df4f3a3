"""Finds objects that nothing names, and removes them: those of uploads that were given up, of brokers that died, and of deleted topics.

The leader of a partition sweeps its folder: only what the newest manifest, one of its own epoch, does not name, and no upload of a later
leader. The first broker of the cluster sweeps the rest: WALs that have ended and that no lineage names, and topics that are gone. Of such a
WAL its fences stay, and a mark says that all other numbers are gone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from itertools import compress
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
NUMBERS_AT_ONCE = 1_000
"""Of a WAL that is removed: what one request lists."""
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


async def remove_all(store: StoreAccess, keys: Sequence[str]) -> Sequence[str]:
    """Returns those that are gone: the store may refuse some for now."""
    gone = await in_parallel([partial(store.delete, one) for one in keys], AT_ONCE)
    return list(compress(keys, gone))


async def sweep_topics(
    store: StoreAccess, gone: Callable[[Collection[bytes]], Collection[bytes]], before_ms: int
) -> Sequence[str]:
    """Remove the manifests, then the segments, of topics that are gone; `gone` says which ones of the ids that were found are."""
    removed: list[str] = []
    for folder in (MANIFESTS, DATA):
        found = {topic_id for name in await store.folders(folder) if (topic_id := _topic_of(name)) is not None}
        for topic_id in sorted(gone(found)):
            there = await store.list(f"{folder}/{topic_id.hex()}")
            going = [one.key for one in there if one.last_modified_ms < before_ms]
            removed += await remove_all(store, going)
    return removed


def _topic_of(name: str) -> bytes | None:
    """The topic id that a folder is named for; None if it is none of ours."""
    try:
        return bytes.fromhex(name) if len(name) == 32 else None
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
        found |= {wal for name in await store.folders(folder) if (wal := Wal.of(name)) is not None}
    for wal in sorted(spent(found)):
        try:
            await _remove_wal(store, wal, new_nonce)
        except FormatError as error:
            log.error("%s is not removed, because its mark cannot be read: %s", wal.folder, error)


async def _remove_wal(store: StoreAccess, wal: Wal, new_nonce: Callable[[], bytes]) -> None:
    """Remove everything of a WAL but its fences and the newest mark, some numbers at a time: there may be those of a day.

    A mark that covers these numbers is made before any of them goes, so that the next broker goes on where one has ended in between.
    What the store refuses to delete is left to `RefusedDeletes`.
    """
    while True:
        listed = [one for one in await store.list(wal.folder, NUMBERS_AT_ONCE) if one.key not in store.deletes]
        are_data = await in_parallel([partial(_is_data, store, one) for one in listed], AT_ONCE)
        numbers = [one.key for one, is_data in zip(listed, are_data, strict=True) if is_data]
        merged = [one.key for one in await store.list(wal.merged_folder) if one.key not in store.deletes]
        if not (numbers or merged) or not await _mark_gone(store, wal, numbers, new_nonce()):
            return
        await remove_all(store, [*numbers, *merged])


async def _mark_gone(store: StoreAccess, wal: Wal, numbers: Sequence[str], nonce: bytes) -> bool:
    """Have a mark that covers these numbers and names no merged object; False if another broker makes one meanwhile."""
    newest = await newest_mark(store, wal) or WalMark(wal, -1, 0, (), nonce)
    upto = max([newest.upto, *(number + 1 for one in numbers if (number := number_of(one)) is not None)])
    if newest.number < 0 or (upto, ()) != (newest.upto, newest.merged):
        newest = WalMark(wal, newest.number + 1, upto, (), nonce)
        if await store.create(key(wal.marks, newest.number), newest.encode()) is not None:
            return False
    marks = [one.key for one in await store.list(wal.marks)]
    await remove_all(store, [one for one in marks if (number_of(one) or 0) < newest.number])
    return True


async def _is_data(store: StoreAccess, one: Stored) -> bool:
    if number_of(one.key) is None:
        return False
    if one.size_bytes > FENCE_BYTES:
        return True
    data = await store.read(one.key)
    return data is not None and wal_object.is_object(data)
