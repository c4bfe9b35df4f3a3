"""Lines that Python workers have for the user: what a plan reads and skips, what a write refused.

They go to standard error, which a worker shares with Spark. If a notebook listens (`notebook`), they go to its socket: there Spark's
standard error is the terminal of the notebook's server, where the user does not see them.
"""

import os
import socket
import sys

SOCKET = "HOROLOG_NOTES"
"""The environment variable that names the socket; Spark's processes have it from the notebook's."""


def say(line: str) -> None:
    """One line for the user."""
    path = os.environ.get(SOCKET)
    if path is None or not _sent(path, line):
        sys.stderr.write(line + "\n")


def _sent(path: str, line: str) -> bool:
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as sock:
            sock.sendto(line.encode(), path)
    except OSError:  # the notebook has gone, or has more than it can read
        return False
    return True
