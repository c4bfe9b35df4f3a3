"""One worker as the supervisor sees it: its process, and its successors under the same number."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from horolog.base.clock import Clock
from horolog.broker.cluster.worker_context import http_socket
from horolog.broker.observability.phase import Phase
from horolog.broker.workers.ends import MOST_ENDS, WITHIN_S, Ends
from horolog.broker.workers.tether import ASK_EVERY_S, MOST_UNANSWERED, Tether

if TYPE_CHECKING:
    from horolog.broker.server.backup_child import LogEnds
    from horolog.broker.workers.standstill import Standstills

log = logging.getLogger(__name__)

DOWN = "down"
MODULE = "horolog.broker.workers.worker"
NOT_FOR_WORKERS = ("NOTIFY_SOCKET",)
"""Variables meant for the one process that systemd has started."""


class ProcessEnd(NamedTuple):
    """How a worker's process has ended."""

    code: int
    """As `subprocess` has it: the negative signal number if a signal ended it."""
    message: str | None = None
    """Why it could not start, as it reported itself."""

    def __str__(self) -> str:
        """What follows its name in a sentence."""
        if self.message is not None:
            return f"could not start: {self.message}"
        return f"was ended by {signal.Signals(-self.code).name}" if self.code < 0 else f"ended with code {self.code}"


class Down(NamedTuple):
    """A worker that ends again and again, until one serves."""

    since_ms: int
    """When it served last."""
    next_try_ms: int
    """When its successor is started; in the past while that starts."""
    ending: ProcessEnd

    def __str__(self) -> str:
        """What follows its name in a sentence."""
        told = f"has been down since {shown(self.since_ms)}, because it ended {MOST_ENDS} times in {WITHIN_S:.0f} s"
        return f"{told}; it {self.ending}; next try at {shown(self.next_try_ms)}"


def shown(wall_ms: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(wall_ms / 1000))


class LifecycleEvents(Protocol):
    """Receives the events of a worker's life."""

    def settled(self) -> None: ...
    def is_ready(self, worker: WorkerProcess) -> None: ...
    def is_leaving(self, worker: WorkerProcess) -> None: ...
    def has_ended(self, worker: WorkerProcess, ending: ProcessEnd) -> None: ...
    def journal(self, worker: WorkerProcess, number: int) -> None: ...
    def applied(self, worker: WorkerProcess, number: int) -> None: ...
    @property
    def standstills(self) -> Standstills | None: ...


Command = Callable[[int, int], Sequence[str]]
"""The command line of a worker, by its number and the descriptor of its link."""


def command_of(number: int, descriptor: int) -> list[str]:
    """Python as it runs here. Modules are not imported from the current folder, unless this program came from there."""
    safely = [] if str(Path(__file__).parents[3]) == str(Path.cwd()) else ["-P"]
    return [sys.executable, *safely, "-m", MODULE, str(number), str(descriptor)]


class WorkerProcess:
    """From the first start to the last end."""

    def __init__(
        self, number: int, node: int, sockets: str, crew: LifecycleEvents, clock: Clock, command: Command
    ) -> None:
        self.number = number
        self.node = node
        self.starts = 0
        self.last_absence_s = 0.0
        self.phase = Phase.STARTING
        self.down: Down | None = None
        self.tether: Tether | None = None
        self.http_socket = http_socket(sockets, node)
        self._crew = crew
        self._clock = clock
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None
        self._ends = Ends()
        self._ready_s: float | None = None
        self._left_s: float | None = None
        self._failure: str | None = None

    def __repr__(self) -> str:
        return f"<WorkerProcess {self.number}, node {self.node}: {self.state}>"

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    @property
    def state(self) -> str:
        return self.phase.value if self.down is None else DOWN

    @property
    def down_s(self) -> float:
        """How long no process has served under its number, if it keeps ending; else 0."""
        return 0.0 if self.down is None or self._left_s is None else self._clock.monotonic() - self._left_s

    @property
    def cannot_start(self) -> bool:
        """Whether it is down because it has reported that it cannot start."""
        return self.down is not None and self.down.ending.message is not None

    @property
    def why_not_ready(self) -> str | None:
        """As far as the supervisor knows: a ready worker may have reasons of its own."""
        if self.phase is Phase.READY:
            return None
        return f"it is {self.state}" if self.down is None else f"it {self.down}"

    # -- its life

    async def start(self, orders: Mapping[str, Any], inherited: Sequence[int], *, may_go: bool) -> None:
        """Start a process that inherits these descriptors; `may_go`: the folder is settled. Raises OSError."""
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        environ = {name: value for name, value in os.environ.items() if name not in NOT_FOR_WORKERS}
        try:
            with theirs:
                self._process = subprocess.Popen(  # noqa: S603, ASYNC220 - our own program, and it is not waited for
                    self._command(self.number, theirs.fileno()),
                    stdin=subprocess.DEVNULL,
                    pass_fds=(theirs.fileno(), *inherited),
                    env=environ,
                )
        except OSError:
            ours.close()
            raise
        self.starts += 1
        self.phase, self._failure, self._ready_s = Phase.STARTING, None, None
        ours.setblocking(False)
        self.tether = Tether(self)
        await self.tether.connect(ours, loop)
        self.tether.begin(orders)
        if may_go:
            self.tether.go()

    def stop(self) -> None:
        """End it: at once while it starts, else when everything is written and answered."""
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)

    def look(self) -> None:
        """Kill it if it has not answered for too long. Starts and stops have no time limit."""
        if self.phase is Phase.READY and self.tether is not None and self.tether.is_silent():
            seconds = MOST_UNANSWERED * ASK_EVERY_S
            log.error("worker %s has not responded for %.0f s: killing its process", self.number, seconds)
            self.kill()

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()

    def reap(self) -> None:
        """Report the end of its process, once all its messages are read."""
        if self._process is not None and self.tether is None and self._process.poll() is not None:
            ending = ProcessEnd(self._process.returncode, self._failure)
            self._process = None
            self._left_s = self._left_s or self._clock.monotonic()
            self._crew.has_ended(self, ending)

    def pause_after(self, ending: ProcessEnd) -> float:
        """Count its end; returns how long its successor waits. After too many ends it is down until one serves."""
        now_s, now_ms = self._clock.monotonic(), self._clock.wall_ms()
        left_s = self._left_s = self._left_s or now_s
        pause_s = self._ends.one_more(now_s, 0.0 if self._ready_s is None else left_s - self._ready_s)
        if pause_s:
            since_ms = now_ms - round(1000 * (now_s - left_s))
            self.down = Down(since_ms, now_ms + round(1000 * pause_s), ending)
        return pause_s

    # -- its messages

    def settled(self) -> None:
        self._crew.settled()

    def ready(self) -> None:
        self.phase, self.down = Phase.READY, None
        self._ready_s = self._clock.monotonic()
        if self._left_s is not None:
            self.last_absence_s = self._ready_s - self._left_s
            self._left_s = None
        self._crew.is_ready(self)

    def failed(self, message: str, code: int) -> None:  # noqa: ARG002 - its process ends with the code
        self._failure = message

    def stopping(self) -> None:
        self._leave()
        self._crew.is_leaving(self)

    def journal(self, number: int) -> None:
        self._crew.journal(self, number)

    def applied(self, number: int) -> None:
        self._crew.applied(self, number)

    def ends(self, number: int, ends: LogEnds | None) -> None:
        standstills = self._crew.standstills
        if standstills is not None:
            standstills.ends(number, ends)

    def gone(self) -> None:
        """Its link has ended, which it does when the process ends."""
        self.tether = None
        was_ready = self.phase is Phase.READY
        self._leave()
        if was_ready:
            self._crew.is_leaving(self)
        self.reap()

    def _leave(self) -> None:
        if self.phase is Phase.READY:
            self._left_s = self._clock.monotonic()
        self.phase = Phase.STOPPING
