"""What a broker with a backup shows of it: the families of its metrics, and one value with the state at a moment."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from horolog.broker.base.metrics import Described, Kind, Samples

AGE = Described(
    "backup_age_seconds",
    Kind.GAUGE,
    "Time since the newest moment of the backup, or since the start without one: what a restore would lose.",
)
MOMENTS = Described("backup_moments_total", Kind.COUNTER, "Moments of the backup that were made.")
BYTES = Described("backup_bytes_total", Kind.COUNTER, "Bytes of logs that were shipped to the backup.")
FAILURES = Described(
    "backup_failures_total",
    Kind.COUNTER,
    "Rounds of the backup that failed, times without an answer from its store or the disk, and times that its process ended or stopped.",
)
FAMILIES = (AGE, MOMENTS, BYTES, FAILURES)


class BackupFigures(NamedTuple):
    """A backup at a moment."""

    age_s: float
    moments: int = 0
    size_bytes: int = 0
    failures: int = 0
    fault: str = ""
    """Why there is no new moment; empty once there is one."""

    def warnings(self) -> Iterator[str]:
        """For `/ready`."""
        if self.fault:
            newest = "its newest moment is" if self.moments else "it has made no moment since the start,"
            yield f"the backup fails: {self.fault}; {newest} {self.age_s:.0f} s {'old' if self.moments else 'ago'}"


def collect(figures: BackupFigures | None) -> Iterator[tuple[Described, Samples]]:
    """Every family; none where there is no backup: with several workers the process that starts them has it."""
    if figures is not None:
        values = figures.age_s, figures.moments, figures.size_bytes, figures.failures
        yield from ((family, [((), value)]) for family, value in zip(FAMILIES, values, strict=True))
