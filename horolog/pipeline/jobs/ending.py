"""Ctrl-C and SIGTERM as a request to end: a running job completes its current step, then ends. A second signal ends the process at once."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from horolog.base import interrupts

_SLICE_SECONDS = 0.1
"""How soon a request is seen; a signal handler cannot wake what waits on a lock that the handler needs, too."""


class Ending:
    """Whether the job has been asked to end."""

    def __init__(self, sleep: Callable[[float], None] = time.sleep) -> None:
        self.wished = False
        self._sleep = sleep

    def pause(self, seconds: float) -> None:
        """Wait this long, or until the job is asked to end."""
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
