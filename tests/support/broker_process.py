"""A broker in a separate process for tests: started on a free port, awaited by its ready line, ended by its process id."""

import contextlib
import os
import re
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from benchmarks.process import children, free_ports, is_alive
from tests.support import forking
from tests.support.forking import Forked

PROJECT = Path(__file__).resolve().parents[2]
READY_TIMEOUT_SECONDS = 90.0
STOP_TIMEOUT_SECONDS = 90.0
_PORT = re.compile(r":(\d+)(?=,|$)")
_ADDRESS = re.compile(r"(127\.0\.0\.1):(\d+)")

TARGET_SETTINGS: dict[str, str] = {
    "auto.create.topics.enable": "true",
    "num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "log.retention.check.interval.ms": "1000",
}
"""The configuration under which the real brokers' answers of `tests/wire` were recorded."""

WORKERS, WORKER_PORTS, WORKERS_VARIABLE = "horolog.workers", "horolog.worker.ports", "HOROLOG_TEST_WORKERS"
"""The default number of a broker's workers: `pytest --workers` sets the variable."""

BROKERS_VARIABLE = "HOROLOG_TEST_BROKERS"
"""So many brokers over one store are started in place of each: `pytest --brokers` sets the variable."""


class BrokerNotReadyError(Exception):
    """The broker ended, or printed no ready line in time; the text contains its output."""


def any_free_port(listeners: str) -> str:
    """Free ports for workers: those after the listener's may be taken by another test or the next listener."""
    return ",".join(f"{one.partition('://')[0]}:0" for one in listeners.split(","))


FIRST_NODE, NODES_APART = 1, 10
OVER_A_STORE = {
    "horolog.store.flush.ms": "5",
    "horolog.store.lease.ms": "10000",
    "horolog.peers.timeout.ms": "10000",
}
"""Brokers of a busy machine do not take each other for dead."""
WITH_PORTS = ("listeners", "advertised.listeners", "horolog.http.listen")


def on_other_ports(settings: Mapping[str, str]) -> dict[str, str]:
    """The same settings for another broker of the cluster."""
    given = {port for key in WITH_PORTS for port in _PORT.findall(settings.get(key, "")) if port != "0"}
    ports = dict(zip(given, map(str, free_ports(len(given))), strict=True)) | {"0": "0"}
    return {
        key: _PORT.sub(lambda found: f":{ports[found[1]]}", value) if key in WITH_PORTS else value
        for key, value in settings.items()
    }


class BrokerProcess:
    """One broker over one data folder; `start` again after `stop` or `kill` serves the same data on the same port."""

    forks = True
    """Whether it begins as a fork of a process that has loaded its modules; else it loads those that it needs."""

    def __init__(self, data: Path, settings: Mapping[str, str] | None = None, *, host: str = "127.0.0.1") -> None:
        self.data = data
        self.settings = dict(settings or {})
        self.host = host
        self.port = 0
        self.ready_line = ""
        self.ready_seconds = 0.0
        self._process: subprocess.Popen[bytes] | Forked | None = None
        self.node = FIRST_NODE
        self.cluster_size = int(os.environ.get(BROKERS_VARIABLE, "1"))
        self._others: list[BrokerProcess] = []

    @classmethod
    def at(cls, address: str) -> "BrokerProcess":
        """An external broker: only its address is known."""
        host, _, port = address.rpartition(":")
        other = cls(Path(), host=host)
        other.port = int(port)
        return other

    def __repr__(self) -> str:
        return f"<BrokerProcess {self.address} {'running' if self.running else 'ended'} data={self.data}>"

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None, "the broker was never started"
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def log_path(self) -> Path:
        """The broker's standard error, over all its starts."""
        return self.data.parent / f"{self.data.name}.stderr"

    def log(self) -> str:
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def command(self) -> list[str]:
        command = [
            *forking.PROGRAM,
            "serve",
            "--data",
            str(self.data),
            "--listen",
            f"{self.host}:{self.port}",
        ]
        asked = os.environ.get(WORKERS_VARIABLE)
        settings = ({WORKERS: asked} if asked else {}) | self._of_store() | self.settings
        if settings.get(WORKERS, "1") != "1":
            settings = {WORKER_PORTS: any_free_port(settings.get("listeners", "PLAINTEXT://"))} | settings
        for key, value in settings.items():
            command += ["--set", f"{key}={value}"]
        return command

    @property
    def _store(self) -> Path:
        """The folder that all brokers of its cluster share."""
        return self.data.parent / f"{self.data.name.partition('-node-')[0]}-store"

    def _of_store(self) -> dict[str, str]:
        if not os.environ.get(BROKERS_VARIABLE):
            return {}
        self._store.mkdir(exist_ok=True)
        return {"horolog.store": f"file://{self._store}", "node.id": str(self.node)} | OVER_A_STORE

    def start(self, ready_within_seconds: float = READY_TIMEOUT_SECONDS) -> "BrokerProcess":
        assert not self.running, "the broker runs already"
        self.data.parent.mkdir(parents=True, exist_ok=True)
        environment = {key: value for key, value in os.environ.items() if not key.startswith("KAFKA_")}
        environment["PYTHONUNBUFFERED"] = "1"
        began = time.monotonic()
        with self.log_path.open("ab") as errors:
            self._process = _started(self.command(), environment, errors, forks=self.forks)
        try:
            self.ready_line = self._read_ready_line(began + ready_within_seconds)
        except BaseException:
            self.kill()
            raise
        self.ready_seconds = time.monotonic() - began
        found = _ADDRESS.search(self.ready_line)
        assert found, f"the ready line names no address: {self.ready_line!r}"
        self.port = int(found[2])
        self._start_others()
        return self

    def _start_others(self) -> None:
        for number in range(len(self._others) + 1, self.cluster_size):
            node = FIRST_NODE + number * NODES_APART
            settings = on_other_ports(self.settings)
            other = type(self)(self.data.with_name(f"{self.data.name}-node-{node}"), settings, host=self.host)
            other.node, other.cluster_size = node, 1
            self._others.append(other)
        for other in self._others:
            if not other.running:
                other.start()

    def _read_ready_line(self, deadline: float) -> str:
        assert self._process is not None
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        said = b""
        with selectors.DefaultSelector() as selector:
            selector.register(descriptor, selectors.EVENT_READ)
            while time.monotonic() < deadline:
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    break
                chunk = os.read(descriptor, 65536)
                said += chunk
                for line in said.decode(errors="replace").splitlines(keepends=True):
                    if line.endswith("\n") and _ADDRESS.search(line):
                        return line.strip()
                if not chunk:
                    with contextlib.suppress(subprocess.TimeoutExpired):  # it ends, and its status is returned
                        self._process.wait(max(1.0, deadline - time.monotonic()))
                    break
        raise BrokerNotReadyError(
            f"no ready line; exit status {self._process.poll()}\n{said.decode(errors='replace')}\n{self.log()[-4000:]}"
        )

    def stop(self, timeout_seconds: float = STOP_TIMEOUT_SECONDS) -> int:
        """Send SIGTERM and wait; returns the exit status. A broker that does not end in time is killed, and that fails the test."""
        for other in self._others:
            other.stop(timeout_seconds)
        return self._end(signal.SIGTERM, timeout_seconds)

    def kill(self) -> int:
        """Send SIGKILL and wait, as after a crash of this one process; its workers, if any, end with it."""
        for other in self._others:
            other.kill()
        workers = children(self.pid) if self.running else []
        code = self._end(signal.SIGKILL, STOP_TIMEOUT_SECONDS)
        deadline = time.monotonic() + STOP_TIMEOUT_SECONDS
        while any(map(is_alive, workers)):
            assert time.monotonic() < deadline, "the workers do not end with their supervisor"
            time.sleep(0.005)
        return code

    def freeze(self) -> None:
        """Stop every thread where it is; only `kill` works afterwards."""
        os.kill(self.pid, signal.SIGSTOP)
        deadline = time.monotonic() + STOP_TIMEOUT_SECONDS
        while not all(_is_stopped(task) for task in Path(f"/proc/{self.pid}/task").iterdir()):
            assert time.monotonic() < deadline, "the broker does not stand still"
            time.sleep(0.001)

    def _end(self, number: signal.Signals, timeout_seconds: float) -> int:
        process = self._process
        if process is None:
            return 0
        if process.poll() is None:
            process.send_signal(number)
        try:
            return process.wait(timeout_seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(STOP_TIMEOUT_SECONDS)
            raise AssertionError(
                f"the broker did not end within {timeout_seconds} s of {number.name}\n{self.log()[-4000:]}"
            ) from None
        finally:
            if process.stdout is not None:
                process.stdout.close()


def _started(
    command: list[str], environ: dict[str, str], errors: IO[bytes], *, forks: bool
) -> subprocess.Popen[bytes] | Forked:
    if forks and forking.can_start(command, environ):
        return forking.forker().start(command[len(forking.PROGRAM) :], environ, PROJECT, errors)
    return subprocess.Popen(
        command, cwd=PROJECT, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors
    )


def _is_stopped(task: Path) -> bool:
    return task.joinpath("stat").read_text().rpartition(")")[2].split()[0] == "T"
