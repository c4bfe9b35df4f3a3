"""Counts the requests to a store: by kind and outcome, their seconds, their bytes, and what they cost a day."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sized
from functools import partial
from typing import NamedTuple, TypeVar

from horolog.broker.base.metrics import Metrics
from horolog.broker.base.store_figures import BYTES, REQUESTS, SECONDS
from horolog.stores.faults import StoreError, StoreRefusal
from horolog.stores.object_store import Created, Outcome
from horolog.stores.requests import Deleted, Folders, Got, GotPart, Listing, StoreRequests

Result = TypeVar("Result")

WINDOW_S = 600.0
SAMPLED_EVERY_S = 10.0
DAY_S = 86_400
A_MILLION = 1_000_000


class Prices(NamedTuple):
    """Dollars for a million requests; removals are free."""

    writes: float
    reads: float


class _Sample(NamedTuple):
    """How many requests there were until a moment."""

    at_s: float
    writes: int
    reads: int


class Spending:
    """What requests cost a day, from those of the last ten minutes."""

    def __init__(self, now_s: float) -> None:
        self._samples = deque([_Sample(now_s, 0, 0)])

    def __repr__(self) -> str:
        return f"<Spending of {len(self._samples)} samples>"

    def per_day(self, now_s: float, writes: int, reads: int, prices: Prices) -> float:
        samples = self._samples
        while len(samples) > 1 and samples[1].at_s <= now_s - WINDOW_S:
            samples.popleft()
        first = samples[0]
        if now_s - samples[-1].at_s >= SAMPLED_EVERY_S:
            samples.append(_Sample(now_s, writes, reads))
        spent = (writes - first.writes) * prices.writes + (reads - first.reads) * prices.reads
        return spent / A_MILLION * DAY_S / max(now_s - first.at_s, 1.0)


class MeteredRequests:
    """The requests of a store, counted in `metrics`."""

    def __init__(self, store: StoreRequests, now: Callable[[], float]) -> None:
        self.metrics = Metrics()
        self._store = store
        self._now = now
        self._writes = self._reads = 0
        self._spending = Spending(now())
        self._written = self.metrics.counter(BYTES, "written")
        self._read = self.metrics.counter(BYTES, "read")

    def __repr__(self) -> str:
        return f"<MeteredRequests: {self._writes} writes and {self._reads} reads of {self._store!r}>"

    def dollars_per_day(self, prices: Prices) -> float:
        return self._spending.per_day(self._now(), self._writes, self._reads, prices)

    def create(self, key: str, data: bytes, done: Callable[[Created], None]) -> None:
        self._writes += 1
        self._written.value += len(data)
        self._store.create(key, data, partial(self._ended, "create", self._now(), _of_create, done))

    def get(self, key: str, done: Callable[[Got], None]) -> None:
        self._reads += 1
        self._store.get(key, partial(self._ended, "get", self._now(), self._of_get, done))

    def get_range(self, key: str, start: int, end: int, done: Callable[[GotPart], None]) -> None:
        self._reads += 1
        self._store.get_range(key, start, end, partial(self._ended, "get_range", self._now(), self._of_get, done))

    def list(self, prefix: str, done: Callable[[Listing], None], limit: int | None = None) -> None:
        self._writes += 1  # a list costs what a write does
        self._store.list(prefix, partial(self._ended, "list", self._now(), _of_other, done), limit)

    def folders(self, prefix: str, done: Callable[[Folders], None]) -> None:
        self._writes += 1
        self._store.folders(prefix, partial(self._ended, "list", self._now(), _of_other, done))

    def delete(self, key: str, done: Callable[[Deleted], None]) -> None:
        self._store.delete(key, partial(self._ended, "delete", self._now(), _of_delete, done))

    def _of_get(self, result: GotPart) -> str:
        if isinstance(result, Sized):
            self._read.value += len(result)
        return "missing" if result is None else _of_other(result)

    def _ended(
        self, kind: str, sent_s: float, outcome: Callable[[Result], str], done: Callable[[Result], None], result: Result
    ) -> None:
        self.metrics.counter(REQUESTS, kind, outcome(result)).value += 1
        self.metrics.histogram(SECONDS, kind).observe(max(self._now() - sent_s, 0.0))
        done(result)


def _of_create(created: Created) -> str:
    return "done" if created.outcome is Outcome.MADE else created.outcome.value


def _of_delete(result: Deleted) -> str:
    return "refused" if isinstance(result, StoreRefusal) else _of_other(result)


def _of_other(result: object) -> str:
    return "failed" if isinstance(result, StoreError) else "done"
