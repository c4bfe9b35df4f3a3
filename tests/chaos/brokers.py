"""Brokers of one cluster as processes, each with a folder and a port of its own, and the faults that befall them and their store."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.process import free_ports
from horolog.broker.prefix.findings import is_fault
from horolog.broker.prefix.verifying import verify
from horolog.stores.opening import open_store
from tests.chaos.plan import Event
from tests.support import s3_server, store_proxy
from tests.support.store_proxy import AWAY, FINE, HELD, STORM, StoreProxy
from tests.support.style import PROJECT

NODES = (1, 2, 3)
ENDS_WITHIN_S = 60.0
WEATHERS = {"away": AWAY, "held": HELD, "storm": STORM}


class Brokers:
    """The processes, which `start` starts; `problems` names those that ended by themselves, or did not end when they should."""

    replication_factor = 1

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ports = dict(zip(NODES, free_ports(len(NODES)), strict=True))
        self.processes: dict[int, subprocess.Popen[bytes]] = {}
        self.problems: list[str] = []
        self.stops_s: list[float] = []
        """How long planned stops took."""
        self._busy = {node: threading.Lock() for node in (0, *NODES)}

    @property
    def servers(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for port in self.ports.values())

    def place(self, node: int) -> Path:
        return self.folder / f"node-{node}"

    def start(self, node: int) -> None:
        raise NotImplementedError

    def start_all(self) -> None:
        for node in NODES:
            self.start(node)

    def kill(self, node: int) -> None:
        self.processes[node].kill()
        self.processes[node].wait(ENDS_WITHIN_S)

    def end(self, node: int) -> None:
        """A planned stop."""
        process = self.processes[node]
        began = time.monotonic()
        process.terminate()
        try:
            code = process.wait(ENDS_WITHIN_S)
            self.stops_s.append(time.monotonic() - began)
        except subprocess.TimeoutExpired:
            self.problems.append(f"broker {node} did not end within {ENDS_WITHIN_S:g} s")
            self.kill(node)
        else:
            self.ended(node, code)

    def ended(self, node: int, code: int) -> None:
        if code not in {0, -signal.SIGTERM}:  # the signal may come before there is a handler
            self.problems.append(f"broker {node} ended with {code}")

    def pause(self, node: int) -> None:
        self.processes[node].send_signal(signal.SIGSTOP)

    def resume(self, node: int) -> None:
        self.processes[node].send_signal(signal.SIGCONT)

    def befall(self, event: Event) -> None:
        """The fault from its beginning to its end. It waits for an earlier one of the same broker, which may have taken longer than planned."""
        with self._busy[event.node]:
            self.carry_out(event)

    def carry_out(self, event: Event) -> None:
        node = event.node
        if self.processes[node].poll() is not None:
            self.problems.append(f"broker {node} had ended by itself with {self.processes[node].returncode}")
        elif event.kind == "pause":
            self.pause(node)
            time.sleep(event.lasts_s)
            self.resume(node)
            return
        elif event.kind == "end":
            self.end(node)
        else:
            self.kill(node)
        if event.kind == "empty":
            shutil.rmtree(self.place(node))
        time.sleep(event.lasts_s)
        self.start(node)

    def end_all(self) -> None:
        for node, process in self.processes.items():
            if process.poll() is not None:
                self.problems.append(f"broker {node} had ended by itself with {process.returncode}")
        for process in self.processes.values():
            process.send_signal(signal.SIGCONT)
            process.terminate()
        for node, process in self.processes.items():
            try:
                process.wait(ENDS_WITHIN_S)
            except subprocess.TimeoutExpired:
                self.problems.append(f"broker {node} did not end within {ENDS_WITHIN_S:g} s")
                self.kill(node)


class StoreBrokers(Brokers):
    """Brokers over a real S3 server, with a proxy before it."""

    def __init__(self, folder: Path, server: s3_server.Process, proxy: StoreProxy, flush_ms: int = 10) -> None:
        super().__init__(folder)
        self.server, self.proxy, self.flush_ms = server, proxy, flush_ms

    def start(self, node: int) -> None:
        self.place(node).mkdir(exist_ok=True)
        command = [sys.executable, "-m", "tests.support.store_broker", "s3://lake/cluster", str(node)]
        at = self.server.at.environment | {"AWS_ENDPOINT_URL": self.proxy.endpoint}
        with (self.folder / f"log-{node}").open("ab") as log:
            self.processes[node] = subprocess.Popen(
                [*command, str(self.ports[node]), str(self.place(node))],
                cwd=PROJECT,
                env=os.environ | at | {"HOME": "/nonexistent", "HOROLOG_TEST_FLUSH_MS": str(self.flush_ms)},
                stdout=subprocess.DEVNULL,
                stderr=log,
            )

    def carry_out(self, event: Event) -> None:
        if event.node:
            super().carry_out(event)
        elif event.kind == "store killed":
            self.server.kill()
            time.sleep(event.lasts_s)
            self.server.start()
        else:
            self.proxy.weather = WEATHERS[event.kind]
            time.sleep(event.lasts_s)
            self.proxy.weather = FINE

    def lost(self) -> list[str]:
        """What the bucket lacks of what brokers, which may be running, were told that it has."""
        store = open_store("s3://lake/cluster", environment=self.server.at.environment)
        found = verify(store)
        assert found is not None, "a cluster lies there"
        return [f"{one.kind}: {one.name}: {one.reason}" for one in found.findings if is_fault(one)]

    def tracebacks(self) -> list[str]:
        """What the brokers logged of errors that nothing expected, each with its last line."""
        return [text for node in NODES for text in tracebacks_in((self.folder / f"log-{node}").read_text())]


def tracebacks_in(log: str) -> list[str]:
    """Each traceback of a log: the line before it, and its end."""
    lines = log.splitlines()
    found = []
    for at, line in enumerate(lines):
        if line.startswith("Traceback "):
            end = next((one for one in lines[at + 1 :] if not one.startswith(" ")), "")
            found.append(f"traceback: {lines[at - 1] if at else ''}: {end}")
    return found


@contextmanager
def over_a_store(folder: Path, seed: int = 0, flush_ms: int = 10) -> Iterator[StoreBrokers]:
    """Three brokers that are starting; all ends with the block."""
    with (
        s3_server.restartable(folder) as server,
        store_proxy.running(int(server.at.endpoint.rpartition(":")[2]), seed) as proxy,
    ):
        brokers = StoreBrokers(folder, server, proxy, flush_ms)
        try:
            brokers.start_all()
            yield brokers
        finally:
            brokers.end_all()
