"""The runs of one broker in a test, on the same data and ports: it starts, stops or is killed, and starts again.

A killed broker closes its connections without the responses that clients wait for, and the next run finds the data as they were at
that moment: no clean stop, no checkpoints. What the killed broker still writes as it goes lands in a copy that is thrown away.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from horolog.broker.base.own_thread import AtOnce
from horolog.broker.config.settings import Settings, load
from horolog.broker.server.app import Broker
from horolog.broker.server.process import sole
from horolog.testing.clock import BrokerClock
from horolog.testing.full_disk import FillableDisk, FillableMemory, Fullness
from horolog.testing.settling import workers_idle

MEMORY = "memory"
FOLDER_IN_MEMORY = "/horolog"
HTTP_LISTEN = "horolog.http.listen"
PIECE_BYTES = 1 << 20
NO_DATA = bytes(PIECE_BYTES)


class NotRunning(RuntimeError):
    """The broker was killed or stopped, and has not started again."""


class AlreadyRunning(RuntimeError):
    """The broker runs, so it cannot start."""


class BrokerRuns:
    """Starts the brokers of one test, each on what the one before it has left."""

    def __init__(self, given: Mapping[str, str], clock: BrokerClock, storage: str | Path, fullness: Fullness) -> None:
        self._given = dict(given)
        self._clock = clock
        self._fullness = fullness
        self._folder = None if storage == MEMORY else Path(storage).resolve()
        self._memory = FillableMemory(lambda: clock.wall_ms() * 1_000_000, fullness)
        self._running: Broker | None = None

    def __repr__(self) -> str:
        return f"<BrokerRuns on {self._folder or 'memory'}, {'running' if self.is_running else 'down'}>"

    @property
    def is_running(self) -> bool:
        return self._running is not None

    @property
    def broker(self) -> Broker:
        """The running broker. Raises NotRunning."""
        if self._running is None:
            raise NotRunning("the broker is down: start() starts it again")
        return self._running

    async def start(self) -> Broker:
        """Start on the ports of the run before, and on its data."""
        if self._running is not None:
            raise AlreadyRunning("the broker is running: kill() or restart() ends this run")
        settings, _ = load(None, {}, self._given)
        broker = self._new(settings)
        try:
            await broker.start()
        except BaseException:
            await broker.stop()
            raise
        self._given |= _ports_of(broker)
        self._running = broker
        return broker

    def _new(self, settings: Settings) -> Broker:
        loop, process = asyncio.get_running_loop(), sole(settings, AtOnce())
        if self._folder is None:
            return Broker(settings, self._clock, self._memory, [FOLDER_IN_MEMORY], loop, process)
        return Broker(settings, self._clock, FillableDisk(self._fullness), [str(self._folder)], loop, process)

    async def stop(self) -> None:
        """Stop cleanly, if it runs."""
        if self._running is not None:
            ending, self._running = self._running, None
            await ending.stop()

    async def kill(self, *, power_cut: bool = False) -> None:
        """End as `kill -9` does, or as a power cut, which also loses what was not synced."""
        if power_cut and self._folder is not None:
            raise ValueError("power_cut=True needs storage in memory: a test cannot tell what a real disk has synced")
        killed, self._running = self.broker, None
        for listener in killed.listeners:
            await listener.stop_accepting()
        await workers_idle(killed)
        for listener in killed.listeners:
            listener.cut()
        if self._folder is None:
            left = self._memory.copied(synced_only=power_cut)
            await killed.stop()
            self._memory = left
        else:
            aside = self._folder.with_name(f".{self._folder.name}.killed")
            copy_folder(self._folder, aside)
            await killed.stop()
            shutil.rmtree(self._folder)
            aside.rename(self._folder)


def _ports_of(broker: Broker) -> dict[str, str]:
    """The settings under which the next run has the same ports."""
    names = [f"{one.name}://{f'[{one.host}]' if ':' in one.host else one.host}:{one.port}" for one in broker.listeners]
    found = {"listeners": ",".join(names)}
    if broker.metrics_server is not None:
        listen = str(broker.settings.horolog_http_listen)
        found[HTTP_LISTEN] = re.sub(r":0$", f":{broker.http_port}", listen)
    return found


def copy_folder(source: Path, target: Path) -> None:
    """Copy files and times; pieces without data, as indexes have them, take no space."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target, copy_function=_copy_file)


def _copy_file(source: str, target: str) -> None:
    with Path(source).open("rb") as read, Path(target).open("wb") as written:
        while piece := read.read(PIECE_BYTES):
            if piece == NO_DATA[: len(piece)]:
                written.seek(len(piece), os.SEEK_CUR)
            else:
                written.write(piece)
        written.truncate(read.tell())
    shutil.copystat(source, target)
