"""What a month of a prefix costs if brokers go on as they do now: their requests, and the storage of all that is there.

Objects say when they were made, by the store's clock. Of a write-ahead log that is written, brokers need only the objects of about the last
minute, whose numbers and times give its rate. Other objects count over a day, and so do those that are kept for restores. Reads by consumers
of old data leave nothing behind, so they are not in it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from horolog.broker.bucket.names import MERGED, WALS, number_of
from horolog.stores.object_store import Stored

MONTH_S = 30 * 86_400
DAY_MS = 86_400_000
LEAST_MS = 60_000
"""No rate is taken over less."""
JOURNAL_READS_A_SECOND = 1.5
"""Of each broker, at the default of `horolog.store.lease.ms`."""
_A_MILLION = 1_000_000
_GB = 1_000_000_000


class MonthPrices(NamedTuple):
    """Dollars for a million requests of a kind, and for a month of 10^9 bytes."""

    writes: float = 5.0
    reads: float = 0.4
    storage: float = 0.023


class MonthForecast(NamedTuple):
    """The requests and the bytes of a month, and their dollars."""

    writes: int
    reads: int
    stored_bytes: int
    requests_dollars: float
    storage_dollars: float
    history_dollars: float
    """The part of the storage that is kept for restores."""


def forecast(
    objects: Iterable[Stored], history: Collection[Stored], brokers: int, now_ms: int, prices: MonthPrices
) -> MonthForecast:
    """`history` has those of the objects that are kept for restores."""
    there, kept = list(objects), {one.key for one in history}
    in_use = [one for one in there if one.key not in kept]
    writes = round(MONTH_S * (_wal_writes_a_second(in_use, now_ms) + _other_writes_a_second(there, now_ms)))
    reads = round(MONTH_S * JOURNAL_READS_A_SECOND * brokers)
    stored_bytes = sum(one.size_bytes for one in there)
    history_bytes = sum(one.size_bytes for one in history)
    requests = (writes * prices.writes + reads * prices.reads) / _A_MILLION
    storage = stored_bytes / _GB * prices.storage
    return MonthForecast(writes, reads, stored_bytes, requests, storage, history_bytes / _GB * prices.storage)


def _wal_writes_a_second(objects: Iterable[Stored], now_ms: int) -> float:
    of_wals: dict[str, dict[int, int]] = {}
    for one in objects:
        folder, number = one.key.rpartition("/")[0], number_of(one.key)
        if folder.startswith(f"{WALS}/") and number is not None:
            of_wals.setdefault(folder, {})[number] = one.last_modified_ms
    return sum(_rate_of(numbers, now_ms) for numbers in of_wals.values())


def _rate_of(numbers: Mapping[int, int], now_ms: int) -> float:
    """Creates a second of one write-ahead log: none is left of one that has ended long ago."""
    created = max(numbers) - min(numbers) + 1
    return created * 1000 / max(now_ms - min(numbers.values()), LEAST_MS)


def _other_writes_a_second(objects: Iterable[Stored], now_ms: int) -> float:
    """Segments, manifests and the journal; objects that merge write-ahead logs come with a mark each."""
    others = [one for one in objects if not one.key.startswith(f"{WALS}/")]
    recent = [one for one in others if one.last_modified_ms > now_ms - DAY_MS]
    oldest_ms = min((one.last_modified_ms for one in others), default=now_ms)
    merges = sum(one.key.startswith(f"{MERGED}/") for one in recent)
    return (len(recent) + merges) * 1000 / max(min(now_ms - oldest_ms, DAY_MS), LEAST_MS)
