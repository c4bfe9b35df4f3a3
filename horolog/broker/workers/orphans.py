"""Ends a worker's process with its supervisor's, even while the worker still imports its code: imported before anything else.

On Linux the kernel kills the worker when the supervisor dies. A supervisor that died before that was requested has left a link whose
other end is closed. A running worker also learns of the link's end from the event loop.
"""

import ctypes
import os
import select

PR_SET_PDEATHSIG = 1
SIGKILL = 9  # importing the module `signal` would take longer
EXIT_ORPHANED = 1


def end_with_supervisor(link: int) -> None:
    """Call this first, with the descriptor of the link."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        prctl(PR_SET_PDEATHSIG, SIGKILL)
    if is_hung_up(link):
        os._exit(EXIT_ORPHANED)


def is_hung_up(link: int) -> bool:
    """Whether the other end is closed; unread bytes in ours do not matter."""
    looked = select.poll()
    looked.register(link, 0)
    return any(events & select.POLLHUP for _, events in looked.poll(0))
