"""Brings partitions back that a disk fault has stopped: they are retried at once, then less and less often.

A stopped partition is rewritten in a worker (see `partition.rewrite`). One whose changes are kept in memory (see `opening`) is probed
there until its folder can be written to, and then opened again. An offline one is opened again on the loop's thread, one at a time;
that may read its last segment whole, so it is retried less often.
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from horolog.broker.log.partition import Partition, rewrite
from horolog.broker.log.recovery.opening import probe_below, storage_below
from horolog.broker.log.storage import StorageFault

log = logging.getLogger(__name__)

FIRST_RETRY_S = 0.5
LONGEST_REPAIR_PAUSE_S = 5.0
LONGEST_REOPENING_PAUSE_S = 300.0

Job = Callable[[], None]


@dataclass(slots=True)
class _Attempts:
    """The attempts for one partition."""

    due: float
    pause_s: float = FIRST_RETRY_S
    count: int = 0
    running: bool = False
    writable: bool = False
    """Whether changes kept in memory can be made on the disk: the folder has to be opened again."""


class Retries:
    """The partitions of a data folder that wait for their disk."""

    def __init__(self, monotonic: Callable[[], float], open_again: Callable[[Partition], bool]) -> None:
        self._monotonic = monotonic
        self._open_again = open_again
        self._attempts: dict[Partition, _Attempts] = {}

    def __repr__(self) -> str:
        return f"<Retries: {len(self._attempts)} partitions wait for their disk>"

    def step(self, partitions: Iterable[Partition]) -> tuple[list[Partition], list[Job]]:
        """Call this about every second; returns partitions opened again just now, and jobs for workers."""
        waiting = [one for one in partitions if not one.condition.takes_appends and not one.condition.is_deleted]
        if not waiting and not self._attempts:
            return [], []
        self._forget_all_but(waiting)
        reopened: list[Partition] = []
        jobs: list[Job] = []
        for partition in waiting:
            attempts = self._attempts.setdefault(partition, _Attempts(self._monotonic()))
            if attempts.running or self._monotonic() < attempts.due:
                continue
            if partition.condition.fault is None and not attempts.writable:
                self._put_off(attempts, LONGEST_REPAIR_PAUSE_S)
                attempts.running = True
                jobs.append(self._rewrite(partition, attempts))
            elif not reopened:
                self._put_off(attempts, LONGEST_REOPENING_PAUSE_S)
                attempts.writable = False
                if self._open_again(partition):
                    attempts.due = self._monotonic()
                    reopened.append(partition)
        return reopened, jobs

    def _forget_all_but(self, waiting: list[Partition]) -> None:
        for partition in self._attempts.keys() - set(waiting):
            del self._attempts[partition]
            if not partition.condition.is_deleted:
                log.info("%s accepts appends again", partition)

    def _put_off(self, attempts: _Attempts, longest_s: float) -> None:
        attempts.count += 1
        attempts.due = self._monotonic() + attempts.pause_s
        attempts.pause_s = min(attempts.pause_s * 2, longest_s)

    @staticmethod
    def _rewrite(partition: Partition, attempts: _Attempts) -> Job:
        below = storage_below(partition)
        rewrite_log = rewrite.job(partition) if below is None else partial(probe_below, partition, below)

        def job() -> None:
            try:
                rewrite_log()
                attempts.writable = below is not None
            except StorageFault as fault:
                level = logging.WARNING if attempts.count == 1 else logging.DEBUG
                log.log(level, "%s: its disk does not work yet; trying again: %s", partition, fault)
            finally:
                attempts.running = False

        return job
