"""A worker's process ends with its supervisor's, also while it still imports what it runs: imported before anything else.

The system kills it when the supervisor dies, where the system can (Linux). A supervisor that died before that was asked for has left a
link whose other end is closed. A worker that goes on learns of the link's end from the event loop as well.
"""

import ctypes
import os
import select

PR_SET_PDEATHSIG = 1
SIGKILL = 9  # the module `signal` would be much to import
EXIT_ORPHANED = 1


def end_with_supervisor(link: int) -> None:
    """To be called first of all, with the descriptor of the link."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        prctl(PR_SET_PDEATHSIG, SIGKILL)
    if is_hung_up(link):
        os._exit(EXIT_ORPHANED)


def is_hung_up(link: int) -> bool:
    """Whether nobody has the other end any more; what lies unread in ours does not count."""
    looked = select.poll()
    looked.register(link, 0)
    return any(events & select.POLLHUP for _, events in looked.poll(0))
