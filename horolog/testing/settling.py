"""Waits until a broker has done all that its clock made due: in several rounds, since one step may make the next due.

Its own jobs run first, then their appends are written, synced and answered, and its worker threads finish their work. An
aborted transaction goes through the coordinator's log and the markers; an expired log needs a new segment and a snapshot
of its producers before it is deleted.
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

from horolog.broker.server.app import DISK_WORKERS

if TYPE_CHECKING:
    from horolog.broker.server.app import Broker

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
    """Let all workers meet at a barrier: everything submitted before is done then."""
    loop = asyncio.get_running_loop()
    barrier = threading.Barrier(DISK_WORKERS)
    await asyncio.gather(*(loop.run_in_executor(broker.workers, barrier.wait) for _ in range(DISK_WORKERS)))
