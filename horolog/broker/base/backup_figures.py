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
    "backup_failures_total", Kind.COUNTER, "Rounds of the backup that failed, and ends of its process."
)
FAMILIES = (AGE, MOMENTS, BYTES, FAILURES)


class BackupFigures(NamedTuple):
    """A backup at a moment, in the order of the families."""

    age_s: float
    moments: int = 0
    size_bytes: int = 0
    failures: int = 0


def collect(figures: BackupFigures | None) -> Iterator[tuple[Described, Samples]]:
    """Every family; none where there is no backup: with several workers the process that starts them has it."""
    if figures is not None:
        yield from ((family, [((), value)]) for family, value in zip(FAMILIES, figures, strict=True))
