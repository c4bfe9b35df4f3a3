"""Starts and ends the brokers that are compared: horolog, any Kafka release and the floor, behind one shape."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks import floor, kafka, peer, process

HOROLOG = "horolog"
BEFORE = "before"
"""horolog too, from another checkout."""
OURS = (HOROLOG, BEFORE)
FLOOR = "floor"
"""No broker: see `benchmarks.floor`."""
COMMANDS = ("horolog/client/cli/main.py", "client/cli/main.py")
"""Where a checkout has its command, the oldest last."""
WORKERS = "horolog.workers"
AS_KAFKA_HERE = {"group.initial.rebalance.delay.ms": "0"}
"""The settings of horolog that `kafka.node` makes on every Kafka: a group does not wait before its first rebalance."""
READY_TIMEOUT_SECONDS = 60.0
# Deleted topics must leave the disk at once, or one run's data is written back during the next.
SETTINGS = {"log.segment.delete.delay.ms": "1000"}
REMOVAL_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Running:
    """A broker that answers; `name` is horolog, or begins so, or a Kafka release."""

    name: str
    address: str
    pid: int
    data: Path
    ready_seconds: float
    process: subprocess.Popen[bytes] | None = None

    def stop(self) -> None:
        if self.process is None:
            kafka.stop(self.data)
        else:
            process.end(self.pid, self.process)

    def folders_of(self, topic: str) -> list[Path]:
        """Where the topic's partitions lie, wherever below its folder this broker has its data."""
        found = [path for path in self._folders() if path.name.startswith(f"{topic}-")]
        return [path for path in found if path.name.removeprefix(f"{topic}-").isdigit()]

    def wait_until_removed(self) -> None:
        """Until the files of deleted topics have left the disk, or it has taken long enough."""
        until = time.monotonic() + REMOVAL_SECONDS
        while self._removes() and time.monotonic() < until:
            time.sleep(REMOVAL_SECONDS / 100)

    def _removes(self) -> bool:
        return any(path.name.endswith("-delete") for path in self._folders())

    def _folders(self) -> Iterator[Path]:
        """All folders of its data. Unlike `rglob`, `os.walk` passes over those that vanish meanwhile."""
        return (Path(above, name) for above, folders, _ in os.walk(self.data) for name in folders)


def start(
    name: str,
    root: Path,
    settings: Mapping[str, str] | None = None,
    *,
    partitions: int = 0,
    tree: Path | None = None,
    port: int = 0,
) -> Running:
    """Start a broker on its folder below `root`; ready when it answers and leads so many partitions. `tree` is where `before` lies.

    Without a port it has a free one.
    """
    data = root / name
    chosen = SETTINGS | dict(settings or {})
    if name.startswith(OURS):
        return _start_horolog(name, data, chosen, partitions, tree if name == BEFORE else None, port)
    if name == FLOOR:
        address, seconds, started = floor.start(data, port)
        return Running(name, address, started.pid, data, seconds, started)
    node = kafka.start(name, data, chosen, partitions=partitions, port=port)
    return Running(name, node.address, node.pid, data, node.ready_seconds)


def module_of(tree: Path) -> str:
    """What `python -m` runs in a checkout."""
    return next(one for one in COMMANDS if (tree / one).exists()).removesuffix(".py").replace("/", ".")


def _start_horolog(
    name: str, data: Path, settings: Mapping[str, str], partitions: int, tree: Path | None, port: int
) -> Running:
    data.mkdir(parents=True, exist_ok=True)
    workers = int(settings.get(WORKERS, "1"))
    address = f"127.0.0.1:{port or process.free_range(1 + workers)}"  # a port that all share, and one for each
    module = module_of(tree or Path())
    command = [sys.executable, "-m", module, "serve", "--data", str(data.absolute()), "--listen", address]
    for key, value in (AS_KAFKA_HERE | dict(settings)).items():
        command += ["--set", f"{key}={value}"]
    output = data.parent / f"{name}.out"
    with output.open("wb") as out:
        began = time.monotonic()
        started = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=tree)
    try:
        ready = lambda: peer.is_ready(address, partitions, workers)  # noqa: E731
        process.wait_until(ready, started.pid, READY_TIMEOUT_SECONDS, lambda: process.tail(output))
    except BaseException:
        process.end(started.pid, started)
        raise
    return Running(name, address, started.pid, data, time.monotonic() - began, started)
