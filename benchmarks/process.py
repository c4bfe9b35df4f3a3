"""What the kernel says about a broker's process, and how to end one: cpu, memory, readiness, TERM before KILL."""

import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
POLL_SECONDS = 0.02
STOP_TIMEOUT_SECONDS = 40.0
LOWEST_PORT = 16_384
FIRST_PORT_OF_CONNECTIONS = 32_768
"""From here on Linux chooses ports for connections: one that is free may be taken before a broker has started."""

_RANDOM = random.SystemRandom()  # a test may have seeded the common one, and others beside it in the same way


class StartError(Exception):
    """The broker ended, or did not answer in time; the text says what its log says."""


def cpu_seconds(pid: int) -> float:
    """User and system time of all its threads, those that ended included; in steps of 10 ms."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND


def fine_cpu_seconds(pid: int) -> float:
    """Time on a core of the threads that live now, in nanosecond steps."""
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            total += int((task / "schedstat").read_text().split()[0])
        except (FileNotFoundError, ProcessLookupError):
            continue  # the thread ended between the listing and the reading
    return total / 1e9


def resident_kib(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise ProcessLookupError(pid)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def free_ports(count: int) -> list[int]:
    """Ports of the loopback interface that were free a moment ago, all different; no connection is given one of them meanwhile."""
    held: list[socket.socket] = []
    try:
        while len(held) < count:
            held += _held_in_a_row(1)
        return [one.getsockname()[1] for one in held]
    finally:
        for one in held:
            one.close()


def free_range(count: int, tries: int = 100) -> int:
    """The first of so many ports in a row that were free a moment ago."""
    for _ in range(tries):
        held = _held_in_a_row(count)
        if held:
            first: int = held[0].getsockname()[1]
            for one in held:
                one.close()
            return first
    raise StartError(f"no {count} ports in a row are free")


def _held_in_a_row(count: int) -> list[socket.socket]:
    """Sockets bound to ports that follow each other, from a random one on; none where one of them is taken."""
    first = _RANDOM.randrange(LOWEST_PORT, FIRST_PORT_OF_CONNECTIONS - count + 1)
    held = [socket.socket() for _ in range(count)]
    try:
        for place, one in enumerate(held):
            one.bind(("127.0.0.1", first + place))
    except OSError:
        for one in held:
            one.close()
        return []
    return held


def children(pid: int) -> list[int]:
    """The processes that this one has started, in the order of their numbers."""
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        return sorted(int(one) for task in tasks for one in (task / "children").read_text().split())
    except (FileNotFoundError, ProcessLookupError):
        return []


def wait_until(ready: Callable[[], bool], pid: int, timeout_seconds: float, explain: Callable[[], str]) -> None:
    """Poll until ready; raise when the process ends or the time is up."""
    end = time.monotonic() + timeout_seconds
    while not ready():
        if not is_alive(pid):
            raise StartError(f"process {pid} ended before it was ready\n{explain()}")
        if time.monotonic() > end:
            raise StartError(f"process {pid} was not ready within {timeout_seconds} s\n{explain()}")
        time.sleep(POLL_SECONDS)


def tail(path: Path, lines: int = 15) -> str:
    if not path.exists():
        return ""
    return "\n".join(path.read_text(errors="replace").splitlines()[-lines:])


def end(
    pid: int, process: subprocess.Popen[bytes] | None = None, timeout_seconds: float = STOP_TIMEOUT_SECONDS
) -> bool:
    """TERM, wait, KILL as the last resort; whether TERM was enough."""
    send(pid, signal.SIGTERM)
    polite = _gone(pid, process, timeout_seconds)
    if not polite:
        send(pid, signal.SIGKILL)
        _gone(pid, process, 10.0)
    return polite


def send(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return  # gone already, which is what was wanted


def _gone(pid: int, process: subprocess.Popen[bytes] | None, timeout_seconds: float) -> bool:
    limit = time.monotonic() + timeout_seconds
    while time.monotonic() < limit:
        if process is not None and process.poll() is not None:
            return True
        if process is None and not is_alive(pid):
            return True
        time.sleep(POLL_SECONDS)
    return False
