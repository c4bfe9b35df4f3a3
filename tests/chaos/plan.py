"""What befalls the brokers and their store, and when: drawn from a seed before anything runs."""

from __future__ import annotations

import random
from typing import NamedTuple

BROKER_FAULTS = ("kill", "empty", "pause", "end")
STORE_FAULTS = ("away", "held", "storm", "store killed")
BROKER_SHARE = 0.75
PAUSES_S = (1, 1, 2, 3, 3, 6, 6, 12, 30, 60)
DOWN_S = (0.0, 0.2, 1, 3, 10)
STORE_S = (0.3, 1, 3, 6, 12)
FIRST_AT_S = 2.0
LEAST_GAP_S, MOST_GAP_S = 1.0, 9.0
REST_S = 4.0
"""Between two faults of one broker, or of the store."""

KILL_EVERY_S, KILLED_S = 60, 3.0


class Event(NamedTuple):
    """A fault: it begins `at_s` behind the start, and is over `lasts_s` later."""

    at_s: float
    kind: str
    node: int
    """0: the store."""
    lasts_s: float

    def __str__(self) -> str:
        where = f"broker {self.node}" if self.node else "the store"
        return f"{self.at_s:7.1f} s  {self.kind}, {where}, {self.lasts_s:g} s"


def plan(seed: int, seconds: float, nodes: tuple[int, ...], *, has_store: bool = True) -> list[Event]:
    """Faults that overlap, each of which ends in time; a broker has one at a time, and so has the store."""
    chance = random.Random(seed)
    free_at = dict.fromkeys((*nodes, 0), 0.0)
    events: list[Event] = []
    at_s = FIRST_AT_S
    while at_s < seconds:
        of_store = has_store and chance.random() >= BROKER_SHARE
        free = [node for node, since in free_at.items() if since <= at_s and (node == 0) is of_store]
        if free:
            event = _event(chance, at_s, chance.choice(free), seconds)
            free_at[event.node] = event.at_s + event.lasts_s + REST_S
            events.append(event)
        at_s += chance.uniform(LEAST_GAP_S, MOST_GAP_S)
    return events


def kills(seed: int, seconds: float, nodes: tuple[int, ...]) -> list[Event]:
    """A `kill -9` every minute, each followed by a start."""
    chance = random.Random(seed)
    return [
        Event(float(at_s), "kill", chance.choice(nodes), KILLED_S)
        for at_s in range(KILL_EVERY_S, int(seconds), KILL_EVERY_S)
    ]


def _event(chance: random.Random, at_s: float, node: int, seconds: float) -> Event:
    kind = chance.choice(BROKER_FAULTS if node else STORE_FAULTS)
    lasts_s = chance.choice(PAUSES_S if kind == "pause" else DOWN_S if node else STORE_S)
    return Event(at_s, kind, node, min(float(lasts_s), seconds - at_s))
