"""An object store in virtual time that answers as badly as real ones may; linearisable for each key, and seeded.

A request arrives at one moment, and takes effect then. It may be slow, be refused before it arrives, arrive without an answer, arrive
after its sender was told that nothing is known, or arrive twice. 409 says that another create of the key is under way. In a storm all
requests are refused, or get no answer.
"""

import heapq
import itertools
import random
from dataclasses import dataclass

from horolog.stores.faults import StoreError, StoreRefusal
from horolog.stores.object_store import Created, Outcome, Stored

MADE, TAKEN = Created(Outcome.MADE), Created(Outcome.TAKEN)
TIMEOUT_S = 5.0


class Schedule:
    """Virtual time: what happens when, in one order for each seed."""

    def __init__(self):
        self.now = 0.0
        self._queue, self._ids = [], itertools.count()

    def later(self, seconds, action):
        heapq.heappush(self._queue, (self.now + seconds, next(self._ids), action))

    def pause(self, seconds, done):
        self.later(seconds, lambda: done(None))

    def run(self, until=float("inf")):
        """Everything that happens up to that time."""
        while self._queue and self._queue[0][0] <= until:
            self.now, _, action = heapq.heappop(self._queue)
            action()
        if until < float("inf"):
            self.now = max(self.now, until)


@dataclass(frozen=True)
class Weather:
    """How often, of all requests, something goes wrong."""

    refused: float = 0.05
    unanswered: float = 0.08
    late: float = 0.05
    twice: float = 0.05
    conflict: float = 0.5
    """Of creates of a key that another create is under way for."""
    slow: float = 0.1
    storms: int = 1


CALM = Weather(0, 0, 0, 0, 0, 0, 0)


class SimulatedStore:
    """`effects` are called after each change, with the key."""

    def __init__(self, schedule, seed, weather=None):
        self.schedule, self.chance = schedule, random.Random(seed)
        self.weather = weather or Weather()
        self.objects, self.effects = {}, []
        self._under_way = {}
        self.storms = [self.chance.uniform(0, 30) for _ in range(self.weather.storms)]
        self.outcomes = dict.fromkeys(Outcome, 0)
        self.late_count = 0
        self.keeps_until = 0.0
        """Until then every delete is refused, as by a policy."""
        self.refused_deletes = 0

    def __repr__(self):
        return f"<SimulatedStore with {len(self.objects)} objects>"

    def _latency(self):
        return (
            self.chance.uniform(0.2, 4)
            if self.chance.random() < self.weather.slow
            else self.chance.uniform(0.005, 0.05)
        )

    def _fate(self):
        """What becomes of a request."""
        if any(begin <= self.schedule.now < begin + 3 for begin in self.storms):
            return self.chance.choice(["refused", "unanswered"])
        point = self.chance.random()
        for fate in ("refused", "unanswered", "late", "twice"):
            point -= getattr(self.weather, fate)
            if point < 0:
                return fate
        return "good"

    def create(self, key, data, done):
        fate = self._fate()
        if self._under_way.get(key) and self.chance.random() < self.weather.conflict:
            fate = "conflict"

        def answer(created):
            self.outcomes[created.outcome] += 1
            done(created)

        def arrive():
            self._under_way[key] -= 1
            if key in self.objects:
                return TAKEN
            self.objects[key] = data
            self._changed(key)
            return MADE

        self._send(fate, key, arrive, answer, Created(Outcome.UNKNOWN, f"503 or no answer ({fate})"))

    def get(self, key, done):
        self._send(self._read_fate(), None, lambda: self.objects.get(key), done, StoreError("no answer"))

    def get_range(self, key, start, end, done):
        def arrive():
            data = self.objects.get(key)
            return None if data is None else data[start:end]

        self._send(self._read_fate(), None, arrive, done, StoreError("no answer"))

    def list(self, prefix, done, limit=None):
        def arrive():
            found = [Stored(key, len(data), 0) for key, data in self.objects.items() if key.startswith(f"{prefix}/")]
            return found[:limit]

        self._send(self._read_fate(), None, arrive, done, StoreError("no answer"))

    def folders(self, prefix, done):
        def arrive():
            begin = len(prefix) + 1
            return list({key[begin:].partition("/")[0] for key in self.objects if key.startswith(f"{prefix}/")})

        self._send(self._read_fate(), None, arrive, done, StoreError("no answer"))

    def delete(self, key, done):
        if self.schedule.now < self.keeps_until:
            self.refused_deletes += 1
            self.schedule.later(0.02, lambda: done(StoreRefusal("access denied")))
            return

        def arrive():
            if self.objects.pop(key, None) is not None:
                self._changed(key)

        self._send(self._fate(), None, arrive, done, StoreError("no answer"))

    def _read_fate(self):
        """A read whose answer is lost has no effect."""
        fate = self._fate()
        return fate if fate in {"refused", "good"} else self.chance.choice(["refused", "good"])

    def _send(self, fate, key, arrive, answer, unknown):
        later = self.schedule.later
        if key is not None and fate not in {"refused", "conflict"}:
            self._under_way[key] = self._under_way.get(key, 0) + 1 + (fate == "twice")
        if fate in {"refused", "conflict"}:
            later(self._latency(), lambda: answer(unknown))
            return
        if fate in {"good", "twice"}:
            there, back = self._latency(), self._latency()

            def arrives():
                result = arrive()
                later(back, lambda: answer(result))

            later(there, arrives)
            if fate == "twice":
                later(there + self.chance.uniform(0.01, 20), arrive)
            return
        self.late_count += fate == "late"
        later(self._latency() if fate == "unanswered" else TIMEOUT_S + self.chance.uniform(0, 20), arrive)
        later(TIMEOUT_S, lambda: answer(unknown))

    def _changed(self, key):
        for effect in self.effects:
            effect(key)


class StoreFront:
    """The store as one process asks it: one that stands still hears nothing, a dead one never again."""

    def __init__(self, process, store):
        self._process, self._store = process, store

    def _heard(self, done):
        return lambda answer: self._process.when_awake(lambda: done(answer))

    def create(self, key, data, done):
        self._store.create(key, data, self._heard(done))

    def get(self, key, done):
        self._store.get(key, self._heard(done))

    def get_range(self, key, start, end, done):
        self._store.get_range(key, start, end, self._heard(done))

    def list(self, prefix, done, limit=None):
        self._store.list(prefix, self._heard(done), limit)

    def folders(self, prefix, done):
        self._store.folders(prefix, self._heard(done))

    def delete(self, key, done):
        self._store.delete(key, self._heard(done))
