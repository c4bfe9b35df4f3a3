"""Keeps the last hour of each cluster's rates and sizes, and its brokers' readiness: asked over HTTP every ten seconds.

It begins with the first page Now of a cluster, and ends an hour after the last one. A page reads the newest answers, so a
broker whose HTTP port does not answer delays only the first page, and only for a moment.
"""

import asyncio
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from horolog.base.readable import counted
from horolog.client.wire.http_get import NoAnswer, get
from horolog.console.scrapes import Ready, Scrape, Totals, ready_of, scrape_of, sum_of

if TYPE_CHECKING:
    from horolog.base.clock import Clock
    from horolog.client.segments.segments_look import HttpAccess

INTERVAL_S = 10.0
HOUR_MS = 3_600_000
SAMPLES = 360
IDLE_S = 3600.0
FIRST_SECONDS = 0.3
"""How long a page waits for the first answers."""
ASKED_WITHIN_MS = 3000
CLUSTERS_AT_MOST = 16
SCRAPE_BYTES = 16 << 20
_REFUSED = 401
RATES = frozenset({"records", "received_bytes", "sent_bytes", "requests", "cpu_seconds", "store_requests"})


class BrokerAnswer(NamedTuple):
    """The newest answers of one broker, or the reason why there are none."""

    door: "HttpAccess"
    ready: Ready | None = None
    scrape: Scrape | None = None
    why: str = ""


class HourSample(NamedTuple):
    """The sums of all brokers at a time."""

    at_ms: int
    brokers: "tuple[HttpAccess, ...]"
    totals: Totals


class Point(NamedTuple):
    at_ms: int
    value: float | None


async def answer_of(door: "HttpAccess") -> BrokerAnswer:
    from dataclasses import replace

    brief = replace(door, timeout_ms=min(door.timeout_ms, ASKED_WITHIN_MS))
    try:
        ready, scrape = await asyncio.gather(
            get(brief, "/ready"), get(brief, "/metrics", accept="text/plain", most_bytes=SCRAPE_BYTES)
        )
        if _REFUSED in (ready.status, scrape.status):
            return BrokerAnswer(door, why="requires a token")
        return BrokerAnswer(door, ready_of(ready.body), scrape_of(scrape.body.decode(errors="replace")))
    except NoAnswer as error:
        return BrokerAnswer(door, why=str(error))
    except (ValueError, KeyError):
        return BrokerAnswer(door, why="sent an unreadable response")


class Pulse:
    """One cluster: its newest answers and its last hour. `doors` are the HTTP ports of its brokers."""

    def __init__(self, doors: "Sequence[HttpAccess]", clock: "Clock", interval_s: float = INTERVAL_S) -> None:
        self.doors = tuple(doors)
        self.answers: tuple[BrokerAnswer, ...] = ()
        self.samples: deque[HourSample] = deque(maxlen=SAMPLES)
        self._clock = clock
        self._interval_s = interval_s
        self._wanted_s = clock.monotonic()
        self._has_begun = asyncio.Event()
        self._task = asyncio.create_task(self._run())

    def __repr__(self) -> str:
        return f"<Pulse of {counted(len(self.doors), 'broker')}, {counted(len(self.samples), 'sample')}>"

    @property
    def is_over(self) -> bool:
        return self._task.done()

    @property
    def wanted_s(self) -> float:
        return self._wanted_s

    async def wanted(self, doors: "Sequence[HttpAccess]") -> None:
        """A page shows it, so it continues for another hour."""
        self.doors = tuple(doors)
        self._wanted_s = self._clock.monotonic()
        with suppress(TimeoutError):
            async with asyncio.timeout(FIRST_SECONDS):
                await self._has_begun.wait()

    async def end(self) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _run(self) -> None:
        while self._clock.monotonic() - self._wanted_s < IDLE_S:
            doors = self.doors
            self.answers = tuple(await asyncio.gather(*map(answer_of, doors)))
            scrapes = [one.scrape for one in self.answers if one.scrape is not None]
            totals = sum_of([one.totals for one in scrapes]) if len(scrapes) == len(doors) else Totals()
            self.samples.append(HourSample(self._clock.wall_ms(), doors, totals))
            self._has_begun.set()
            await asyncio.sleep(self._interval_s)


class Pulses:
    """Those of a console's clusters, by their names."""

    def __init__(self, interval_s: float = INTERVAL_S) -> None:
        self._interval_s = interval_s
        self._kept: dict[str, Pulse] = {}

    def __repr__(self) -> str:
        return f"<Pulses of {len(self._kept)} clusters>"

    async def of(self, name: str, doors: "Sequence[HttpAccess]", clock: "Clock") -> Pulse:
        """The pulse of a cluster, begun if there is none."""
        known = self._kept.get(name)
        if known is None or known.is_over:
            while len(self._kept) >= CLUSTERS_AT_MOST:
                oldest = min(self._kept, key=lambda one: self._kept[one].wanted_s)
                await self._kept.pop(oldest).end()
            known = self._kept[name] = Pulse(doors, clock, self._interval_s)
        await known.wanted(doors)
        return known

    async def close(self) -> None:
        for one in self._kept.values():
            await one.end()
        self._kept.clear()


def points(samples: Sequence[HourSample], field: str) -> Iterator[Point]:
    """A field over time: gauges as they are, counters as rates per second."""
    if field not in RATES:
        yield from (Point(one.at_ms, getattr(one.totals, field)) for one in samples)
        return
    for before, one in zip(samples, list(samples)[1:], strict=False):
        yield Point(one.at_ms, _rate(before, one, field))


def _rate(before: HourSample, after: HourSample, field: str) -> float | None:
    """None if a value is not known, other brokers were asked, or a counter began anew."""
    low, high = getattr(before.totals, field), getattr(after.totals, field)
    elapsed_ms = after.at_ms - before.at_ms
    if low is None or high is None or high < low or elapsed_ms <= 0 or before.brokers != after.brokers:
        return None
    return float((high - low) * 1000 / elapsed_ms)
