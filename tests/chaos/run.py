"""One run: clients at work while a plan of faults is carried out, then calm in which all has to go on, then what everybody learned is checked."""

from __future__ import annotations

import logging
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

from tests.chaos import clients, sharing
from tests.chaos.brokers import NODES, Brokers, over_a_store
from tests.chaos.clients import SOUGHT, TOPICS, Chaos
from tests.chaos.library_threads import sleeps_of_mains, stopped
from tests.chaos.plan import Event, plan
from tests.chaos.resources import Resources
from tests.chaos.uncommitted import problems as uncommitted_problems
from tests.soak.soak import WAIT_SECONDS, create_topics, read_all, wrong_times
from tests.soak.workload import COMMITTED, Soak, threads_of

PARTITIONS = 3
HEALS_WITHIN_S = 90.0
LOOKS_EVERY_S = 0.5
CALLS_SHOWN = 4
STOPPED_FOR_S = 5.0
"""A client's main thread that has not woken up for so long waits for ever."""


class Report(NamedTuple):
    """What a run has done and found."""

    events: list[Event]
    counts: Counter[str]
    problems: list[str]


def run(folder: Path, seconds: float, seed: int, events: list[Event] | None = None) -> Report:
    """A run over a store, with the events of the seed or those that are given."""
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)  # it reports every connection that is refused
    chosen = plan(seed, seconds, NODES) if events is None else events
    with over_a_store(folder, seed) as brokers:
        resources = Resources(brokers, PARTITIONS)
        with watching(resources):
            counts, problems = against(brokers, chosen, seed)
        print(*resources.figures(), sep="\n")
        problems += [*brokers.lost(), *resources.problems()]
        counts |= Counter({f"requests to the store: {one.value}": count for one, count in brokers.proxy.met.items()})
        if brokers.stops_s:
            print(
                f"planned stops took up to {max(brokers.stops_s):.1f} s, in the median {median(brokers.stops_s):.1f} s"
            )
    problems += [*brokers.problems, *brokers.tracebacks()]
    return Report(chosen, counts, problems)


@contextmanager
def watching(resources: Resources) -> Iterator[None]:
    stop = threading.Event()
    thread = threading.Thread(target=resources.watch, args=(stop,), name="resources")
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(WAIT_SECONDS)


def against(brokers: Brokers, events: list[Event], seed: int) -> tuple[Counter[str], list[str]]:
    """The same against any brokers: what was done, and what was wrong."""
    create_topics(brokers.servers, PARTITIONS, TOPICS, brokers.replication_factor)
    sharing.set_up(brokers.servers)
    with log_of_clients(brokers.folder / "log-clients") as log:
        return under(brokers, events, Chaos(Soak(brokers.servers, seed, PARTITIONS), log))


def under(brokers: Brokers, events: list[Event], chaos: Chaos) -> tuple[Counter[str], list[str]]:
    """Clients at work under these events, and what they counted."""
    threads = threads_of(chaos.soak, clients.jobs(chaos))
    for thread in threads:
        thread.start()
    try:
        stuck = going_on(chaos, "before any fault")
        carry_out(brokers, events)
        stuck += going_on(chaos, "once faults were over")
    finally:
        chaos.soak.stop.set()
        for thread in threads:
            thread.join(WAIT_SECONDS)
    stuck += not_ended(chaos, threads)
    for _ in chaos.sent_again.values:
        chaos.soak.count("records that a library may have sent again")
    return clients.progress(chaos) + Counter(chaos.soak.counts), [*stuck, *wrongs(brokers, chaos)]


def not_ended(chaos: Chaos, threads: Sequence[threading.Thread]) -> list[str]:
    """The clients that wait for a broker and do not end. Those whose library has stopped are counted."""
    found = [f"{thread.name} did not end: {whereabouts(thread)}" for thread in threads if thread.is_alive()]
    if not found:
        return []
    before = sleeps_of_mains()
    time.sleep(STOPPED_FOR_S)
    if stopped(before, sleeps_of_mains()) < len(found):
        return [f"stuck: {one}" for one in found]
    print(*(f"its library has stopped: {one}" for one in found), sep="\n")
    for _ in found:
        chaos.soak.count("clients whose library has stopped")
    return []


def whereabouts(thread: threading.Thread) -> str:
    """The calls that a thread is in, the innermost last."""
    frame = sys._current_frames().get(thread.ident or 0)
    calls = traceback.extract_stack(frame) if frame is not None else []
    return " > ".join(f"{Path(call.filename).name}:{call.lineno} {call.line}" for call in calls[-CALLS_SHOWN:])


@contextmanager
def log_of_clients(path: Path) -> Iterator[logging.Logger]:
    log = logging.getLogger("tests.chaos.clients")
    log.propagate = False
    handler = logging.FileHandler(path)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    log.addHandler(handler)
    try:
        yield log
    finally:
        log.removeHandler(handler)
        handler.close()


def carry_out(brokers: Brokers, events: list[Event]) -> None:
    """Each fault in a thread of its own, for they overlap; returns when all are over."""
    began = time.monotonic()
    threads = []
    for event in events:
        time.sleep(max(0.0, began + event.at_s - time.monotonic()))
        print(event, flush=True)
        threads.append(threading.Thread(target=brokers.befall, args=(event,), name=str(event)))
        threads[-1].start()
    for thread in threads:
        thread.join()


def going_on(chaos: Chaos, when: str) -> list[str]:
    """The work that stands still although all is well, with when that was."""
    before = clients.progress(chaos)
    latest = time.monotonic() + HEALS_WITHIN_S
    while still := standing_still(before, clients.progress(chaos)):
        if chaos.soak.failures:
            return []  # the run is over, and says why
        if time.monotonic() > latest:
            return [f"stuck: {one} {when}" for one in still]
        time.sleep(LOOKS_EVERY_S)
    return []


def standing_still(before: Counter[str], now: Counter[str]) -> list[str]:
    return [one for one in SOUGHT if now[one] <= before[one]]


def wrongs(brokers: Brokers, chaos: Chaos) -> list[str]:
    """What the records at the end say of what clients learned on the way."""
    soak = chaos.soak
    times = read_all(brokers.servers, PARTITIONS, TOPICS)
    final = {place: [(offset, value) for offset, _, value in rows] for place, rows in times.items()}
    stamps = {place: [(offset, time_ms) for offset, time_ms, _ in rows] for place, rows in times.items()}
    everything = read_all(brokers.servers, PARTITIONS, [COMMITTED], "read_uncommitted")
    uncommitted = {place: [(offset, value) for offset, _, value in rows] for place, rows in everything.items()}
    return [
        *soak.failures,
        *uncommitted_problems(soak.history, final, uncommitted),
        *soak.history.problems(chaos.sent_again.without_them(final, soak.history.writes)),
        *wrong_times(times, soak.times),
        *chaos.observed.problems(stamps),
        *chaos.deliveries.problems(sharing.acknowledged_values(soak), final),
    ]
