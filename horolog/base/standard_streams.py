"""Standard streams that were closed before the start: each is opened on the null device.

Otherwise the first file or socket of the process takes the descriptor 0, 1 or 2. An event loop then aborts when it closes that
descriptor, and messages would go into a socket or a log.
"""

import os
import sys

FLAGS = (os.O_RDONLY, os.O_WRONLY, os.O_WRONLY)
"""For the descriptors 0, 1 and 2."""


def open_missing() -> None:
    """Open the descriptors that are closed, and the streams of `sys` that Python has left out for them."""
    for number, flags in enumerate(FLAGS):
        if not _is_open(number):
            _open_null(number, flags)
    if sys.stdin is None:
        sys.stdin = open(0, closefd=False)  # noqa: SIM115 - for as long as the process lives
    if sys.stdout is None:
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def _open_null(number: int, flags: int) -> None:
    found = os.open(os.devnull, flags)
    if found != number:
        os.dup2(found, number)
        os.close(found)
    os.set_inheritable(number, True)
