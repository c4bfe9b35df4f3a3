"""A broker's end of its backup: starts the process that ships (`broker.backup.process`), answers it, and starts it again when it ends.

Nothing of the backup is imported here, and the broker waits for nothing: for each round it notes where its logs end, which takes
microseconds for each partition. The process gives a sign of life each second. Seconds without one are counted, so that a broker that was
itself stopped for a while finds no process silent when it goes on.
"""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from horolog.base.clock import Clock
from horolog.broker.base.backup_figures import BackupFigures
from horolog.broker.config.setting_types import SettingsError
from horolog.broker.config.settings import Settings

log = logging.getLogger(__name__)

MODULE = "horolog.broker.backup.process"
RESTART_S = 5.0
ENDS_WITHIN_S = 2.0
LISTEN_EVERY_S = 1.0
MOST_UNHEARD = 15
"""A process that has given no sign of life for so many seconds is stopped, or hangs."""
HANGS = f"its process has given no sign of life for {MOST_UNHEARD} s"
MOST_SAID = 20

LogEnds = list[tuple[str, int, int, int]]
"""Topic, partition, base offset of the open segment and its bytes, of all partitions that are open."""
TakeEnds = Callable[[Callable[[LogEnds | None], None]], None]
"""Calls with where all logs end at one instant; None if they cannot be had."""


class OpenSegment(Protocol):
    """The last segment of a log."""

    base_offset: int
    size_bytes: int


class LogCondition(Protocol):
    @property
    def fault(self) -> str | None: ...


class OpenLog(Protocol):
    """A partition, seen from here."""

    @property
    def segments(self) -> Sequence[OpenSegment]: ...
    @property
    def condition(self) -> LogCondition: ...


def ends_of(partitions: Mapping[tuple[str, int], OpenLog]) -> LogEnds:
    """Where logs end, as far as they are written. One that is offline is not open: what stands in for it has no segments of its own."""
    return [
        (topic, index, partition.segments[-1].base_offset, partition.segments[-1].size_bytes)
        for (topic, index), partition in partitions.items()
        if partition.condition.fault is None
    ]


def refuse_settings(settings: Settings) -> None:
    """Raises SettingsError for what cannot be backed up."""
    if settings.horolog_backup_store is None:
        return
    if settings.horolog_store is not None:
        reason = "brokers over a store need no backup: the store has the records, and their history (horolog.store.history.ms)"
        raise SettingsError("horolog.backup.store", settings.horolog_backup_store, reason)
    if settings.horolog_read_only:
        reason = "a read-only broker makes no backups (horolog.read.only): use `horolog backup run`"
        raise SettingsError("horolog.backup.store", settings.horolog_backup_store, reason)


def orders_of(settings: Settings, data_dirs: Sequence[str]) -> dict[str, Any]:
    """What the process is to do (`backup.process.BackupOrders`)."""
    return {
        "url": settings.horolog_backup_store,
        "endpoint": settings.horolog_backup_store_endpoint or "",
        "every_ms": settings.horolog_backup_ms,
        "history_ms": settings.horolog_backup_history_ms,
        "bytes_per_second": settings.horolog_backup_bytes_per_second,
        "data_dirs": list(data_dirs),
    }


def command() -> list[str]:
    """Python as it runs here. Modules are not imported from the current folder, unless this program came from there."""
    safely = [] if str(Path(__file__).parents[3]) == str(Path.cwd()) else ["-P"]
    return [sys.executable, *safely, "-m", MODULE]


class BackupChild(asyncio.Protocol):
    """The process and its successors."""

    def __init__(
        self, orders: Mapping[str, Any], clock: Clock, take_ends: TakeEnds, command: Callable[[], list[str]] = command
    ) -> None:
        self._orders = orders
        self._clock = clock
        self._take_ends = take_ends
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None
        self._to_child: asyncio.WriteTransport | None = None
        self._again: asyncio.TimerHandle | None = None
        self._listening: asyncio.TimerHandle | None = None
        self._unheard = 0
        self._rest = b""
        self._said: deque[str] = deque(maxlen=MOST_SAID)
        self._is_over = False
        self._starting: asyncio.Task[None] | None = None
        self._newest_s = clock.monotonic()
        self._figures = BackupFigures(0.0)

    def __repr__(self) -> str:
        return f"<BackupChild to {self._orders['url']}: {self._figures}>"

    def figures(self) -> BackupFigures:
        fault = HANGS if self._unheard >= MOST_UNHEARD else self._figures.fault
        return self._figures._replace(age_s=self._clock.monotonic() - self._newest_s, fault=fault)

    # -- the process

    def begin(self) -> None:
        """Start the process. One that cannot be started is tried again, as one that has ended."""
        self._again = None
        self._starting = asyncio.get_running_loop().create_task(self._start())

    async def _start(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            self._process = subprocess.Popen(  # noqa: S603, ASYNC220 - our own program, and it is not waited for
                self._command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
        except OSError as error:
            self._failed(f"its process cannot be started: {error}")
            self._again = loop.call_later(RESTART_S, self.begin)
            return
        self._to_child, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, self._process.stdin)
        await loop.connect_read_pipe(lambda: self, self._process.stdout)
        self._say(self._orders)
        self._unheard = 0
        self._listening = loop.call_later(LISTEN_EVERY_S, self._listen)

    def _listen(self) -> None:
        self._listening = asyncio.get_running_loop().call_later(LISTEN_EVERY_S, self._listen)
        self._unheard += 1
        if self._unheard == MOST_UNHEARD:
            self._count_failure(HANGS)

    def _stop_listening(self) -> None:
        if self._listening is not None:
            self._listening.cancel()
        self._unheard = 0

    async def stop(self) -> None:
        """End the process, whatever it does: the next one goes on where it was."""
        self._is_over = True
        if self._again is not None:
            self._again.cancel()
        if self._starting is not None:
            await self._starting
        self._stop_listening()
        process = self._process
        if process is None:
            return
        if self._to_child is not None:
            self._to_child.close()
        for _ in range(round(ENDS_WITHIN_S / 0.02)):
            if process.poll() is not None:
                return
            await asyncio.sleep(0.02)
        process.kill()
        await asyncio.to_thread(process.wait)

    def data_received(self, data: bytes) -> None:
        if self._unheard >= MOST_UNHEARD:
            log.info("the backup: its process goes on")
        self._unheard = 0
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._hear(json.loads(line))

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - it has ended
        self._stop_listening()
        process, self._process, self._rest = self._process, None, b""
        if self._is_over or process is None:
            self._process = process
            return
        if self._to_child is not None:
            self._to_child.close()
            self._to_child = None
        loop = asyncio.get_running_loop()
        loop.run_in_executor(None, process.wait)
        self._failed(f"its process has ended, and is started again in {RESTART_S:.0f} s")
        self._again = loop.call_later(RESTART_S, self.begin)

    # -- messages

    def _say(self, message: Mapping[str, Any]) -> None:
        if self._to_child is not None:
            self._to_child.write(json.dumps(message).encode() + b"\n")

    def _hear(self, message: Mapping[str, Any]) -> None:
        if "ask" in message:
            self._take_ends(partial(self._answer, self._process))
        elif "fault" in message:
            self._failed(message["fault"])
        elif "moment" in message:
            self._made(message)

    def _answer(self, asker: subprocess.Popen[bytes] | None, ends: LogEnds | None) -> None:
        """The answer is for the process that has asked, not for its successor."""
        if asker is self._process:
            self._say({"ends": ends})

    def _made(self, message: Mapping[str, Any]) -> None:
        before = self._figures
        age_s = max(self._clock.wall_ms() - message["time_ms"], 0) / 1000
        self._newest_s = self._clock.monotonic() - age_s
        size_bytes = before.size_bytes + message["shipped_bytes"]
        self._figures = before._replace(moments=before.moments + 1, size_bytes=size_bytes, fault="")
        if before.fault or not before.moments:
            log.info("the backup has moment %s", message["moment"])
        self._said.clear()

    def _failed(self, fault: str) -> None:
        self._figures = self._figures._replace(fault=fault)
        self._count_failure(fault)

    def _count_failure(self, fault: str) -> None:
        """Say each reason once, until there is a moment."""
        self._figures = self._figures._replace(failures=self._figures.failures + 1)
        if fault not in self._said:
            log.error("the backup: %s", fault)
            self._said.append(fault)
