"""Merges the safe numbers of this broker's WAL in the background, so that a take-over reads few objects and none of them is tiny.

A few MiB of them are still in memory; the others are read from the store again, since the local log may be compacted by then. Runs that no
leader reads any more are left out: those of deleted topics, and those whose records lie in segments.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple, Self

from horolog.broker.base.answers import Answer, run
from horolog.broker.bucket import wal_object
from horolog.broker.bucket.mark import WalMark
from horolog.broker.bucket.names import key
from horolog.broker.bucket.parallel import in_parallel
from horolog.broker.bucket.sealed_lines import FormatError
from horolog.broker.bucket.store_access import StoreAccess
from horolog.broker.bucket.wal_merging import DELETED_AT_ONCE, Merge, UnneededObjects, marked, remove
from horolog.broker.bucket.wal_object import NewRun
from horolog.broker.bucket.wal_writer import WalWriter

log = logging.getLogger(__name__)

MOST_BYTES = 16 << 20
MOST_NUMBERS = 500
MOST_SECONDS = 60.0
LEAST_NUMBERS = 16
"""Fewer are not worth an object and a mark, however old they are."""
AT_ONCE = 2
"""Producers wait for the same store: what runs in the background leaves room for their requests."""
REST_AT_ONCE = 8
"""A broker that leaves has others waiting."""
SMALL_BYTES, MOST_SMALL = 2 << 20, 8
MOST_GONE = 64
"""So many are removed before it is seen whether there are more."""
REST_REMOVED_S = 2.0
REST_ROUNDS = 3
"""Clients write on while it merges; each round finds fewer numbers than the one before."""


class _Merged(NamedTuple):
    """An object that was merged here: its runs without their bytes, and how many these were."""

    nonce: bytes
    first: int
    runs: Sequence[tuple[NewRun, int]]

    @classmethod
    def of(cls, nonce: bytes, first: int, runs: Iterable[NewRun]) -> Self:
        return cls(nonce, first, [(one._replace(pieces=()), sum(map(len, one.pieces))) for one in runs])

    @property
    def size_bytes(self) -> int:
        return sum(size for _, size in self.runs)


class WalMerger:
    """Of one WAL, from its first number on. `look` is called now and then."""

    def __init__(
        self,
        store: StoreAccess,
        writer: WalWriter,
        is_needed: Callable[[NewRun], bool],
        new_nonce: Callable[[], bytes],
        now: Callable[[], float],
        history_ms: Callable[[], int] = lambda: 0,
    ) -> None:
        """`is_needed` says whether a leader may still read a run of the WAL, `history_ms` how long a restore may read what was merged."""
        self._store = store
        self._writer = writer
        self._is_needed = is_needed
        self._new_nonce = new_nonce
        self._now = now
        self._mark: WalMark | None = None
        self._merged: list[_Merged] = []
        self._merged_bytes = 0
        self._looked_s = now()
        self._since_s: float | None = None
        self._is_merging = False
        self._waiting: list[Callable[[None], None]] = []
        """For the end of the merge that is under way."""
        self._history_ms = history_ms
        self._history: deque[tuple[float, UnneededObjects]] = deque()
        """What merges have left, and when each was made: a restore may read it."""
        self._gone: list[str] = []
        """The keys that are to be removed."""
        self._is_removing = False

    def __repr__(self) -> str:
        return (
            f"<WalMerger of {self._writer.wal}: {self.unmerged_count} numbers and {self.unmerged_bytes} bytes to merge>"
        )

    @property
    def _upto(self) -> int:
        return 0 if self._mark is None else self._mark.upto

    @property
    def unmerged_count(self) -> int:
        return self._writer.safe_end - self._upto

    @property
    def unmerged_bytes(self) -> int:
        return self._writer.safe_bytes - self._merged_bytes

    def look(self) -> None:
        """Merge if there is enough, and remove what was merged."""
        self._leave_history()
        if self._gone and not self._is_removing:
            run(self._remove(DELETED_AT_ONCE))
        if self._is_merging or self._writer.is_fenced:
            return
        if not self.unmerged_count:
            self._look_at_merged()
            return
        if self._since_s is None:
            self._since_s = self._now()
        is_old = self._now() - self._since_s >= MOST_SECONDS and self.unmerged_count >= LEAST_NUMBERS
        if is_old or self.unmerged_count >= MOST_NUMBERS or self.unmerged_bytes >= MOST_BYTES:
            run(self._merge_and_remove())

    async def merge_rest(self) -> None:
        """Merge all numbers, also those that are written meanwhile, and remove them, so that the next leaders list and read few objects.

        This broker serves clients meanwhile. Once they wait for the next leaders, the store has little time for removals: those that take
        too long are left.
        """
        until_s = self._now() + REST_REMOVED_S
        for _ in range(REST_ROUNDS):
            if self._is_merging:
                await Answer(self._waiting.append)
            if self.unmerged_count >= LEAST_NUMBERS and not (self._is_merging or self._writer.is_fenced):
                await self._merge(REST_AT_ONCE)
                if not self._is_removing:
                    await self._remove(REST_AT_ONCE, until_s)

    def _look_at_merged(self) -> None:
        """Without news, remove merged objects that are not needed any more."""
        if self._now() - self._looked_s >= MOST_SECONDS:
            self._looked_s = self._now()
            if not all(map(self._needed_bytes, self._merged)):
                run(self._merge_and_remove())

    async def remove_rest(self) -> None:
        """Remove all that was merged and that no restore may read, while the next leaders read from the same store."""
        await self._remove(DELETED_AT_ONCE)

    async def _merge_and_remove(self) -> None:
        await self._merge(AT_ONCE)
        if not self._is_removing:
            await self._remove(DELETED_AT_ONCE)

    async def _remove(self, at_once: int, until_s: float = float("inf")) -> None:
        self._is_removing = True
        while self._gone and self._now() < until_s:
            gone, self._gone = self._gone[:MOST_GONE], self._gone[MOST_GONE:]
            await remove(self._store, gone, at_once)
        self._is_removing = False

    async def _merge(self, at_once: int) -> None:
        self._is_merging = True
        upto, safe_bytes = self._writer.safe_end, self._writer.safe_bytes
        kept = _without_many_small([one for one in self._merged if 2 * self._needed_bytes(one) > one.size_bytes])
        going = [one for one in self._merged if one not in kept]
        found = await in_parallel([partial(self._runs_of, number) for number in range(self._upto, upto)], at_once)
        runs = [one for several in found for one in several if self._is_needed(one)]
        first = self._upto
        for one in going:
            data = await self._read(self._writer.wal.merged(one.nonce)) if self._needed_bytes(one) else b""
            if data is None:
                kept.append(one)  # which may be read in part by a leader
            else:
                first = min(first, one.first)
                runs += [each for each in _new_runs(data) if self._is_needed(each)]
        nonce = self._new_nonce()
        self._mark, gone = await marked(
            self._store, self._writer, self._mark, Merge(upto, runs, first, [one.nonce for one in kept]), nonce
        )
        self._history.append((self._now(), gone))
        self._leave_history()
        self._writer.forget(upto)
        self._merged = [*kept, _Merged.of(nonce, first, runs)] if runs else kept
        self._merged_bytes, self._since_s, self._is_merging = safe_bytes, None, False
        self._looked_s = self._now()
        waiting, self._waiting = self._waiting, []
        for done in waiting:
            done(None)

    def _leave_history(self) -> None:
        """Let go of what no restore reads any more; the sweep removes the rest once the broker has ended."""
        before_s = self._now() - self._history_ms() / 1000
        while self._history and self._history[0][0] <= before_s:
            self._gone += self._history.popleft()[1].keys()

    def _needed_bytes(self, merged: _Merged) -> int:
        return sum(size for run, size in merged.runs if self._is_needed(run))

    async def _runs_of(self, number: int) -> Iterable[NewRun]:
        """The runs of a number; none if the store has lost or altered it, which is logged."""
        data = self._writer.kept(number)
        if data is None:
            data = await self._read(key(self._writer.wal.folder, number))
        return () if data is None else _new_runs(data)

    async def _read(self, name: str) -> bytes | None:
        """An object whose every byte is right, else None, which is logged."""
        data = await self._store.read(name)
        if data is None:
            self._store.given_up.add(name)
            log.error("%s is lost: the store does not have it, and no mark records its removal", name)
            return None
        try:
            wal_object.decode(data)
        except FormatError as error:
            self._store.given_up.add(name)
            log.error("%s cannot be read, and its batches are lost: %s", name, error)
            return None
        return data


def _without_many_small(merged: list[_Merged]) -> list[_Merged]:
    """Small objects are merged once more when there are many: a take-over reads each of them."""
    large = [one for one in merged if one.size_bytes >= SMALL_BYTES]
    return large if len(merged) - len(large) >= MOST_SMALL else merged


def _new_runs(data: bytes) -> list[NewRun]:
    view = memoryview(data)
    runs = wal_object.decode_end(len(data), data).runs if data else ()
    return [NewRun(*one[:8], [view[one.position : one.end]]) for one in runs]
