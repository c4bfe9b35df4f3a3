"""Several workers as real processes: they start and end together, and one that ends has a successor."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from horolog import Admin, Producer
from horolog.broker.log.storage import FolderInUse, RealStorage
from tests.support.broker_process import BrokerProcess
from tests.support.waiting import wait_until
from tests.support.worker_processes import is_running, resident_mib, workers_of

LOCK = ".lock"
PARTITIONS = 6


@pytest.fixture
def brokers(tmp_path):
    """Makes brokers of so many workers, and leaves no process behind."""
    made, pids = [], set()

    def make(workers=2, **settings):
        given = {"horolog.workers": str(workers), **{key.replace("_", "."): text for key, text in settings.items()}}
        broker = BrokerProcess(tmp_path / "data", given)
        made.append(broker)
        broker.seen = pids
        return broker

    yield make
    for broker in made:
        if broker.running:
            pids.update(workers_of(broker).values())
            broker.kill()
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            if is_running(pid):
                os.kill(pid, signal.SIGKILL)


def start(broker):
    broker.start()
    broker.seen.update(workers_of(broker).values())
    return broker


def is_locked(folder):
    try:
        RealStorage().lock(f"{folder}/{LOCK}").release()
    except FolderInUse:
        return True
    return False


async def described(address):
    async with Admin(address) as admin:
        return await admin.describe_cluster()


async def produced(address, count=12):
    """Send to every partition, and say where each went."""
    async with Admin(address) as admin:
        if "t" not in await admin.topics():
            await admin.create_topic("t", PARTITIONS)
    async with Producer(address) as producer:
        for number in range(count):
            await producer.send_and_wait("t", b"%d" % number, partition=number % PARTITIONS)


def free_ports(count):
    """So many ports in a row that nobody has."""
    for first in range(20_000 + os.getpid() % 9_000, 60_000, count):
        with contextlib.ExitStack() as held:
            try:
                for port in range(first, first + count):
                    held.enter_context(socket.socket()).bind(("127.0.0.1", port))
            except OSError:
                continue
            return first
    raise AssertionError("no ports")


def asked(port, path):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=20) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as answer:
        return answer.code, answer.read().decode()


@pytest.mark.parametrize("workers", [2, 3])
def test_they_start_and_stop_together_and_clients_see_brokers(brokers, workers):
    broker = start(brokers(workers))
    assert f"{workers} workers" in broker.ready_line
    pids = workers_of(broker)
    assert sorted(pids) == list(range(1, workers + 1))
    cluster = asyncio.run(described(broker.address))
    assert [one.id for one in cluster.nodes] == list(range(1, workers + 1))
    ports = {one.port for one in cluster.nodes}
    assert len(ports) == workers
    assert broker.port not in ports, "who is sent to the shared port could land anywhere"
    for one in cluster.nodes:
        assert asyncio.run(described(f"{one.host}:{one.port}")).nodes == cluster.nodes
    asyncio.run(produced(broker.address))
    assert broker.stop() == 0
    assert not any(map(is_running, pids.values()))
    assert not is_locked(broker.data)
    assert "[worker=2]" in broker.log() or "worker" in broker.log()


@pytest.mark.slow
def test_the_folder_is_opened_by_any_number_of_workers(brokers):
    for workers in (1, 2, 3, 1):
        broker = start(brokers(workers))
        asyncio.run(produced(broker.address))
        assert broker.stop() == 0, broker.log()
    broker = start(brokers(2))

    async def counts():
        async with Admin(broker.address) as admin:
            return await admin.topics()

    assert asyncio.run(counts()) == ["t"]
    assert broker.stop() == 0


class TestOneIsKilled:
    def test_the_others_go_on_and_it_has_a_successor(self, brokers, record_property):
        broker = start(brokers(2))
        asyncio.run(produced(broker.address))
        before = workers_of(broker)
        cluster = asyncio.run(described(broker.address))
        other = next(one for one in cluster.nodes if one.id == 1)
        os.kill(before[2], signal.SIGKILL)
        asyncio.run(described(f"{other.host}:{other.port}"))
        absence_s = wait_until(lambda: "worker 2 serves again" in broker.log(), what=broker.log())
        record_property("absence_s", absence_s)
        after = workers_of(broker)
        broker.seen.update(after.values())
        assert (after[1], after[2] != before[2]) == (before[1], True)
        assert asyncio.run(described(broker.address)).nodes == cluster.nodes, "on the same ports"
        asyncio.run(produced(broker.address))
        assert "worker 2 was ended by SIGKILL" in broker.log()
        assert broker.stop() == 0

    def test_the_first_too(self, brokers):
        broker = start(brokers(2))
        os.kill(workers_of(broker)[1], signal.SIGKILL)
        wait_until(lambda: "worker 1 serves again" in broker.log(), what=broker.log())
        broker.seen.update(workers_of(broker).values())
        asyncio.run(produced(broker.address))
        assert broker.stop() == 0


def test_one_that_is_told_to_stop_by_itself_is_replaced(brokers):
    broker = start(brokers(2))
    os.kill(workers_of(broker)[2], signal.SIGTERM)
    wait_until(lambda: "worker 2 serves again" in broker.log(), what=broker.log())
    broker.seen.update(workers_of(broker).values())
    assert broker.stop() == 0


@pytest.mark.slow
def test_one_that_ends_five_times_in_a_minute_is_told_and_tried_again(brokers):
    watched = free_ports(1)
    broker = start(brokers(2, horolog_http_listen=f"127.0.0.1:{watched}"))
    for again in range(1, 6):
        pid = until_served(broker, 2)
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: broker.log().count("worker 2 was ended by SIGKILL") == again, what=broker.log())  # noqa: B023
    assert "worker 2 has been down since " in broker.log()
    status, body = asked(watched, "/health")
    assert (status, list(json.loads(body)["down"])) == (503, ["2"])
    status, body = asked(watched, "/ready")
    assert status == 503
    assert "worker 2: it has been down since " in json.loads(body)["reasons"][0]
    until_served(broker, 2)
    wait_until(lambda: asked(watched, "/ready")[0] == 200)
    assert asked(watched, "/health")[0] == 200
    asyncio.run(produced(broker.address))
    assert broker.stop() == 0


def until_served(broker, number):
    """Wait until a worker serves; its process id."""
    serves = f"worker {number} serves again"
    replaced = broker.log().count(f"worker {number} was ended by")
    wait_until(lambda: broker.log().count(serves) == replaced, what=broker.log())
    pids = workers_of(broker)
    broker.seen.update(pids.values())
    return pids[number]


@pytest.mark.slow
def test_one_that_hangs_is_replaced(brokers):
    broker = start(brokers(2))
    os.kill(workers_of(broker)[2], signal.SIGSTOP)
    took_s = wait_until(lambda: "worker 2 serves again" in broker.log(), 40.0, broker.log())
    broker.seen.update(workers_of(broker).values())
    assert took_s > 9.0, "it is waited for before"
    assert "worker 2 has not responded for 10 s" in broker.log()
    assert broker.stop() == 0


def test_workers_end_with_the_process_that_has_started_them_and_nobody_gets_the_folder_before(brokers):
    broker = start(brokers(3))
    pids = workers_of(broker).values()
    os.kill(broker.pid, signal.SIGKILL)
    deadline = time.monotonic() + 60
    while is_locked(broker.data):
        assert time.monotonic() < deadline
    assert not any(map(is_running, pids)), "the lock was held for them"
    broker.kill()
    start(broker)
    assert broker.stop() == 0


@pytest.mark.parametrize("workers", [1, 2])
def test_a_start_waits_for_workers_whose_supervisor_was_killed_while_they_imported(brokers, workers):
    killed = brokers(2)
    process = subprocess.Popen(killed.command(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(lambda: Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text())
    killed.seen.update(map(int, Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()))
    process.kill()
    broker = start(brokers(workers))
    process.wait()
    assert not any(map(is_running, killed.seen - set(workers_of(broker).values())))
    assert broker.stop() == 0


def test_one_process_is_refused_while_workers_have_the_folder(brokers):
    broker = start(brokers(2))
    other = brokers(1)
    ended = subprocess.run(other.command(), capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 1
    assert "is in use by another broker" in ended.stderr.splitlines()[-1]
    assert broker.stop() == 0


class TestStartsThatFail:
    def outcome(self, broker):
        """Exit code, what was printed, and the last line of the standard error."""
        ended = subprocess.run(broker.command(), capture_output=True, text=True, timeout=60, check=False)
        return ended.returncode, ended.stdout, ended.stderr.splitlines()[-1]

    @pytest.mark.parametrize(
        "settings",
        [
            {"horolog.worker.ports": "PLAINTEXT:x"},
            {"max.connections.per.ip.overrides": "nonsense"},
            {"advertised.listeners": "OTHER://x:1"},
        ],
    )
    def test_bad_settings(self, brokers, settings):
        code, said, last = self.outcome(brokers(2, **settings))
        assert (code, said) == (2, "")
        assert last.startswith(f"horolog: {next(iter(settings))}=")

    def test_a_port_that_is_taken_is_told_as_one_process_tells_it(self, brokers):
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen(1)
            port = other.getsockname()[1]
            outcomes = []
            for workers in (1, 2):
                broker = brokers(workers)
                broker.port = port
                outcomes.append(self.outcome(broker))
        assert outcomes[0] == outcomes[1]
        assert outcomes[1][:2] == (1, "")
        assert str(port) in outcomes[1][2]

    def test_a_workers_own_port_that_is_taken(self, brokers):
        first = free_ports(3)
        with socket.socket() as other:
            other.bind(("127.0.0.1", first + 2))
            other.listen(1)
            broker = brokers(2, horolog_worker_ports=str(first + 1))
            broker.port = first
            code, _, last = self.outcome(broker)
        assert (code, str(first + 2) in last) == (1, True)

    def test_a_folder_of_another_node_is_refused_with_the_words_of_one_process(self, brokers):
        start(brokers(1)).stop()
        outcomes = [self.outcome(brokers(workers, **{"node.id": "7"})) for workers in (1, 2)]
        assert outcomes[0] == outcomes[1]
        assert outcomes[1][0] == 1
        assert "belongs to node.id=1" in outcomes[1][2]


@pytest.mark.parametrize("delay_s", [0.05, 0.15, 0.3])
def test_a_start_that_is_told_to_stop_ends_and_leaves_nobody(brokers, delay_s, tmp_path):
    broker = brokers(3)
    process = subprocess.Popen(broker.command(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(delay_s)
    with contextlib.suppress(FileNotFoundError):
        broker.seen.update(map(int, Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()))
    process.send_signal(signal.SIGTERM)
    said, errors = process.communicate(timeout=60)
    assert process.returncode in ({0} if "ready on" in said else {143, -15}), errors
    assert "Traceback" not in errors
    assert not any(map(is_running, broker.seen))
    assert not (tmp_path / "data").exists() or not is_locked(tmp_path / "data")


def test_whoever_watches_asks_one_address(brokers):
    watched = free_ports(1)
    broker = start(brokers(2, horolog_http_listen=f"127.0.0.1:{watched}"))
    asyncio.run(produced(broker.address))
    status, body = asked(watched, "/ready")
    assert (status, json.loads(body)["reasons"]) == (200, [])
    status, body = asked(watched, "/metrics")
    requests = [line for line in body.splitlines() if line.startswith("horolog_requests_total{")]
    assert {'worker="1"', 'worker="2"'} <= {line.partition("{")[2].partition(",")[0] for line in requests}
    assert 'horolog_worker_info{worker="2",state="ready"} 1' in body
    os.kill(workers_of(broker)[2], signal.SIGSTOP)
    status, body = asked(watched, "/ready")
    assert (status, json.loads(body)["reasons"]) == (503, ["worker 2: it does not answer"])
    assert asked(watched, "/health")[0] == 200
    os.kill(workers_of(broker)[2], signal.SIGCONT)
    assert asked(watched, "/ready")[0] == 200
    assert broker.stop() == 0


def test_the_process_that_has_started_them_stays_small(brokers, record_property):
    broker = brokers(2)
    broker.forks = False
    start(broker)
    sizes = {"supervisor": resident_mib(broker.pid)}
    sizes |= {f"worker {number}": resident_mib(pid) for number, pid in workers_of(broker).items()}
    record_property("resident_mib", sizes)
    assert sizes["supervisor"] < 0.75 * sizes["worker 1"]
    assert broker.stop() == 0
