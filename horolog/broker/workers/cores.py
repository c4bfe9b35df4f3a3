"""The number of workers: from the settings, or one for each core that this process may use."""

from __future__ import annotations

import math
import os
from pathlib import Path

from horolog.broker.config.setting_types import SettingsError
from horolog.broker.config.settings import Settings

QUOTA = Path("/sys/fs/cgroup/cpu.max")
"""A container's CPU quota: MICROSECONDS or max, and the period."""


def count_of(settings: Settings) -> int:
    """The number of workers; 1 means a single process. Raises SettingsError."""
    key = "horolog.workers"
    count = settings.horolog_workers or cores()
    if settings.horolog_read_only and settings.horolog_workers > 1:
        raise SettingsError(key, str(count), "with horolog.read.only, one process serves the folder")
    return 1 if settings.horolog_read_only else count


def cores(quota: Path = QUOTA) -> int:
    """Cores that this process may run on, or fewer if its container has a quota below that."""
    may_run_on = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(may_run_on, math.ceil(_allowed(quota))))


def _allowed(quota: Path) -> float:
    """Cores by the container's quota; no bound where there is none."""
    try:
        share, _, period = quota.read_text("ascii").partition(" ")
        return int(share) / int(period)
    except (OSError, ValueError, ZeroDivisionError):
        return 2**31
