"""Merges small objects of a WAL into one, marks their numbers as gone, and removes them and the mark before, in this order.

The merged object holds what readers may still need of the numbers. The mark is made before the first removal: a fencer that finds a
number free learns from it that the number was in use.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from horolog.broker.bucket.mark import WalMark, decode
from horolog.broker.bucket.names import Wal, key
from horolog.broker.bucket.parallel import in_parallel
from horolog.broker.bucket.store_access import StoreAccess
from horolog.broker.bucket.wal_object import Identity, NewRun, encode
from horolog.broker.bucket.wal_writer import WalWriter

DELETED_AT_ONCE = 2


class Merge(NamedTuple):
    """The next mark: it replaces the numbers from the newest one up to `upto`, and some objects that were merged before."""

    upto: int
    runs: Sequence[NewRun]
    """Those that a leader may still read, also of merged objects that go."""
    first: int
    """No run has a number below it."""
    kept: Sequence[bytes]
    """The nonces of merged objects that stay."""


class MarkedMerge(NamedTuple):
    """A merge whose mark is made: the keys that it has left to remove."""

    mark: WalMark
    gone: UnneededObjects


class UnneededObjects(NamedTuple):
    """Objects that the newest mark does not need: numbers of a WAL, and others."""

    wal: Wal
    numbers: range = range(0)
    others: Sequence[str] = ()

    def keys(self) -> list[str]:
        return [*(key(self.wal.folder, number) for number in self.numbers), *self.others]


async def merge(store: StoreAccess, writer: WalWriter, mark: WalMark | None, wanted: Merge, nonce: bytes) -> WalMark:
    """Replace safe numbers, and merged objects, by one object of those runs, or by none if there are none; returns the new mark."""
    new, gone = await marked(store, writer, mark, wanted, nonce)
    await remove(store, gone.keys(), DELETED_AT_ONCE)
    return new


async def marked(
    store: StoreAccess, writer: WalWriter, mark: WalMark | None, wanted: Merge, nonce: bytes
) -> MarkedMerge:
    """The same without the removals, for which readers need not wait."""
    wal = writer.wal
    before = WalMark(wal, -1, 0, (), nonce) if mark is None else mark
    if not before.upto <= wanted.upto <= writer.safe_end:
        raise ValueError(f"{writer!r}: numbers {before.upto} up to {wanted.upto} cannot be merged")
    merged = (*wanted.kept, nonce) if wanted.runs else tuple(wanted.kept)
    if wanted.runs:
        identity = Identity(wal, wanted.first, wanted.upto, nonce, is_merged=True)
        await store.create(wal.merged(nonce), encode(identity, wanted.runs))
    new = replace(before, number=before.number + 1, upto=wanted.upto, merged=merged, nonce=nonce)
    other = await store.create(key(wal.marks, new.number), new.encode())
    if other is not None:
        return MarkedMerge(decode(other), UnneededObjects(wal))  # whose removal is another broker's
    others = [wal.merged(one) for one in before.merged if one not in merged]
    if before.number >= 0:
        others.append(key(wal.marks, before.number))
    return MarkedMerge(new, UnneededObjects(wal, range(before.upto, wanted.upto), others))


async def remove(store: StoreAccess, gone: Sequence[str], at_once: int) -> None:
    await in_parallel([partial(store.delete, one) for one in gone], at_once)
