"""Reads a broker's `/metrics` and `/ready`: sums over all series, the state of its workers, and its store; pure."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from horolog.console.store_scrapes import FAMILIES as OF_STORE
from horolog.console.store_scrapes import StoreScrape, store_of

SUMS: Mapping[str, str] = {
    "horolog_topic_records_total": "records",
    "horolog_received_bytes_total": "received_bytes",
    "horolog_sent_bytes_total": "sent_bytes",
    "horolog_requests_total": "requests",
    "horolog_partition_size_bytes": "size_bytes",
    "process_cpu_seconds_total": "cpu_seconds",
    "process_resident_memory_bytes": "memory_bytes",
    "horolog_connections": "connections",
}
"""The families that are summed, and the fields of `Totals`."""
CUT = {"topic": ("records",), "partition": ("size_bytes",)}
"""The sums that lack something if series of this kind are left out."""
STARTED = "process_start_time_seconds"
LEFT_OUT = "horolog_left_out_series"
WORKER_STATE, WORKER_STARTS, WORKER_DOWN = (
    "horolog_worker_info",
    "horolog_worker_starts_total",
    "horolog_worker_down_seconds",
)
SHARE_IN_FLIGHT = "horolog_share_in_flight_records"
INTERNAL = "__"
_SAMPLE = re.compile(r"^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$")
_LABEL = re.compile(r'([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"')
_WANTED = (*SUMS, STARTED, LEFT_OUT, WORKER_STATE, WORKER_STARTS, WORKER_DOWN, SHARE_IN_FLIGHT, *OF_STORE)


class Totals(NamedTuple):
    """Sums of a broker, or of several; None: not known."""

    records: float | None = None
    received_bytes: float | None = None
    sent_bytes: float | None = None
    requests: float | None = None
    size_bytes: float | None = None
    cpu_seconds: float | None = None
    memory_bytes: float | None = None
    connections: float | None = None
    store_requests: float | None = None
    store_dollars: float | None = None
    """A day."""


class Worker(NamedTuple):
    number: int
    state: str
    starts: int
    down_s: float


class Scrape(NamedTuple):
    """One answer of `/metrics`."""

    totals: Totals
    started_s: float | None
    workers: tuple[Worker, ...] = ()
    store: StoreScrape | None = None
    share_in_flight: float | None = None
    """Records that share groups have acquired, or that wait for another delivery."""


class Ready(NamedTuple):
    """One answer of `/ready`: `reasons` keep clients away, `warnings` do not."""

    is_ready: bool
    reasons: tuple[str, ...]
    warnings: tuple[str, ...]


def scrape_of(text: str) -> Scrape:
    """Raises ValueError if the text has none of the families."""
    sums: dict[str, float] = {}
    cut: set[str] = set()
    started: list[float] = []
    in_flight: list[float] = []
    workers: dict[int, Worker] = {}
    of_store: list[tuple[str, dict[str, str], float]] = []
    for name, labels, value in _samples(text):
        if name in SUMS and not labels.get("topic", "").startswith(INTERNAL):
            sums[SUMS[name]] = sums.get(SUMS[name], 0) + value
        elif name == LEFT_OUT and value:
            cut.update(CUT.get(labels["kind"], ()))
        elif name == STARTED:
            started.append(value)
        elif name.startswith("horolog_worker_"):
            _note_worker(workers, name, labels, value)
        elif name == SHARE_IN_FLIGHT:
            in_flight.append(value)
        elif name in OF_STORE:
            of_store.append((name, labels, value))
    if not sums:
        raise ValueError("these are not the metrics of horolog")
    for family, field in SUMS.items():  # nothing was counted yet
        if family.startswith("horolog_"):
            sums.setdefault(field, 0)
    totals = Totals(**{field: value for field, value in sums.items() if field not in cut})
    store = store_of(of_store)
    if store is not None:
        totals = totals._replace(store_requests=store.request_count, store_dollars=store.dollars_a_day)
    of_workers = tuple(workers[number] for number in sorted(workers))
    return Scrape(totals, min(started, default=None), of_workers, store, sum(in_flight) if in_flight else None)


def _note_worker(workers: dict[int, Worker], name: str, labels: Mapping[str, str], value: float) -> None:
    number = int(labels["worker"])
    known = workers.get(number, Worker(number, "", 0, 0.0))
    if name == WORKER_STATE:
        known = known._replace(state=labels["state"])
    elif name == WORKER_STARTS:
        known = known._replace(starts=int(value))
    elif name == WORKER_DOWN:
        known = known._replace(down_s=value)
    workers[number] = known


def _samples(text: str) -> Iterator[tuple[str, dict[str, str], float]]:
    """The samples of the families that are read here."""
    for line in text.splitlines():
        if line.startswith(_WANTED):
            found = _SAMPLE.match(line)
            if found is not None:
                yield found[1], dict(_LABEL.findall(found[2] or "")), float(found[3])


def ready_of(body: bytes) -> Ready:
    """Raises ValueError for another document."""
    found = json.loads(body)
    try:
        return Ready(bool(found["ready"]), tuple(map(str, found["reasons"])), tuple(map(str, found["warnings"])))
    except (KeyError, TypeError) as error:
        raise ValueError("this is not the readiness of a broker") from error


def sum_of(several: "list[Totals]") -> Totals:
    """Of all brokers; a sum is not known if one of them does not have it."""
    columns = zip(*several, strict=True) if several else ()
    return Totals(*(None if None in values else sum(values) for values in columns))
