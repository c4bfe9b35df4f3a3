"""Runs a broker over a store: refuses what cannot be served, and registers again, with a new WAL, whenever the broker is fenced.

A store that refuses ends the start with one line and exit code 2. One that does not answer is waited for.
"""

from __future__ import annotations

import asyncio
import logging
import os
import platform
import socket
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from horolog.base import interrupts
from horolog.base.clock import Clock, SystemClock
from horolog.broker.base import one_port
from horolog.broker.bucket import store_folder
from horolog.broker.bucket.names import LOG, key
from horolog.broker.bucket.registration import ImportUnfinished, TwoOfOneNumber
from horolog.broker.bucket.sealed_lines import FormatError
from horolog.broker.bucket.store_clock import StoreClock
from horolog.broker.bucket.store_folder import FolderOfAnother
from horolog.broker.config.listeners import advertised_addresses, listen_addresses
from horolog.broker.config.setting_types import SettingsError
from horolog.broker.log.manager import partition_of, refuse_another_node
from horolog.broker.log.storage import DataFolderError, RealStorage, Storage, StorageFault
from horolog.broker.network.descriptors import raise_limit
from horolog.broker.observability.logs import LogSetup
from horolog.broker.security.peer_access import peer_access
from horolog.broker.server import app
from horolog.broker.server.hot_path import HOT_PATH
from horolog.broker.server.over_store import NO_PORTS, OverStore, StoppedEarly, StoreUse, use_of
from horolog.broker.server.process import new_listener
from horolog.broker.server.start_notes import notes
from horolog.stores import start_check
from horolog.stores.addresses import ways_to
from horolog.stores.faults import StoreError
from horolog.stores.opening import open_store
from horolog.stores.requests import ThreadedRequests
from horolog.stores.start_check import StoreRefused
from horolog.version import __version__

if TYPE_CHECKING:
    from horolog.broker.config.listeners import Address
    from horolog.broker.config.settings import Settings
    from horolog.broker.network.listener import Listener
    from horolog.broker.server.process import BrokerProcess
    from horolog.stores.object_store import ObjectStore
    from horolog.stores.requests import StoreRequests

log = logging.getLogger(__name__)

EXIT_REFUSED = 2
REFUSALS = (StoreRefused, TwoOfOneNumber, ImportUnfinished, FolderOfAnother, FormatError)
"""What ends a start with that code."""
LEAVES_WITHIN_S = 10.0
SILENT_AT_STOP = "the store did not answer before the stop: the other brokers fence this one"
REQUESTS_AT_ONCE = 16
EXPERIMENTAL = "brokers over a store are experimental: see docs/cluster.md for what they do not do yet"
ASKS_EVERY_S = 2.0
SAYS_EVERY_S = 60.0


class OpenedStore(NamedTuple):
    """A store as a broker opens it, and the ways to it that its start tries."""

    store: ObjectStore
    ways: Sequence[ObjectStore]


class BrokerPart(NamedTuple):
    """The differences of one broker: a worker among several, or one whose ports the system chooses."""

    folders: Sequence[str] = ()
    """The folders that the workers share: these, too, may have copies only of what the cluster's store has."""
    ports: Mapping[str, int] = NO_PORTS
    """Its advertised port, by the listener."""
    fitted: Callable[[BrokerProcess], BrokerProcess] = lambda process: process
    """Makes its process of that of a broker that is alone on its machine."""


def refuse_settings(settings: Settings) -> None:
    """Refuse what brokers over a store do not do. Raises SettingsError."""
    if settings.horolog_read_only:
        raise SettingsError(
            "horolog.read.only",
            "true",
            "the folder of a broker over a store is only a copy; unset this, or horolog.store",
        )
    peer_access(settings)


def opened(settings: Settings) -> OpenedStore:
    """The store that the settings name. Raises SettingsError."""
    url = settings.horolog_store or ""
    try:
        store = open_store(url, settings.horolog_store_endpoint or "")
    except StoreError as error:
        raise SettingsError("horolog.store", None, str(error)) from None
    return OpenedStore(store, ways_to(store.place))


def run_as_set(settings: Settings, warnings: Iterable[str]) -> int:
    """Run a broker over the store that its settings name; the exit code. Raises SettingsError."""
    return run(settings, (*warnings, EXPERIMENTAL), opened(settings), use_of(settings))


def run(
    settings: Settings,
    warnings: Iterable[str],
    store: OpenedStore,
    of_store: StoreUse,
    teller: app.Teller | None = None,
) -> int:
    """Run a broker until SIGTERM or SIGINT; the exit code. Raises SettingsError."""
    refuse_settings(settings)
    logs = LogSetup(settings, sys.stderr)
    log.info("horolog %s on Python %s, the hot path is %s", __version__, platform.python_version(), HOT_PATH)
    for level, text in notes(settings, warnings):
        log.log(level, "%s", text)
    raise_limit()
    loop = app.new_event_loop()
    try:
        folders = [os.path.realpath(folder) for folder in settings.data_folders]
        loop.run_until_complete(
            run_in_loop(settings, store, of_store, logs, teller or app.Announcer(folders), at_free_ports(settings))
        )
        log.info("stopped")
        return app.EXIT_OK
    except REFUSALS as error:
        return _ended(error, EXIT_REFUSED)
    except (DataFolderError, StorageFault, OSError) as error:
        return _ended(error, app.EXIT_CANNOT_START)
    finally:
        loop.close()
        interrupts.ignore()
        logs.close()


def _ended(error: Exception, code: int) -> int:
    print(f"horolog: {error}", file=sys.stderr)  # noqa: T201 - what a command line does
    return code


async def run_in_loop(
    settings: Settings, store: OpenedStore, of_store: StoreUse, logs: LogSetup, teller: app.Teller, part: BrokerPart
) -> None:
    """Run a broker until a signal. Raises what `REFUSALS` has, and what any start raises."""
    loop = asyncio.get_running_loop()
    clock = SystemClock()
    offset_ms = await checked(store.ways, clock)
    of_store = of_store._replace(clock=StoreClock(clock, offset_ms))
    requests = ThreadedRequests(store.store, loop.call_soon_threadsafe, REQUESTS_AT_ONCE)
    await serve(settings, requests, of_store, logs, teller, part)


async def checked(ways: Sequence[ObjectStore], clock: Clock) -> int:
    """How far the store's clock is ahead of ours, in milliseconds; waits for a store that does not answer. Raises StoreRefused."""
    said_s, said = float("-inf"), ""
    while True:
        try:
            return await asyncio.to_thread(start_check.check, ways, clock, key(LOG, 0))
        except StoreError as fault:
            if str(fault) != said or clock.monotonic() - said_s >= SAYS_EVERY_S:
                said_s, said = clock.monotonic(), str(fault)
                log.warning("waiting for the store: %s", fault)
        await asyncio.sleep(ASKS_EVERY_S)


async def serve(
    settings: Settings,
    store: StoreRequests,
    of_store: StoreUse,
    logs: LogSetup,
    teller: app.Teller,
    part: BrokerPart,
) -> None:
    """Serve until a signal. Raises TwoOfOneNumber if another process has this broker's number."""
    serving = _Serving(settings, store, of_store, logs, teller, part)
    try:
        while await serving.once():
            log.warning("broker %s registers again", settings.node_id)
    except StoppedEarly:
        return


class _Serving:
    """The incarnations of one broker, one after the other; a `Teller` to each."""

    _over: OverStore

    def __init__(
        self,
        settings: Settings,
        store: StoreRequests,
        of_store: StoreUse,
        logs: LogSetup,
        teller: app.Teller,
        part: BrokerPart,
    ) -> None:
        self._settings, self._store, self._of_store = settings, store, of_store
        self._logs, self._teller, self._part = logs, teller, part
        self._stopped = asyncio.Event()
        self._fenced_count = 0
        self._storage = RealStorage()
        self._before = store_folder.ended_wal(self._storage, self._folders, socket.gethostname())

    @property
    def _folders(self) -> list[str]:
        return [os.path.realpath(folder) for folder in self._settings.data_folders]

    async def once(self) -> bool:
        """One incarnation, from its registration to its end; whether another one is to follow."""
        loop = asyncio.get_running_loop()
        over = self._over = OverStore(self._settings, self._store, self._of_store, loop, self._part.ports)
        self._handle_signals()
        over.report.fenced_count = self._fenced_count
        process = await self._registered(over)
        self._before = over.wal  # which has ended when the next one registers
        try:
            broker = app.Broker(
                self._settings, SystemClock(), self._storage, self._folders, loop, self._part.fitted(process)
            )
            over.attach(broker)
            await app.serve(broker, self._logs, self, over.ended, partial(self._leave, over))
        except Exception:
            await self._withdraw(over)
            raise
        if over.successor is not None:
            raise TwoOfOneNumber(
                f"node.id={self._settings.node_id} is in use: another broker with this id runs at {over.successor.host}"
            )
        self._fenced_count = over.report.fenced_count
        return over.is_fenced and not self._stopped.is_set()

    def _refuse_folders(self, cluster_id: str) -> None:
        refuse_folders(self._storage, [*self._folders, *self._part.folders], cluster_id)
        for folder in self._folders:
            refuse_another_node(self._storage, folder, self._settings.node_id)

    def _handle_signals(self) -> None:
        for number in interrupts.SIGNALS:
            if not interrupts.is_ignored(number):
                asyncio.get_running_loop().add_signal_handler(number, self._stop)

    def _stop(self) -> None:
        self._stopped.set()
        self._over.ended.set()

    def ready(self, broker: app.Broker) -> None:
        self._handle_signals()  # in place of those of a broker that is not to begin again
        self._teller.ready(broker)

    def stopping(self) -> None:
        """A fenced broker goes on."""
        if not self._over.is_fenced:
            self._teller.stopping()

    async def _registered(self, over: OverStore) -> BrokerProcess:
        """Raises StoppedEarly if a signal comes before: the broker is no member then, if the store answers in time."""
        steps = asyncio.ensure_future(over.register(self._before, self._refuse_folders))
        stopped = asyncio.ensure_future(self._stopped.wait())
        await asyncio.wait((steps, stopped), return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if over.is_registering:
            await asyncio.wait((steps,), timeout=LEAVES_WITHIN_S)
        if steps.done():
            return steps.result()
        if over.is_registering:
            log.error(SILENT_AT_STOP)
        steps.cancel()
        raise StoppedEarly

    async def _withdraw(self, over: OverStore) -> None:
        """Leave the cluster before the start fails: others would give this broker partitions."""
        try:
            await asyncio.wait_for(over.withdraw(), LEAVES_WITHIN_S)
        except (TimeoutError, FormatError) as error:
            log.error(
                "this broker could not leave the cluster, so the others fence it: %s", str(error) or "no answer in time"
            )

    async def _leave(self, over: OverStore) -> None:
        try:
            await asyncio.wait_for(over.leave(), LEAVES_WITHIN_S)
        except TimeoutError:
            log.error(SILENT_AT_STOP)


def at_free_ports(settings: Settings) -> BrokerPart:
    """A broker that has a port for each listener that asks for any free one before it registers: the others send requests there."""
    free = {one.name: one_port.free(one.host) for one in listen_addresses(settings) if not one.port}
    bound = {one.name: free.get(one.name, one.port) for one in listen_addresses(settings)}
    advertised = advertised_addresses(settings, socket.gethostname())

    def listener_at(address: Address, *others: Any) -> Listener:
        return new_listener(replace(address, port=bound[address.name]), *others)

    return BrokerPart(
        ports={name: bound[name] for name, one in advertised.items() if not one.port},
        fitted=lambda process: replace(process, new_listener=listener_at),
    )


def refuse_folders(storage: Storage, folders: Iterable[str], cluster_id: str) -> None:
    """Refuse folders with something else than copies of what this cluster's store has. Raises FolderOfAnother and StorageFault."""
    for folder in folders:
        if storage.is_dir(folder):
            has_partitions = any(partition_of(name) is not None for name in storage.list_dir(folder))
            store_folder.refuse_another(storage, folder, cluster_id, has_partitions=has_partitions)
