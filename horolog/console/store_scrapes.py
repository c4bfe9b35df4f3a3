"""Reads the figures of a broker's object store from its `/metrics`, and adds those of several brokers; pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

PREFIX = "horolog_store_"
REQUESTS, SECONDS, BYTES = "requests_total", "request_seconds_sum", "bytes_total"
GAUGES: Mapping[str, str] = {
    "daily_dollars": "dollars_a_day",
    "unsafe_bytes": "unsafe_bytes",
    "unmerged_bytes": "unmerged_bytes",
    "waiting_segment_bytes": "waiting_bytes",
    "lease_left_seconds": "lease_left_s",
    "journal_lag_seconds": "journal_lag_s",
    "fenced_total": "fenced",
}
"""The families with one value, and the fields of `StoreScrape`."""
FAMILIES = tuple(PREFIX + name for name in (REQUESTS, SECONDS, BYTES, *GAUGES))
UNSETTLED = frozenset({"failed", "unknown"})
"""Outcomes without an answer of the store."""
MONTH_DAYS = 30

Sample = tuple[str, Mapping[str, str], float]


class StoreRequests(NamedTuple):
    """The requests of one kind since the broker's start; `seconds` is the sum of their times."""

    kind: str
    made: float = 0
    failed: float = 0
    seconds: float = 0


class StoreScrape(NamedTuple):
    """The figures of one broker, or of several."""

    requests: tuple[StoreRequests, ...] = ()
    dollars_a_day: float = 0
    unsafe_bytes: float = 0
    unmerged_bytes: float = 0
    waiting_bytes: float = 0
    lease_left_s: float = 0
    """The least."""
    journal_lag_s: float = 0
    """The longest."""
    fenced: float = 0
    written_bytes: float = 0
    read_bytes: float = 0

    @property
    def request_count(self) -> float:
        return sum(one.made for one in self.requests)


def store_of(samples: Iterable[Sample]) -> StoreScrape | None:
    """The figures among these samples; None for a broker without a store."""
    values: dict[str, float] = {}
    kinds: dict[str, StoreRequests] = {}
    for name, labels, value in samples:
        name = name.removeprefix(PREFIX)
        if name in GAUGES:
            values[GAUGES[name]] = value
        elif name == BYTES:
            values[f"{labels['direction']}_bytes"] = value
        elif name in (REQUESTS, SECONDS):
            kind = labels["kind"]
            kinds[kind] = _noted(kinds.get(kind, StoreRequests(kind)), name, labels, value)
    if "lease_left_s" not in values:
        return None
    return StoreScrape(tuple(kinds[kind] for kind in sorted(kinds)), **values)


def _noted(known: StoreRequests, name: str, labels: Mapping[str, str], value: float) -> StoreRequests:
    if name == SECONDS:
        return known._replace(seconds=known.seconds + value)
    failed = value if labels["outcome"] in UNSETTLED else 0
    return known._replace(made=known.made + value, failed=known.failed + failed)


def together(several: Sequence[StoreScrape]) -> StoreScrape | None:
    """The sums over brokers, with the least lease and the longest lag; None if there are none."""
    if not several:
        return None
    kinds: dict[str, StoreRequests] = {}
    for one in (each for scrape in several for each in scrape.requests):
        known = kinds.get(one.kind, StoreRequests(one.kind))
        kinds[one.kind] = StoreRequests(
            one.kind, known.made + one.made, known.failed + one.failed, known.seconds + one.seconds
        )
    sums = StoreScrape((), *(sum(column) for column in zip(*(one[1:] for one in several), strict=True)))
    return sums._replace(
        requests=tuple(kinds[kind] for kind in sorted(kinds)),
        lease_left_s=min(one.lease_left_s for one in several),
        journal_lag_s=max(one.journal_lag_s for one in several),
    )


def month_of(dollars_a_day: Iterable[float | None]) -> float | None:
    """The cost of thirty days like these samples; None if none is known."""
    known = [one for one in dollars_a_day if one is not None]
    return sum(known) / len(known) * MONTH_DAYS if known else None
