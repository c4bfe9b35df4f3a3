"""Merges small objects of a WAL into one, marks their numbers as gone, and removes them, in this order.

The merged object holds what readers may still need of the numbers. The mark is made before the first removal: a fencer that finds a
number free learns from it that the number was in use.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from horolog.broker.bucket.mark import WalMark, decode
from horolog.broker.bucket.names import key
from horolog.broker.bucket.parallel import in_parallel
from horolog.broker.bucket.store_access import StoreAccess
from horolog.broker.bucket.wal_object import Identity, NewRun, encode
from horolog.broker.bucket.wal_writer import WalWriter

DELETED_AT_ONCE = 2


async def merge(
    store: StoreAccess, writer: WalWriter, mark: WalMark | None, upto: int, runs: Iterable[NewRun], nonce: bytes
) -> WalMark:
    """Replace the numbers from the newest mark up to `upto`, which are safe, by one object of these runs; returns the new mark."""
    wal = writer.wal
    before = WalMark(wal, -1, 0, (), nonce) if mark is None else mark
    if not before.upto < upto <= writer.safe_end:
        raise ValueError(f"{writer!r}: numbers {before.upto} up to {upto} cannot be merged")
    merged = encode(Identity(wal, before.upto, upto, nonce, is_merged=True), runs)
    await store.create(wal.merged(nonce), merged)
    new = replace(before, number=before.number + 1, upto=upto, merged=(*before.merged, nonce), nonce=nonce)
    other = await store.create(key(wal.marks, new.number), new.encode())
    if other is not None:
        return decode(other)  # whose removal is another broker's
    gone = [key(wal.folder, number) for number in range(before.upto, upto)]
    await in_parallel([partial(store.delete, one) for one in gone], DELETED_AT_ONCE)
    return new
