"""Identifies a process, so that another one can tell whether it is still alive."""

import os
import socket
from contextlib import suppress
from pathlib import Path


def this_place() -> str:
    """The running system whose pids these are: one boot of a host, and the container in it."""
    found = [socket.gethostname()]
    with suppress(OSError):
        found.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
    with suppress(OSError):
        found.append(os.readlink("/proc/self/ns/pid"))  # noqa: PTH115 - it leads to no file
    return " ".join(found)


def beginning_of(pid: int) -> str:
    """When a process began, which distinguishes it from a later one with the same pid. Empty if there is none, or it is a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return _elsewhere(pid)
    state, *fields = stat.rpartition(")")[2].split()
    return "" if state in {"Z", "X"} else fields[18]


def _elsewhere(pid: int) -> str:
    """Without /proc, the pid alone has to do."""
    if Path("/proc/self/stat").exists():
        return ""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        pass
    return str(pid)
