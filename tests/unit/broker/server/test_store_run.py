"""A broker over a store from its start to its end: refusals with their exit codes, and a broker that begins anew."""

import asyncio
import os
import signal
import socket
import tempfile
import threading
from functools import partial
from types import SimpleNamespace

import pytest

from horolog.base import interrupts
from horolog.base.clock import SystemClock
from horolog.broker.bucket.bucket_entries import WalEnded
from horolog.broker.bucket.names import LOG, number_of
from horolog.broker.bucket.registration import TwoOfOneNumber
from horolog.broker.bucket.sealed_lines import FormatError
from horolog.broker.bucket.store_folder import FolderOfAnother
from horolog.broker.config.setting_types import SettingsError
from horolog.broker.config.settings import Layers, from_layers
from horolog.broker.log.storage import MemoryStorage
from horolog.broker.server import app, store_run
from horolog.broker.server.over_store import OverStore, use_of
from horolog.broker.server.store_run import (
    EXPERIMENTAL,
    BrokerPart,
    OpenedStore,
    checked,
    opened,
    refuse_folders,
    refuse_settings,
    run,
    run_as_set,
    serve,
)
from horolog.stores import self_test
from horolog.stores.faults import StoreError
from horolog.stores.memory_store import MemoryStore
from horolog.stores.opening import open_store
from tests.support.hostile_store import ENVIRONMENT, serving
from tests.unit.broker.server.test_over_store import OF_STORE, SOON_S, Brokers, brokers, until

LOGS = SimpleNamespace(apply=lambda settings: None)


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(interrupts, "SIGNALS", (signal.SIGUSR1,))
    monkeypatch.setattr(interrupts, "ignore", lambda: None)
    monkeypatch.setattr(self_test, "_FIRST_PAUSE_SECONDS", 0.001)
    monkeypatch.setattr(store_run, "ASKS_EVERY_S", 0.01)


class Teller:
    def __init__(self):
        self.starts, self.stops = [], []

    def ready(self, broker):
        self.starts.append(broker)

    def stopping(self):
        self.stops.append(len(self.starts))


class LyingStore(MemoryStore):
    """It lets every create succeed."""

    def create(self, key, data):
        self.delete(key)
        return super().create(key, data)


def settings_of(folder, **more):
    static = {"node.id": "1", "listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(folder)}
    return from_layers(Layers(static=static | {key.replace("_", "."): value for key, value in more.items()}))


def begin(made, node, teller):
    return asyncio.ensure_future(serve(made.settings(node), made.new_requests(), OF_STORE, LOGS, teller, BrokerPart()))


async def ended(serving):
    os.kill(os.getpid(), signal.SIGUSR1)
    async with asyncio.timeout(SOON_S):
        await serving


async def test_a_fenced_broker_registers_again_and_a_signal_ends_it(tmp_path):
    async with brokers(tmp_path, 1) as made:
        teller = Teller()
        serving = begin(made, 2, teller)
        await until(lambda: len(teller.starts) == 1 and made[1].nodes == (1, 2))
        wal = made[1].state.wal_of(2)
        made[1].changes.make(lambda state: WalEnded(wal, 0, {}), lambda _: None)
        await until(lambda: len(teller.starts) == 2)
        await until(lambda: made[1].state.wal_of(2) not in {None, wal})
        assert teller.stops == []
        await ended(serving)
        assert teller.stops == [2]
        await until(lambda: made[1].nodes == (1,))


async def test_a_restart_on_the_same_folder_does_not_wait_for_the_lease_of_the_process_before(tmp_path):
    """That process was killed: its folder is free, and says which WAL it wrote."""
    made, teller = Brokers(tmp_path), Teller()
    await made.start(1)
    over, broker = made.running.pop(1)
    over._watch.end()
    over._balancing.cancel()
    await broker.stop()
    serving = begin(made, 1, teller)
    await until(lambda: teller.starts)
    state = teller.starts[0].cluster.state
    assert state.wal_of(1) != over.wal
    assert state.fenced == frozenset()
    await ended(serving)


async def test_a_broker_whose_number_is_taken_ends(tmp_path, monkeypatch):
    made, teller = Brokers(tmp_path), Teller()
    serving = begin(made, 1, teller)
    await until(lambda: teller.starts)
    monkeypatch.setattr(OverStore, "_probe", lambda self, member, done: done(False))  # it stood still
    made.folder = tmp_path / "another machine"
    await made.start(1)
    async with asyncio.timeout(SOON_S):
        with pytest.raises(
            TwoOfOneNumber, match=f"node.id=1 is in use: another broker with this id runs at {socket.gethostname()}"
        ):
            await serving
    await made.stop(1)


async def test_a_signal_ends_a_start_that_waits_for_the_store(tmp_path):
    made, teller = Brokers(tmp_path), Teller()
    silent = SimpleNamespace(create=lambda *_: None)
    serving = asyncio.ensure_future(serve(made.settings(1), silent, OF_STORE, LOGS, teller, BrokerPart()))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await ended(serving)
    assert teller.starts == []


class HeldEntries:
    """Requests to a store that carries out all of them, and holds back its answers to entries of the journal."""

    def __init__(self, requests):
        self._requests = requests
        self.held = []
        self.is_holding = True

    def __getattr__(self, name):
        return getattr(self._requests, name)

    def create(self, key, data, done):
        is_entry = key.startswith(f"{LOG}/") and number_of(key) > 0
        self._requests.create(key, data, partial(self._heard, done) if is_entry else done)

    def _heard(self, done, created):
        if self.is_holding:
            self.held.append(partial(done, created))
        else:
            done(created)

    def let_go(self):
        self.is_holding = False
        for answer in self.held:
            answer()


async def test_a_signal_while_a_broker_registers_leaves_no_member(tmp_path, monkeypatch):
    overs = []
    monkeypatch.setattr(store_run, "OverStore", lambda *given: overs.append(OverStore(*given)) or overs[-1])
    async with brokers(tmp_path, 1) as made:
        requests, teller = HeldEntries(made.new_requests()), Teller()
        serving = asyncio.ensure_future(serve(made.settings(2), requests, OF_STORE, LOGS, teller, BrokerPart()))
        await until(lambda: requests.held and made[1].nodes == (1, 2))
        stopped = asyncio.ensure_future(ended(serving))
        await until(overs[0].ended.is_set)
        requests.let_go()
        await stopped
        await until(lambda: made[1].nodes == (1,))
        assert teller.starts == []


async def test_a_signal_while_a_broker_registers_ends_it_also_if_the_store_is_silent(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(store_run, "LEAVES_WITHIN_S", 0.05)
    async with brokers(tmp_path, 1) as made:
        requests = HeldEntries(made.new_requests())
        serving = asyncio.ensure_future(serve(made.settings(2), requests, OF_STORE, LOGS, Teller(), BrokerPart()))
        await until(lambda: requests.held)
        await ended(serving)
        assert store_run.SILENT_AT_STOP in caplog.text


async def test_a_broker_whose_store_is_gone_ends_all_the_same(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(store_run, "LEAVES_WITHIN_S", 0.05)
    monkeypatch.setattr(OverStore, "leave", lambda _: asyncio.sleep(SOON_S))
    made, teller = Brokers(tmp_path), Teller()
    serving = begin(made, 1, teller)
    await until(lambda: teller.starts)
    await ended(serving)
    assert "the store did not answer before the stop" in caplog.text


async def test_a_store_that_does_not_answer_is_waited_for(caplog):
    store, faults = MemoryStore(SystemClock()), [StoreError("away"), StoreError("away"), StoreError("slow")]
    good = store.get

    def get(key):
        if faults:
            raise faults.pop(0)
        return good(key)

    store.get = get
    assert await checked([store], SystemClock()) == 0
    assert [one.getMessage() for one in caplog.records] == [
        "waiting for the store: away",
        "waiting for the store: slow",
    ]


def test_a_store_that_does_not_keep_the_condition_is_refused_in_one_line(tmp_path, capsys):
    store = LyingStore(SystemClock())
    assert run(settings_of(tmp_path), (), OpenedStore(store, [store]), OF_STORE) == 2
    *_, line = capsys.readouterr().err.splitlines()
    assert line.startswith(
        "horolog: the store cannot be used: create 1 key with 8 writers each at once: 8 of 8 creates of one"
    )
    assert list(store.list()) == []


def test_a_folder_in_use_is_refused(tmp_path, capsys):
    store, settings = MemoryStore(SystemClock()), settings_of(tmp_path)
    from horolog.broker.log.storage import RealStorage

    held = RealStorage().lock(f"{tmp_path}/.lock")
    assert run(settings, (), OpenedStore(store, [store]), OF_STORE) == 1
    held.release()
    assert "is in use by another broker" in capsys.readouterr().err


def test_a_broker_runs_until_a_signal(tmp_path, capsys):
    store = MemoryStore(SystemClock())
    teller, stopper = Teller(), threading.Timer(0, lambda: None)

    class Stopping(Teller):
        def ready(self, broker):
            super().ready(broker)
            os.kill(os.getpid(), signal.SIGUSR1)

    teller = Stopping()
    assert run(settings_of(tmp_path), (), OpenedStore(store, [store]), OF_STORE, teller) == 0
    stopper.cancel()
    assert teller.stops == [1]


@pytest.mark.parametrize(
    ("more", "advertised"),
    [
        ({}, None),
        ({"advertised_listeners": "PLAINTEXT://127.0.0.1:0"}, None),
        ({"advertised_listeners": "PLAINTEXT://outside:7"}, 7),
    ],
)
def test_a_broker_registers_the_port_that_the_system_chose(tmp_path, more, advertised):
    store, found = MemoryStore(SystemClock()), []

    class Stopping(Teller):
        def ready(self, broker):
            (listener,) = broker.listeners
            member = broker.cluster.state.members[1]
            found.append((listener.port, *(one.port for one in member.listeners)))
            os.kill(os.getpid(), signal.SIGUSR1)

    assert run(settings_of(tmp_path, **more), (), OpenedStore(store, [store]), OF_STORE, Stopping()) == 0
    ((bound, registered),) = found
    assert bound
    assert registered == (advertised or bound)


def test_what_brokers_over_a_store_do_not_do_is_refused(tmp_path):
    with pytest.raises(SettingsError, match="only a copy"):
        refuse_settings(settings_of(tmp_path, horolog_read_only="true"))


def test_folders_of_something_else_are_refused_before_the_broker_joins():
    storage = MemoryStorage()
    refuse_folders(storage, ["/data"], "a")
    storage.make_dir("/data")
    refuse_folders(storage, ["/data"], "a")
    storage.make_dir("/data/t-0")
    with pytest.raises(FolderOfAnother, match="in no store"):
        refuse_folders(storage, ["/data"], "a")
    storage.write_atomically("/data/horolog-store", b"b\n")
    with pytest.raises(FolderOfAnother, match="of cluster b, not a: name another folder"):
        refuse_folders(storage, ["/data"], "a")


def test_a_prefix_of_another_cluster_is_refused_before_the_broker_joins_it(tmp_path, capsys):
    store = MemoryStore(SystemClock())
    (tmp_path / "horolog-store").write_text("first\n1-1\nhost\n")
    assert run(settings_of(tmp_path), (), OpenedStore(store, [store]), OF_STORE) == 2
    *_, line = capsys.readouterr().err.splitlines()
    assert line.startswith(f"horolog: {os.path.realpath(tmp_path)} belongs to the store of cluster first, not ")
    assert [one.key for one in store.list()] == [f"meta/log/{0:020}"]


def members_in(store):
    """The members by the journal in a store; a new broker reads it."""
    found = []

    class Reading(Teller):
        def ready(self, broker):
            found.append(broker.cluster.nodes)
            os.kill(os.getpid(), signal.SIGUSR1)

    with tempfile.TemporaryDirectory() as folder:
        assert run(settings_of(folder, node_id="9"), (), OpenedStore(store, [store]), OF_STORE, Reading()) == 0
    return found[0]


def test_a_folder_of_another_number_is_refused_before_the_broker_joins(tmp_path, capsys):
    store = MemoryStore(SystemClock())
    (tmp_path / "meta.properties").write_text("version=1\nnode.id=7\ncluster.id=AAAAAAAAAAAAAAAAAAAAAQ\n")
    assert run(settings_of(tmp_path), (), OpenedStore(store, [store]), OF_STORE) == 1
    assert "belongs to node.id=7, but this broker has node.id=1" in capsys.readouterr().err
    assert [one.key for one in store.list()] == [f"meta/log/{0:020}"]


@pytest.mark.parametrize("setting", ["listeners", "horolog_http_listen"])
def test_a_broker_that_cannot_listen_is_no_member_after_its_start_has_failed(tmp_path, capsys, setting):
    store = MemoryStore(SystemClock())
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        more = {setting: address if "http" in setting else f"PLAINTEXT://{address}"}
        assert run(settings_of(tmp_path, **more), (), OpenedStore(store, [store]), OF_STORE) == 1
    assert f"cannot listen on {address}: address already in use" in capsys.readouterr().err
    assert members_in(store) == (9,)


def test_a_broker_that_cannot_be_built_is_no_member_after_its_start_has_failed(tmp_path, monkeypatch):
    store = MemoryStore(SystemClock())
    with monkeypatch.context() as patched:
        patched.setattr(app, "TlsListeners", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            run(settings_of(tmp_path), (), OpenedStore(store, [store]), OF_STORE)
    assert members_in(store) == (9,)


@pytest.mark.parametrize(("fault", "said"), [(None, "no answer in time"), (FormatError("damaged"), "damaged")])
def test_a_start_that_fails_says_so_also_if_the_broker_cannot_leave(tmp_path, monkeypatch, caplog, fault, said):
    monkeypatch.setattr(store_run, "LEAVES_WITHIN_S", 0.05)

    async def withdraw(_):
        if fault is not None:
            raise fault
        await asyncio.sleep(SOON_S)

    monkeypatch.setattr(OverStore, "withdraw", withdraw)
    monkeypatch.setattr(app, "TlsListeners", lambda _: 1 / 0)
    store = MemoryStore(SystemClock())
    with pytest.raises(ZeroDivisionError):
        run(settings_of(tmp_path), (), OpenedStore(store, [store]), OF_STORE)
    assert f"this broker could not leave the cluster, so the others fence it: {said}" in caplog.text


def test_something_else_in_the_place_of_the_journal_is_refused(tmp_path, capsys):
    store = MemoryStore(SystemClock())
    store.create(f"meta/log/{0:020}", b"of another program")
    assert run(settings_of(tmp_path), (), OpenedStore(store, [store]), OF_STORE) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith("horolog: ")
    assert len(list(store.list())) == 1


@pytest.mark.parametrize(
    ("refuses", "environment", "said"),
    [
        ({"GET": (404, "NoSuchBucket")}, ENVIRONMENT, "there is no bucket lake"),
        ({"GET": (403, "AccessDenied")}, ENVIRONMENT, "access denied"),
        ({"PUT": (403, "AccessDenied")}, ENVIRONMENT, "access denied"),
        ({}, {"HOME": "/nonexistent"}, "no credentials were found"),
    ],
)
def test_a_store_that_refuses_ends_the_start_in_one_line(tmp_path, capsys, monkeypatch, refuses, environment, said):
    pytest.importorskip("obstore")
    with serving(refuses=refuses) as server:
        monkeypatch.setenv("AWS_METADATA_ENDPOINT", server.endpoint)  # the machine's own service, which has none
        store = open_store("s3://lake/f", server.endpoint, environment, 2.0, retries=0)
        assert run(settings_of(tmp_path), (), OpenedStore(store, [store]), OF_STORE) == 2
        *_, line = capsys.readouterr().err.splitlines()
        assert line.startswith("horolog: ")
        assert said in line
        assert server.objects == {}


def test_the_store_is_the_one_that_the_settings_name(tmp_path):
    pytest.importorskip("obstore")
    settings = settings_of(tmp_path, horolog_store=f"file://{tmp_path}/store")
    store = opened(settings)
    assert store.store.place.url == f"file://{tmp_path}/store"
    assert [one.place for one in store.ways] == [store.store.place]
    with pytest.raises(SettingsError, match=r"horolog.store: s3:/b: expected s3://BUCKET/FOLDER, gs://"):
        opened(settings_of(tmp_path, horolog_store="s3:/b"))


def test_a_broker_runs_with_the_store_of_its_settings_and_warns(tmp_path, monkeypatch):
    pytest.importorskip("obstore")
    runs = []
    monkeypatch.setattr(store_run, "run", lambda *given: runs.append(given) or 7)
    settings = settings_of(tmp_path, horolog_store=f"file://{tmp_path}/store")
    assert run_as_set(settings, ["one"]) == 7
    ((_, warnings, store, use),) = runs
    assert (warnings, use) == (("one", EXPERIMENTAL), use_of(settings))
    assert store.store.place.url.endswith("/store")
