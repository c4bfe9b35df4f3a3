"""Which process made something, so that somebody else can tell whether that process is still there."""

import os
import socket
from contextlib import suppress
from pathlib import Path


def this_place() -> str:
    """The running system whose pids these are: a host until it starts anew, and in it a container."""
    found = [socket.gethostname()]
    with suppress(OSError):
        found.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
    with suppress(OSError):
        found.append(os.readlink("/proc/self/ns/pid"))  # noqa: PTH115 - it leads to no file
    return " ".join(found)


def beginning_of(pid: int) -> str:
    """What tells a process from a later one of the same pid: when it began. Empty if there is none, or it is a corpse."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return _elsewhere(pid)
    state, *fields = stat.rpartition(")")[2].split()
    return "" if state in {"Z", "X"} else fields[18]


def _elsewhere(pid: int) -> str:
    """Where there is no /proc a pid has to do."""
    if Path("/proc/self/stat").exists():
        return ""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        pass
    return str(pid)
