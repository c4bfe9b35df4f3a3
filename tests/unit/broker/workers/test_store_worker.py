"""Workers over a store are brokers of its cluster, each at a port of its own, with folders of its own."""

import asyncio
import os
import signal
from types import SimpleNamespace

import pytest

from horolog.base import interrupts
from horolog.base.clock import SystemClock
from horolog.broker.cluster.worker_context import WorkerContext
from horolog.broker.config.setting_types import SettingsError
from horolog.broker.config.settings import Layers, from_layers
from horolog.broker.server import store_run
from horolog.broker.server.store_run import EXIT_REFUSED, EXPERIMENTAL, OpenedStore
from horolog.broker.workers.shared_listener import SharedListener
from horolog.broker.workers.store_worker import StoreWorker, unused_folders
from horolog.stores.memory_store import MemoryStore
from tests.support.waiting import until
from tests.unit.broker.server.test_over_store import free_port

LOGS = SimpleNamespace(apply=lambda settings: None)
NODES = (10, 11)


class Link:
    """The supervisor's, which may go."""

    def __init__(self):
        self.on_lost, self.failures = lambda: None, []

    def failed(self, message, code):
        self.failures.append((message, code))


class Teller:
    def __init__(self):
        self.broker, self.has_stopped = None, False

    def ready(self, broker):
        self.broker = broker

    def stopping(self):
        self.has_stopped = True


class Workers:
    """Two workers over one store in memory; those that run are brokers in this event loop."""

    def __init__(self, folder):
        self.folder, self.own, self.shared = folder, {node: free_port() for node in NODES}, free_port()

    def worker(self, node, **more):
        context = WorkerContext(
            node,
            NODES,
            str(self.folder),
            {"PLAINTEXT": {one: 20_000 + one for one in NODES}},
            is_first=node == NODES[0],
            own_ports={"PLAINTEXT": self.own[node]},
            shared_ports={"PLAINTEXT": self.shared},
        )
        static = {
            "node.id": str(node),
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "log.dirs": f"{self.folder}/data/brokers/{node}",
            "max.connections": "101",
            "horolog.store": "s3://bucket/prefix",
            "horolog.http.listen": "127.0.0.1:0",
        }
        settings = from_layers(Layers(static=static | {key.replace("_", "."): value for key, value in more.items()}))
        return StoreWorker(context, settings, [f"{self.folder}/data"])


def names_in(folder):
    return {one.name for one in folder.iterdir()}


@pytest.fixture
def workers(tmp_path, monkeypatch):
    store = MemoryStore(SystemClock())
    monkeypatch.setattr(interrupts, "SIGNALS", (signal.SIGUSR1,))
    monkeypatch.setattr(store_run, "opened", lambda settings: OpenedStore(store, [store]))
    (tmp_path / "data").mkdir()
    return Workers(tmp_path)


async def test_workers_are_brokers_of_one_cluster(workers, caplog):
    tellers, links, running = [Teller(), Teller()], [Link(), Link()], []
    for node, teller, link in zip(NODES, tellers, links, strict=True):
        running.append(asyncio.create_task(workers.worker(node).serve(link, LOGS, teller)))
        await until(lambda teller=teller: teller.broker is not None)
    first, second = (teller.broker for teller in tellers)
    await until(lambda: len(first.placement.brokers("PLAINTEXT")) == 2)
    for broker in (first, second):
        told = [(one.node, one.host, one.port) for one in broker.placement.brokers("PLAINTEXT")]
        assert told == [(10, "127.0.0.1", 20_010), (11, "127.0.0.1", 20_011)]
        assert broker.settings.max_connections == 51
        (listener,) = broker.listeners
        assert isinstance(listener, SharedListener)
    assert (first.listeners[0].port, second.listeners[0].port) == tuple(workers.own.values())
    assert names_in(workers.folder / "data/brokers") == {"10", "11"}
    assert names_in(workers.folder) >= {"10.http", "11.http"}
    assert [record.getMessage() for record in caplog.records].count(EXPERIMENTAL) == 1
    # The one that has the signals is the second: it has started last.
    os.kill(os.getpid(), signal.SIGUSR1)
    assert await running[1] == 0
    assert tellers[1].has_stopped
    running[0].cancel()
    await asyncio.gather(running[0], return_exceptions=True)


async def test_a_worker_ends_with_its_supervisor(workers, monkeypatch):
    killed, link = [], Link()
    monkeypatch.setattr(os, "kill", lambda *given: killed.append(given))

    async def run_in_loop(*_):
        link.on_lost()

    monkeypatch.setattr(store_run, "run_in_loop", run_in_loop)
    assert await workers.worker(11).serve(link, LOGS, Teller()) == 0
    link.on_lost()
    assert killed == [(os.getpid(), signal.SIGTERM)]


async def test_a_refusal_reaches_the_supervisor(workers):
    link = Link()
    (workers.folder / "data/t-0").mkdir()
    assert await workers.worker(10).serve(link, LOGS, Teller()) == EXIT_REFUSED
    ((said, code),) = link.failures
    assert code == EXIT_REFUSED
    assert said.startswith(f"{workers.folder}/data has partitions that are in no store")


async def test_what_brokers_over_a_store_do_not_do_is_refused(workers):
    with pytest.raises(SettingsError, match="only a copy"):
        await workers.worker(10, horolog_read_only="true").serve(Link(), LOGS, Teller())


async def test_folders_of_workers_that_do_not_run_any_more_are_named(workers, monkeypatch, caplog):
    caplog.set_level("INFO")
    for node in (10, 12, 13):
        (workers.folder / f"data/brokers/{node}").mkdir(parents=True)
    assert list(unused_folders([str(workers.folder / "none")], NODES)) == []

    async def run_in_loop(*_):
        pass

    monkeypatch.setattr(store_run, "run_in_loop", run_in_loop)
    await workers.worker(10).serve(Link(), LOGS, Teller())
    said = [record.getMessage() for record in caplog.records if "you can delete it" in record.getMessage()]
    assert [line.partition(": it has")[0] for line in said] == [
        f"no worker uses {workers.folder}/data/brokers/{node}" for node in (12, 13)
    ]
