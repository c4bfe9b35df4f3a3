"""One worker's process: `python -m horolog.broker.workers.worker NUMBER DESCRIPTOR`, which only the supervisor runs.

The number is for people who look at processes; the descriptor is the link's, and all else comes over it.
"""

import sys

from horolog.base import interrupts
from horolog.broker.server.hot_path import HOT_PATH
from horolog.broker.workers import orphans

if __name__ == "__main__":  # also while the rest is imported
    interrupts.own_process()
    orphans.end_with_supervisor(int(sys.argv[2]))

import asyncio
import logging
import os
import socket
from collections.abc import Mapping, Sequence
from typing import Any

from horolog.base.clock import SystemClock
from horolog.broker.cluster.legible_record import until_legible
from horolog.broker.cluster.link import WorkerLink, receive_orders
from horolog.broker.cluster.worker_context import WorkerContext
from horolog.broker.config.setting_types import SettingsError
from horolog.broker.config.settings import Layers, Settings, from_layers
from horolog.broker.log.storage import DataFolderError, RealStorage, StorageFault
from horolog.broker.network.descriptors import raise_limit
from horolog.broker.observability.logs import LogSetup
from horolog.broker.server import app
from horolog.broker.workers.of_worker import of_worker
from horolog.broker.workers.serve import EXIT_BAD_SETTINGS
from horolog.broker.workers.standstill import stand_still

log = logging.getLogger("horolog.broker.workers.worker")  # also where this runs as a program


class Orders:
    """What the supervisor has sent."""

    def __init__(self, sent: Mapping[str, Any]) -> None:
        self.context = WorkerContext.from_json(sent["context"])
        self.settings: Settings = from_layers(Layers(static=sent["settings"]))
        self.data_dirs: list[str] = sent["data_dirs"]
        self.locks: list[int] = sent["locks"]

    def __repr__(self) -> str:
        return f"<Orders for {self.context}>"


class ToSupervisor:
    """Reports the broker's progress to the supervisor."""

    def __init__(self, link: WorkerLink) -> None:
        self._link = link

    def ready(self, broker: app.Broker) -> None:  # noqa: ARG002 - that it is, says it all
        self._link.ready()

    def stopping(self) -> None:
        self._link.stopping()


def run(orders: Orders, connected: socket.socket) -> int:
    """Run the broker until the supervisor wants it to end; the exit code."""
    logs = LogSetup(orders.settings, sys.stderr, **orders.context.labels)
    if orders.context.is_first:
        log.info("the hot path is %s", HOT_PATH)
    raise_limit()
    loop = app.new_event_loop()
    try:
        return loop.run_until_complete(_reported(orders, connected, logs))
    finally:
        loop.close()
        interrupts.ignore()
        logs.close()


async def _reported(orders: Orders, connected: socket.socket, logs: LogSetup) -> int:
    """Run the broker. If it cannot start, the reason goes to the supervisor, which prints it once for all workers."""
    link = WorkerLink(orders.context.node, asyncio.get_running_loop(), SystemClock().monotonic)
    await link.connect(connected)
    try:
        if orders.settings.horolog_store is None:
            await _serve(orders, link, logs)
        else:
            from horolog.broker.workers.store_worker import StoreWorker

            worker = StoreWorker(orders.context, orders.settings, orders.data_dirs)
            return await worker.serve(link, logs, ToSupervisor(link))
    except SettingsError as error:
        link.failed(str(error), EXIT_BAD_SETTINGS)
        return EXIT_BAD_SETTINGS
    except (DataFolderError, StorageFault, OSError) as error:
        link.failed(str(error), app.EXIT_CANNOT_START)
        return app.EXIT_CANNOT_START
    finally:
        await link.close()
    return app.EXIT_OK


async def _serve(orders: Orders, link: WorkerLink, logs: LogSetup) -> None:
    context = orders.context
    stopped = asyncio.Event()
    link.on_lost = stopped.set
    storage, clock = RealStorage(), SystemClock()
    if context.is_first:
        from horolog.broker.cluster import settling

        settling.settle(storage, orders.data_dirs, clock, orders.settings, context.nodes)
        link.settled()
    await link.go()
    await until_legible(storage, orders.data_dirs, link)
    loop = asyncio.get_running_loop()
    process = of_worker(context, link, loop)
    broker = app.Broker(orders.settings, clock, storage, orders.data_dirs, loop, process)
    if orders.settings.horolog_backup_store is not None:
        from horolog.broker.server.backup_child import ends_of

        link.on_stand = lambda number: (
            ends_of(broker.logs.partitions) if stand_still(context.sockets, number, clock.monotonic) else None
        )
    await app.serve(broker, logs, ToSupervisor(link), stopped)


def main(arguments: Sequence[str]) -> int:
    _, descriptor = arguments
    connected = socket.socket(fileno=int(descriptor))
    try:
        sent = receive_orders(connected)
    except ConnectionError:
        return app.EXIT_CANNOT_START
    orders = Orders(sent)
    for inherited in (connected.fileno(), *orders.locks):
        os.set_inheritable(inherited, False)
    connected.setblocking(False)
    return run(orders, connected)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
