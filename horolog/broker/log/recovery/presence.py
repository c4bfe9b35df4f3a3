"""Notices log files removed or replaced under the running broker: bytes written to them have no name and are lost with the process.

Every sync checks that the synced log still has its name. Partitions that are not synced are checked here: each second those written to
since their last sync, and as many others as a round of `ROUND_STEPS` seconds takes. A partition that has lost a file is stopped: it is
read as far as its files are open, and takes no appends until that very file is back, or the broker is restarted.
"""

import logging
from collections.abc import Callable, Iterable

from horolog.broker.log.partition import Partition
from horolog.broker.log.segments import syncing
from horolog.broker.log.storage import FileMissing, StorageFault

log = logging.getLogger(__name__)

ROUND_STEPS = 10


class Presence:
    """The state of the round. Call `step` every second."""

    def __init__(self) -> None:
        self._left: list[Partition] = []
        self._share = 0

    def __repr__(self) -> str:
        return f"<Presence: {len(self._left)} partitions left in this round>"

    def step(self, partitions: Iterable[Partition]) -> Callable[[], None]:
        """A job that checks the files of some partitions; may run in a worker."""
        here = [one for one in partitions if one.condition.takes_appends]
        if not self._left:
            self._left = here
            self._share = -(-len(here) // ROUND_STEPS)
        due, self._left = self._left[: self._share], self._left[self._share :]
        looked_at = dict.fromkeys([*(one for one in here if one.sync_state.waiting_since_ms >= 0), *due])
        return lambda: _look_at(looked_at)


def _look_at(partitions: Iterable[Partition]) -> None:
    for partition in partitions:
        try:
            for segment in tuple(partition.segments):
                syncing.check_in_place(segment)
        except FileMissing as missing:
            if partition.condition.takes_appends:
                partition.condition.stop(f"appends would be lost: {missing}")
        except StorageFault as fault:
            log.warning("%s: cannot check whether its files exist: %s", partition, fault)
