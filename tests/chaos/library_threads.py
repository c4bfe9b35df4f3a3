"""Tells clients whose library has stopped from clients that wait for a broker.

librdkafka's main thread of a client wakes up several times a second. In 2.16 it can stop for ever while it lets go of a broker that has left
Metadata: a log of the client ends there with requests that "failed: Broker handle destroyed without termination", also if the answer to a
synchronous commit arrives afterwards. Then neither `commit` nor `close` returns. No broker can change that: such clients are counted, and
are not a problem of the run.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

MAIN = "rdk:main"
TASKS = Path("/proc/self/task")
COUNTED = "voluntary_ctxt_switches:"


def sleeps_of_mains(tasks: Path = TASKS) -> dict[str, int]:
    """How often each main thread of a client has gone to sleep; none where the system does not count that."""
    found = {}
    for task in tasks.glob("*"):
        try:
            if (task / "comm").read_text().strip() == MAIN:
                lines = (task / "status").read_text().splitlines()
                found[task.name] = int(next(one for one in lines if one.startswith(COUNTED)).split()[1])
        except OSError:  # it has ended
            continue
    return found


def stopped(before: Mapping[str, int], now: Mapping[str, int]) -> int:
    """How many threads have neither ended nor woken up in between."""
    return sum(now.get(thread) == sleeps for thread, sleeps in before.items())
