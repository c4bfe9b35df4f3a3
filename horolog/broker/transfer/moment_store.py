"""A prefix as it was at a moment, which is only read: the objects that the store had then, by the store's clock.

Brokers with `horolog.store.history.ms` keep what they have merged, expired or deleted for that time. What they keep of manifests may be a
minute older than the moment, and merging leaves out what a newer manifest covers. So marks count only if they are older still; the numbers
behind them are there.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

from horolog.broker.bucket.bucket_state import BucketState
from horolog.broker.bucket.mark import decode
from horolog.broker.bucket.names import MARKS, Wal, key, number_of
from horolog.stores.faults import StoreError
from horolog.stores.object_store import Bytes, Created, ObjectStore, Outcome, Stored, as_folder, folders_in

MARKS_BEFORE_MS = 120_000
"""So much older than the moment a mark is that counts."""


class MomentStore:
    """The prefix of `store` at `at_ms`. Its objects are listed once. Methods raise StoreError."""

    def __init__(self, store: ObjectStore, at_ms: int) -> None:
        self._store = store
        self._at_ms = at_ms
        self._all = {one.key: one for one in store.list()}
        self._keys = sorted(name for name, one in self._all.items() if one.last_modified_ms <= self._latest_ms(name))

    def __repr__(self) -> str:
        return f"<MomentStore of {len(self._keys)} objects at {self._at_ms}>"

    def _latest_ms(self, name: str) -> int:
        return self._at_ms - MARKS_BEFORE_MS if name.startswith(f"{MARKS}/") else self._at_ms

    def _found(self, name: str) -> Stored:
        found = self._all.get(name)
        if found is None or found.last_modified_ms > self._latest_ms(name):
            raise FileNotFoundError(name)
        return found

    def get(self, key: str) -> bytes:
        return self._store.get(self._found(key).key)

    def get_range(self, key: str, start: int, end: int) -> Bytes:
        return self._store.get_range(self._found(key).key, start, end)

    def stat(self, key: str) -> Stored:
        return self._found(key)

    def list(self, prefix: str = "") -> Iterator[Stored]:
        folder = as_folder(prefix)
        for at in range(bisect_left(self._keys, folder), len(self._keys)):
            if not self._keys[at].startswith(folder):
                return
            yield self._all[self._keys[at]]

    def folders(self, prefix: str) -> Iterator[str]:
        return folders_in(prefix, self.list(prefix))

    def create(self, key: str, data: bytes) -> Created:  # noqa: ARG002
        return Created(Outcome.UNKNOWN, f"{key}: a moment is only read", is_refused=True)

    def delete(self, key: str) -> None:
        raise StoreError(f"{key}: a moment is only read")

    # -- how far it reaches

    def merged_since(self, state: BucketState) -> Sequence[Wal]:
        """The WALs that partitions needed at the moment, and of which numbers have been removed since that marks of then do not cover."""
        return [wal for wal in sorted(state.written_wals | state.read_wals) if self._is_merged_since(wal)]

    def _is_merged_since(self, wal: Wal) -> bool:
        shown = max(_numbers(one.key for one in self.list(wal.marks)), default=None)
        newest = max(_numbers(name for name in self._all if name.startswith(f"{wal.marks}/")), default=None)
        if newest is None or newest == shown:
            return False
        start = 0 if shown is None else decode(self._store.get(key(wal.marks, shown))).upto
        upto = decode(self._store.get(key(wal.marks, newest))).upto
        return upto > start and key(wal.folder, start) not in self._all


def _numbers(names: Iterable[str]) -> Sequence[int]:
    return [number for name in names if (number := number_of(name)) is not None]
