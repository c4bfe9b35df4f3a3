"""One run of `horolog up`: a broker in this process, the console in another, and sample data if wanted, until a signal."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from horolog.base import interrupts
from horolog.base.clock import SystemClock
from horolog.broker.base.own_thread import OwnThread
from horolog.broker.config.settings import Settings, load
from horolog.broker.log.storage import RealStorage
from horolog.broker.observability.logs import LogSetup
from horolog.broker.server import app
from horolog.broker.server.process import sole
from horolog.client.cli.starting import introduction, pages
from horolog.client.cli.starting.introduction import Started

if TYPE_CHECKING:
    from horolog.commands.console import Console

OWN_SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "horolog.http.listen": f"{pages.HOST}:0",
    "horolog.log.level": "WARNING",
}
"""Differences from a broker's defaults: groups do not wait for more members, the console reads metrics and segments over HTTP, and the
terminal shows only warnings.
"""
FOLDER_PREFIX = "horolog-up-"


class UpOptions(NamedTuple):
    data: str | None
    """None: a temporary folder."""
    port: int
    console_port: int | None
    """None: no console."""
    demo: bool
    settings: dict[str, str]


class UpSession:
    """Follows the broker's progress (`app.Teller`): starts the console and prints the introduction when the broker is ready."""

    def __init__(self, options: UpOptions, console: Console, folder: str, stopped: asyncio.Event) -> None:
        self._options = options
        self._console = console
        self._folder = folder
        self._stopped = stopped
        self._pages: pages.Pages | None = None
        self._introducing: asyncio.Task[None] | None = None

    def ready(self, broker: app.Broker) -> None:
        first = broker.listeners[0]
        self._introducing = asyncio.ensure_future(self._introduce(f"{first.host}:{first.port}"))
        self._introducing.add_done_callback(self._introduced)

    def stopping(self) -> None:
        """Print nothing: the signal came from the user."""

    async def part(self) -> None:
        """End the console, before the broker stops. Raises the error that has ended the introduction."""
        if self._introducing is not None:
            self._introducing.cancel()
            await asyncio.wait([self._introducing])
        if self._pages is not None:
            await self._pages.end()
        if self._introducing is not None and not self._introducing.cancelled():
            self._introducing.result()

    async def _introduce(self, bootstrap: str) -> None:
        options, console = self._options, self._console
        written: dict[str, int] = {}
        if options.console_port is not None:
            self._pages = await pages.start(bootstrap, options.console_port, console.zone_name, console.environ)
            if self._pages is None:
                console.warn("the broker runs without a console, for the reason above; --no-console leaves it out")
        if options.demo:
            from horolog.client.cli.starting.filling import fill

            midnight_ms = console.time("today", "--demo").ms
            written = await fill(bootstrap, console.now_ms(), midnight_ms)
        url = None if self._pages is None else self._pages.url
        self._show(Started(bootstrap, url, self._folder, options.data is None, written, os.getpid()))

    def _show(self, started: Started) -> None:
        console = self._console
        if console.as_json:
            console.json_line(introduction.as_json(started))
        else:
            for line in introduction.lines(started):
                console.print(line)
        if self._options.demo and not started.written:
            console.warn("the topics of the sample data exist already; nothing was written")
        console.out.flush()

    def _introduced(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            self._stopped.set()


def settings_of(options: UpOptions, folder: str) -> tuple[Settings, list[str]]:
    """The broker's settings and warnings about them; the environment is ignored. Raises SettingsError."""
    listener = {"listeners": f"PLAINTEXT://{pages.HOST}:{options.port}", "log.dirs": folder}
    loaded, warnings = load(None, {}, {**OWN_SETTINGS, **options.settings, **listener})
    return loaded, list(warnings)


def run(options: UpOptions, console: Console) -> None:
    """Serve until SIGINT or SIGTERM. Raises SettingsError, and OSError if the broker cannot start."""
    loop = app.new_event_loop()
    try:
        loop.run_until_complete(_run(options, console, loop))
    finally:
        loop.close()
        interrupts.ignore()


async def _run(options: UpOptions, console: Console, loop: asyncio.AbstractEventLoop) -> None:
    stopped = asyncio.Event()
    for number in interrupts.SIGNALS:
        if not interrupts.is_ignored(number):
            loop.add_signal_handler(number, stopped.set)
    if options.data is not None:
        await _serve(options, console, options.data, stopped)
        return
    folder = tempfile.mkdtemp(prefix=FOLDER_PREFIX)
    try:
        await _serve(options, console, folder, stopped)
    finally:
        await _in_thread(lambda: shutil.rmtree(folder, ignore_errors=True))


async def _serve(options: UpOptions, console: Console, folder: str, stopped: asyncio.Event) -> None:
    path = str(Path(folder).resolve())  # noqa: ASYNC240 - once, before anything runs
    settings, warnings = settings_of(options, path)
    for text in warnings:
        console.warn(text)
    logs = LogSetup(settings, sys.stderr)
    try:
        loop = asyncio.get_running_loop()
        process = sole(settings, OwnThread(loop, "journal"))
        broker = app.Broker(settings, SystemClock(), RealStorage(), [path], loop, process)
        session = UpSession(options, console, path, stopped)
        await app.serve(broker, logs, session, stopped, session.part)
    finally:
        logs.close()


async def _in_thread(work: Callable[[], None]) -> None:
    await asyncio.get_running_loop().run_in_executor(None, work)
