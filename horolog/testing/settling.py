"""Waits until a broker has done all that its clock made due: several rounds, for what one has done may make the next thing due.

Its own jobs run first, then what they appended is written, synced and answered, and its worker threads end what they have begun. A
transaction that is aborted goes through the coordinator's log and the markers; a log that has expired needs another segment,
a snapshot of its producers, and only then is let go.
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

from horolog.broker.app import DISK_WORKERS

if TYPE_CHECKING:
    from horolog.broker.app import Broker

ROUNDS = 4
MOST_LOOKS = 1000
"""Compactions follow each other; no more than these are waited for."""


async def settle(broker: Broker) -> None:
    """See the module's docstring."""
    for _ in range(ROUNDS):
        broker.time_has_moved()
        await asyncio.sleep(0)
        await broker.committer.drain()
        await workers_idle(broker)
        for _ in range(MOST_LOOKS):
            if not broker.upkeep.is_busy:
                break
            await workers_idle(broker)
        await broker.committer.drain()


async def workers_idle(broker: Broker) -> None:
    """All workers meet at a barrier: whatever they were given before is done then."""
    loop = asyncio.get_running_loop()
    barrier = threading.Barrier(DISK_WORKERS)
    await asyncio.gather(*(loop.run_in_executor(broker.workers, barrier.wait) for _ in range(DISK_WORKERS)))
