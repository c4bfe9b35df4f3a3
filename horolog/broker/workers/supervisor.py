"""The supervisor process of several workers: it holds what they share, starts and replaces them, and ends them.

It holds the locks of the data folders, the ports and the folder of the workers' sockets, answers over HTTP for all, and passes on what
one worker has for the others. It reads and writes no log: of a broker it imports settings and listeners. When all workers have ended
it merges what they have left (`settling`, imported then). Workers over a store share no data, and each has folders of its own.
"""

from __future__ import annotations

import asyncio
import logging
import os
import platform
import signal
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from horolog.base import interrupts
from horolog.base.clock import Clock, SystemClock
from horolog.broker.base.periodic import Periodic
from horolog.broker.cluster.worker_context import WorkerContext
from horolog.broker.config.listeners import HTTP_LISTEN, http_address, with_port
from horolog.broker.config.settings import Settings
from horolog.broker.log.storage import RealStorage, StorageFault
from horolog.broker.observability.logs import LogSetup
from horolog.broker.observability.notify import READY, STOPPING, notify
from horolog.broker.observability.phase import Phase
from horolog.broker.security.tls_listeners import HTTP, TlsListeners
from horolog.broker.server.start_notes import notes
from horolog.broker.workers import ports, sockets_folder
from horolog.broker.workers.folder_locks import FolderLocks
from horolog.broker.workers.standstill import Standstills
from horolog.broker.workers.tether import ASK_EVERY_S, Tether
from horolog.broker.workers.watching import WorkersServer
from horolog.broker.workers.worker_process import Command, ProcessEnd, WorkerProcess, command_of
from horolog.version import __version__

if TYPE_CHECKING:
    from horolog.broker.base.backup_figures import BackupFigures
    from horolog.broker.server.backup_child import BackupChild, TakeEnds

log = logging.getLogger(__name__)

EXIT_OK, EXIT_CANNOT_START = 0, 1
SIGNALLED = 128
"""Added to the number of the signal that ended a start, for the exit code."""


@dataclass(frozen=True, slots=True)
class WorkerPlan:
    """What the workers share, for as long as any of them runs."""

    settings: Settings
    data_dirs: Sequence[str]
    nodes: tuple[int, ...]
    locks: FolderLocks
    reserved: ports.Reserved
    sockets: str
    tls: TlsListeners

    def orders(self, node: int, *, is_first: bool, http_port: int = 0) -> dict[str, Any]:
        """What the supervisor sends a worker at its start. Settings are passed on as they were read: the file may have changed since.

        `http_port` is where the supervisor answers over HTTP: a worker reports it to clients that ask for the setting.
        """
        place = self.nodes.index(node)
        context = WorkerContext(
            node=node,
            nodes=self.nodes,
            sockets=self.sockets,
            ports=self.reserved.advertised(self.nodes),
            is_first=is_first,
            own_ports=self.reserved.own_ports(place),
            shared_ports=self.reserved.shared_ports(),
        )
        return {
            "context": context.to_json(),
            "settings": static_of(self.settings, node, http_port),
            "data_dirs": list(self.data_dirs),
            "locks": self.locks.descriptors,
        }


def static_of(settings: Settings, node: int, http_port: int = 0) -> dict[str, str]:
    """The settings as given, with the number of this node, and with the port for HTTP if the system has chosen it."""
    given = {key: text for key, text in settings.layers.static.items() if key != "broker.id"}
    if HTTP_LISTEN in given:
        given[HTTP_LISTEN] = with_port(given[HTTP_LISTEN], http_port)
    if settings.horolog_store is not None:
        given["log.dirs"] = ",".join(folder_over_store(str(folder), node) for folder in settings.data_folders)
    return {**given, "node.id": str(node)}


def folder_over_store(data_dir: str, node: int) -> str:
    """Where a worker over a store has its copies; no partition's folder has such a name."""
    return f"{data_dir}/brokers/{node}"


class Supervisor:
    """Runs all workers from start to end; each `WorkerProcess` reports the events of its worker's life."""

    def __init__(
        self,
        plan: WorkerPlan,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        *,
        command: Command = command_of,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self.phase = Phase.STARTING
        self.workers = [
            WorkerProcess(number, node, plan.sockets, self, clock, command) for number, node in enumerate(plan.nodes, 1)
        ]
        self._plan = plan
        self._loop = loop
        self._environ = environ
        self._is_settled = False
        self._has_served = False
        self._all_served = False
        """Whether every worker served when the stop began; if not, none is expected to end well."""
        self._code = EXIT_OK
        self._over: asyncio.Future[None] = loop.create_future()
        self._starting: set[asyncio.Task[None]] = set()
        self._certificate_job: Periodic | None = None
        self._looks: asyncio.TimerHandle | None = None
        self._server: WorkersServer | None = None
        self.standstills: Standstills | None = None
        self._backup: BackupChild | None = None
        if plan.settings.horolog_backup_store is not None:
            self.standstills = Standstills(plan.sockets, loop, lambda: _serving(self.workers))
            self._backup = _backup_of(plan, clock, self.standstills.take)

    def __repr__(self) -> str:
        return f"<Supervisor of {self.workers}, {self.phase.value}>"

    async def serve(self) -> int:
        """Run the workers until all have ended; the exit code. Raises OSError if they cannot be started."""
        self._take_signals()
        try:
            await self._start_http()
            if self.standstills is not None:
                await self.standstills.start()
            for place, worker in enumerate(self.workers):
                if self.phase is Phase.STARTING:
                    await self._start(worker, is_first=place == 0)
            self._look()
            await self._over
        finally:
            if self._backup is not None:
                await self._backup.stop()
            if self.standstills is not None:
                self.standstills.stop()
            await self._leave_nobody()
        if self._has_served:
            if self._plan.settings.horolog_store is None:
                merge(self._plan.locks.paths)
            log.info("stopped")
        return self._code

    def _take_signals(self) -> None:
        self._loop.add_signal_handler(signal.SIGCHLD, self._reap)
        for number in interrupts.SIGNALS:
            if not interrupts.is_ignored(number):
                self._loop.add_signal_handler(number, self.stop, number)

    async def _start_http(self) -> None:
        """Comes first, so that monitoring sees the start."""
        address = http_address(self._plan.settings)
        if address is not None:
            self._server = WorkersServer(self, self._loop)
            self._server.protect(self._plan.settings.horolog_http_token, self._plan.tls.door(HTTP))
            await self._server.start(*address)
            interval_ms = self._plan.settings.horolog_ssl_files_check_interval_ms
            # Workers look after their own.
            self._certificate_job = Periodic(self._loop, self._plan.tls.look, interval_ms)

    async def _start(self, worker: WorkerProcess, *, is_first: bool) -> None:
        http_port = 0 if self._server is None else self._server.port
        orders = self._plan.orders(worker.node, is_first=is_first, http_port=http_port)
        await worker.start(orders, self._plan.locks.descriptors, may_go=self._is_settled)

    async def _leave_nobody(self) -> None:
        """Kill the workers that are left, whatever has happened."""
        self.phase = Phase.STOPPING
        if self._looks is not None:
            self._looks.cancel()
        if self._certificate_job is not None:
            self._certificate_job.stop()
        if self._server is not None:
            self._server.stop()
        for task in self._starting:
            task.cancel()
        while any(worker.pid is not None for worker in self.workers):
            for worker in self.workers:
                worker.kill()
            await asyncio.sleep(0.01)

    def _reap(self) -> None:
        for worker in self.workers:
            worker.reap()

    def _look(self) -> None:
        for worker in self.workers:
            worker.look()
        self._looks = self._loop.call_later(ASK_EVERY_S, self._look)

    # -- events of workers

    def settled(self) -> None:
        self._is_settled = True
        for worker in self.workers:
            if worker.tether is not None:
                worker.tether.go()

    def is_ready(self, worker: WorkerProcess) -> None:
        if worker.starts > 1:
            log.info("worker %s serves again after %.2f s", worker.number, worker.last_absence_s)
        self._tell_who_lives()
        if self.phase is Phase.STARTING and all(one.phase is Phase.READY for one in self.workers):
            self.phase = Phase.READY
            self._has_served = True
            announce(self._plan, self._environ)
            if self._backup is not None:
                self._backup.begin()

    def backup_figures(self) -> BackupFigures | None:
        """What the backup of all workers shows; None without one."""
        return None if self._backup is None else self._backup.figures()

    def is_leaving(self, worker: WorkerProcess) -> None:  # noqa: ARG002 - who is left says it all
        self._tell_who_lives()

    def has_ended(self, worker: WorkerProcess, ending: ProcessEnd) -> None:
        if self.phase is Phase.STOPPING:
            self._one_less(worker, ending)
        elif self.phase is Phase.STARTING:
            self._give_up(worker, ending)
        else:
            self._replace(worker, ending)

    def journal(self, worker: WorkerProcess, number: int) -> None:
        for other in self._others(worker):
            other.journal(number)

    def applied(self, worker: WorkerProcess, number: int) -> None:
        for other in self._others(worker):
            other.applied(worker.node, number)

    def _others(self, worker: WorkerProcess) -> list[Tether]:
        return [one.tether for one in self.workers if one is not worker and one.tether is not None]

    def _tell_who_lives(self) -> None:
        """Skipped while all are being stopped: each finishes its work without the others."""
        if self.phase is Phase.STOPPING:
            return
        live = frozenset(one.node for one in self.workers if one.phase is Phase.READY)
        for one in self.workers:
            if one.tether is not None:
                one.tether.live(live)

    def _replace(self, worker: WorkerProcess, ending: ProcessEnd) -> None:
        """Start a successor, at once or after a pause. End if every worker says that it cannot start: a new start of all may help."""
        log.error("worker %s %s", worker.number, ending)
        pause_s = worker.pause_after(ending)
        if worker.down is not None:
            log.error("worker %s %s", worker.number, worker.down)
        if all(one.cannot_start for one in self.workers):
            log.error("no worker can start: the broker ends")
            self._code = EXIT_CANNOT_START
            self._over.set_result(None)
            return
        task = self._loop.create_task(self._start_again(worker, pause_s))
        self._starting.add(task)
        task.add_done_callback(self._starting.discard)

    async def _start_again(self, worker: WorkerProcess, pause_s: float) -> None:
        await asyncio.sleep(pause_s)
        if self.phase is not Phase.READY:
            return
        try:
            await self._start(worker, is_first=False)
        except OSError as error:
            self.has_ended(worker, ProcessEnd(EXIT_CANNOT_START, str(error)))

    # -- the end

    def stop(self, number: int) -> None:
        """Stop on a signal; during the start it ends the start, as it does with one process."""
        if self.phase is Phase.STOPPING:
            return
        if self.phase is Phase.STARTING:
            self._code = SIGNALLED + number
        else:
            notify(self._environ, STOPPING, "stopping")
            log.info("stopping")
        self._stop_all()

    def _give_up(self, worker: WorkerProcess, ending: ProcessEnd) -> None:
        """A worker that cannot start ends the whole start, with its own message."""
        said = ending.message or f"worker {worker.number} {ending} before it was ready"
        print(f"horolog: {said}", file=sys.stderr)  # noqa: T201 - what a command line does
        self._code = ending.code if ending.code > 0 else EXIT_CANNOT_START
        self._stop_all()

    def _stop_all(self) -> None:
        self._all_served = all(one.phase is Phase.READY for one in self.workers)
        self.phase = Phase.STOPPING
        for worker in self.workers:
            worker.stop()
        self._end_with_the_last()

    def _one_less(self, worker: WorkerProcess, ending: ProcessEnd) -> None:
        if ending.code and self._all_served:
            log.error("worker %s did not stop cleanly: it %s", worker.number, ending)
            self._code = EXIT_CANNOT_START
        self._end_with_the_last()

    def _end_with_the_last(self) -> None:
        if not self._over.done() and all(worker.pid is None for worker in self.workers):
            self._over.set_result(None)


def _serving(workers: Sequence[WorkerProcess]) -> list[Tether]:
    return [one.tether for one in workers if one.phase is Phase.READY and one.tether is not None]


def _backup_of(plan: WorkerPlan, clock: Clock, take_ends: TakeEnds) -> BackupChild:
    """The backup of all that workers write."""
    from horolog.broker.server.backup_child import BackupChild, orders_of

    return BackupChild(orders_of(plan.settings, plan.data_dirs), clock, take_ends)


def merge(paths: Sequence[str]) -> None:
    """Leave the folders as one process does; they also say whether all workers have ended well."""
    from horolog.broker.cluster import settling  # it knows logs: only now

    try:
        settling.merge(RealStorage(), paths)
    except StorageFault as fault:
        log.error("the next start must merge the changes of workers: %s", fault)


def announce(plan: WorkerPlan, environ: Mapping[str, str]) -> None:
    """Announce that all workers serve: where clients connect first, and how many workers there are."""
    shared = ", ".join(f"{one.name} {one.host}:{one.shared}" for one in plan.reserved.listeners)
    folders, count = ", ".join(plan.data_dirs), len(plan.nodes)
    print(f"horolog {__version__} ready on {shared}, data in {folders}, {count} workers", flush=True)  # noqa: T201
    notify(environ, READY, f"ready on {shared}, {count} workers")


def run(settings: Settings, warnings: Iterable[str], workers: int) -> int:
    """Run this many workers until SIGTERM or SIGINT; returns the exit code. Raises SettingsError."""
    logs = LogSetup(settings, sys.stderr)
    try:
        log.info("horolog %s on Python %s, %s workers", __version__, platform.python_version(), workers)
        for level, text in notes(settings, warnings):
            log.log(level, "%s", text)
        return _run(settings, workers)
    except (StorageFault, OSError) as error:
        print(f"horolog: {error}", file=sys.stderr)  # noqa: T201 - what a command line does
        return EXIT_CANNOT_START
    finally:
        interrupts.ignore()
        logs.close()


def _run(settings: Settings, workers: int) -> int:
    """Take everything that workers share, in the order in which one process takes it; the locks are released last."""
    wanted = ports.planned(settings, workers)
    tls = TlsListeners(settings)
    data_dirs = [os.path.realpath(folder) for folder in settings.data_folders]
    nodes = tuple(settings.node_id + place for place in range(workers))
    with ExitStack() as held:
        locks = FolderLocks(data_dirs)
        held.callback(locks.release)
        reserved = ports.Reserved(wanted)
        held.callback(reserved.release)
        sockets = sockets_folder.made(data_dirs[0], os.environ)
        held.callback(sockets_folder.remove, sockets)
        return asyncio.run(_serve(WorkerPlan(settings, data_dirs, nodes, locks, reserved, sockets, tls)))


async def _serve(plan: WorkerPlan) -> int:
    return await Supervisor(plan, asyncio.get_running_loop(), SystemClock()).serve()
