"""The journal of brokers that share a store: entry n is the object `meta/log/<n>`, which is created once.

Of two brokers that append at the same time one creates the number; the other reads the entry, takes it up, and decides anew. An append
ends only when its outcome is known: the client's request may time out meanwhile, and the entry may be written after that. There is no
FAILED here.

With every thousandth entry its writer adds a snapshot, from which a broker starts. A snapshot follows from the entries, so it does no
harm if two brokers write one, or none does.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import cast

from horolog.broker.base.answers import run
from horolog.broker.bucket.bucket_state import BucketState
from horolog.broker.bucket.journal_objects import (
    NumberedEntry,
    decode_log_entry,
    decode_snapshot,
    encode_log_entry,
    encode_snapshot,
)
from horolog.broker.bucket.names import LOG, SNAPSHOTS, key, number_of
from horolog.broker.bucket.sealed_lines import FormatError
from horolog.broker.bucket.store_access import StoreAccess
from horolog.broker.cluster.cluster_state import ClusterState, Entry
from horolog.broker.cluster.journal import AppendOutcome, Journal

log = logging.getLogger(__name__)

SNAPSHOT_EVERY = 1_000

Loaded = Callable[[BucketState | None], None]


class StoreJournal(Journal):
    """The entries of all brokers."""

    def __init__(
        self,
        store: StoreAccess,
        new_nonce: Callable[[], bytes],
        now: Callable[[], float] = lambda: 0.0,
        read: Callable[[float], None] = lambda _: None,
    ) -> None:
        """`read` is called once all entries were applied that there were at that moment of `now`, or later."""
        self.read = read
        self._now = now
        self._store = store
        self._new_nonce = new_nonce
        self._newest_number = 0

    def __repr__(self) -> str:
        return f"<StoreJournal in {self._store!r}>"

    @property
    def written_count(self) -> int:
        """The number of the newest entry that is known here: each of them was one write, of some broker."""
        return self._newest_number

    def append(self, entry: Entry, becomes: ClusterState, done: Callable[[AppendOutcome], None]) -> None:
        """`done` gets WRITTEN or TAKEN, as late as that is known."""
        run(self._append(NumberedEntry(becomes.number, entry, self._new_nonce()), becomes, done))

    async def _append(self, new: NumberedEntry, becomes: ClusterState, done: Callable[[AppendOutcome], None]) -> None:
        other = await self._store.create(key(LOG, new.number), encode_log_entry(new))
        if other is not None:
            done(AppendOutcome.TAKEN)
            return
        self._newest_number = max(self._newest_number, new.number)
        done(AppendOutcome.WRITTEN)
        if new.number % SNAPSHOT_EVERY == 0:
            await self._store.create(key(SNAPSHOTS, new.number), encode_snapshot(cast("BucketState", becomes)))

    def follow(self, after: int, done: Callable[[Sequence[Entry]], None]) -> None:
        """Read up to a number that the store does not have; `done` waits as long as the store does not answer."""
        run(self._follow(after, done))

    async def _follow(self, after: int, done: Callable[[Sequence[Entry]], None]) -> None:
        try:
            entries, began = await self._entries_after(after)
        except FormatError as error:
            log.error("the journal in the store cannot be followed any further: %s", error)
            return  # what comes behind it cannot be applied: this broker stands still, and its lease ends
        done(entries)
        self.read(began)

    async def entries_after(self, after: int) -> Sequence[Entry]:
        """For a start: raises FormatError for an entry that cannot be read, or that a later release has written."""
        entries, _ = await self._entries_after(after)
        return entries

    async def _entries_after(self, after: int) -> tuple[Sequence[Entry], float]:
        """Also when the last number was read, which the store did not have."""
        entries: list[Entry] = []
        began = self._now()
        while (data := await self._store.read(name := key(LOG, after + len(entries) + 1))) is not None:
            began = self._now()
            try:
                entries.append(decode_log_entry(data, after + len(entries) + 1).entry)
            except FormatError as error:
                raise FormatError(f"{name} cannot be read: {error}") from None
        self._newest_number = max(self._newest_number, after + len(entries))
        return entries, began

    def load(self, done: Loaded) -> None:
        """Read the newest snapshot that is whole; `done` gets None if there is none. Entries that follow it are for `follow`."""
        run(self._load(done))

    async def _load(self, done: Loaded) -> None:
        numbers = [number_of(one.key) for one in await self._store.list(SNAPSHOTS)]
        for number in sorted((one for one in numbers if one is not None), reverse=True):
            data = await self._store.read(key(SNAPSHOTS, number))
            try:
                found = None if data is None else decode_snapshot(data, number)
            except FormatError as error:
                log.error("snapshot %s in the store cannot be read; trying the one before it: %s", number, error)
                continue
            if found is not None:
                done(found)
                return
        done(None)

    def begin(self, state: ClusterState, *, is_news: bool) -> bool:  # noqa: ARG002 - the entries have it
        """A state that a start has found lies in the store already."""
        return True

    def close(self, state: ClusterState | None) -> None:  # noqa: ARG002 - the entries have it
        """Nothing is sent again. An entry on its way may still be written."""
        self._store.close()

    def check(self, state: ClusterState) -> None:
        """The store keeps what was written: there is nothing on the disk to compare."""
