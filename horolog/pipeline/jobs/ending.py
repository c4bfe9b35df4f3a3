"""Ctrl-C and SIGTERM as a wish: a job that goes on ends what it is at, and then itself. A second signal ends the process at once."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from horolog.broker import interrupts

_SLICE_SECONDS = 0.1
"""A wish is seen so soon; what waits on a lock cannot be woken by a handler of signals that needs the same lock."""


class Ending:
    """Whether the end is wished for."""

    def __init__(self, sleep: Callable[[float], None] = time.sleep) -> None:
        self.wished = False
        self._sleep = sleep

    def pause(self, seconds: float) -> None:
        """Wait so long, or until the end is wished for."""
        left = seconds
        while left > 0 and not self.wished:
            self._sleep(min(left, _SLICE_SECONDS))
            left -= _SLICE_SECONDS


@contextmanager
def ending_when_told() -> Iterator[Ending]:
    """To be entered once Spark runs, which takes Ctrl-C for itself; a signal that is ignored stays so."""
    ending = Ending()
    if threading.current_thread() is not threading.main_thread():  # only there can signals be taken
        yield ending
        return

    def wish(number: int, _: FrameType | None) -> None:
        ending.wished = True
        signal.signal(number, signal.SIG_DFL)
        interrupts.end_at_once()

    before = {number: signal.getsignal(number) for number in interrupts.SIGNALS if not interrupts.is_ignored(number)}
    for number in before:
        signal.signal(number, wish)
    try:
        yield ending
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
