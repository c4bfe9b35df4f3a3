"""Bounds a test's processor time, which tells linear work from quadratic work on any machine."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Require the body to take no more processor time of this process: choose work for which the fault would take ten times as much."""
    before = time.process_time()
    yield
    took_s = time.process_time() - before
    assert took_s < seconds, f"it took {took_s:.1f} s of processor time, not below {seconds} s"
