"""A person's first hour with horolog as a script: each step does what its page says, checks the result, and is timed.

    python -m benchmarks.first_hour [--install]

The steps: sample data with `horolog up --demo`, a topic and a question by time, the Moment page, a broker that requires a login,
the first test of docs/testing.md with pytest, and three brokers over a bucket (a folder) one of which is killed. `--install` begins
with `pip install` of this checkout into a fresh environment, which needs the network and compiles if there is a C compiler.
The times are those of the programs: what a person reads and types comes on top.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks.process import free_ports

ROOT = Path(__file__).resolve().parents[1]
WAIT_S = 60.0
NODES = (1, 2, 3)
CLOSED = """listeners=LOCAL://127.0.0.1:{local},CLIENTS://127.0.0.1:{clients}
listener.security.protocol.map=LOCAL:PLAINTEXT,CLIENTS:SASL_PLAINTEXT
advertised.listeners=LOCAL://127.0.0.1:{local},CLIENTS://127.0.0.1:{clients}
listener.name.clients.sasl.enabled.mechanisms=SCRAM-SHA-512
"""
LOGIN = """security.protocol=SASL_PLAINTEXT
sasl.mechanism=SCRAM-SHA-512
sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required username="alice" password="{password}";
"""


class Hour:
    """The folder of one run and the command that it uses."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.python = sys.executable
        self.environment = {**os.environ, "HOROLOG_TZ": "UTC", "PYTHONPATH": str(ROOT), "TMPDIR": str(folder)}
        self.up: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"<Hour in {self.folder}>"

    def horolog(self, *words: str, given: str = "", code: int = 0) -> str:
        """What a command prints; it has to end with this code."""
        return self.module("horolog", *words, given=given, code=code)

    def module(self, name: str, *words: str, given: str = "", code: int = 0) -> str:
        """What `python -m` of a module prints; it has to end with this code."""
        done = subprocess.run(
            [self.python, "-m", name, *words],
            cwd=self.folder,
            env=self.environment,
            input=given,
            capture_output=True,
            text=True,
            timeout=WAIT_S,
            check=False,
        )
        if done.returncode != code:
            raise SystemExit(f"{name} {' '.join(words)}: exit code {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout

    @contextmanager
    def running(self, *words: str) -> Iterator[subprocess.Popen[str]]:
        """A command that runs until the end of the block."""
        process = subprocess.Popen(
            [self.python, "-m", "horolog", *words],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=WAIT_S)

    def until_healthy(self, bootstrap: str) -> None:
        self.horolog("health", "--bootstrap", bootstrap, "--timeout", f"{WAIT_S:.0f}s")


def install(hour: Hour) -> str:
    subprocess.run([sys.executable, "-m", "venv", "venv"], cwd=hour.folder, check=True)
    python = hour.folder / "venv" / "bin" / "python"
    subprocess.run(
        [python, "-m", "pip", "install", "-q", f"{ROOT}[console,store]", "confluent-kafka", "pytest"], check=True
    )
    hour.python = str(python)
    del hour.environment["PYTHONPATH"]
    found = re.search(r"compiled \w+", hour.horolog("version"))
    return found[0] if found else "installed"


def sample_data(hour: Hour, stack: ExitStack) -> str:
    words = ("up", "--demo", "--port", "0", "--console-port", "0", "-o", "json")
    process = stack.enter_context(hour.running(*words))
    assert process.stdout is not None
    hour.up = json.loads(process.stdout.readline())
    hour.environment["HOROLOG_BOOTSTRAP"] = hour.up["bootstrap"]
    return f"{len(hour.horolog('topics', 'list').splitlines()) - 1} topics of sample data"


def question(hour: Hour) -> str:
    hour.horolog("topics", "create", "visits")
    hour.horolog("produce", "visits", "--timestamp", "yesterday 10:00", given="opens the shop\n")
    hour.horolog("produce", "visits", "--timestamp", "yesterday 10:05:20", given="buys a clock\n")
    found = hour.horolog("at", "visits", "yesterday 10:05").splitlines()
    assert len(found) == 1, found
    assert found[0].endswith("visits-0@1  -  buys a clock"), found
    return "one record, the right one"


def moment_page(hour: Hour) -> str:
    with urllib.request.urlopen(f"{hour.up['console']}moment?topic=visits&at=yesterday+10%3A05", timeout=WAIT_S) as got:
        page = got.read().decode()
    assert "buys a clock" in page
    return f"{len(page) // 1024} KiB, the record is on it"


def closed_broker(hour: Hour) -> str:
    (local, clients), password = free_ports(2), "a clock that is right"
    files = {"closed.properties": CLOSED.format(local=local, clients=clients), "password": password}
    files["client.properties"] = LOGIN.format(password=password)
    for name, text in files.items():
        (hour.folder / name).write_text(text)
        (hour.folder / name).chmod(0o600)
    hour.horolog("users", "add", "alice", "--password-file", "password", "--data", "closed")
    door = f"127.0.0.1:{clients}"
    with hour.running("serve", "--config", "closed.properties", "--data", "closed"):
        hour.until_healthy(f"127.0.0.1:{local}")
        words = ("--bootstrap", door, "--command-config", "client.properties")
        hour.horolog("produce", "orders", "--create", *words, given="one\n")
        assert hour.horolog("consume", "orders", "--format", "%s", *words) == "one"
        hour.horolog("topics", "list", "--bootstrap", door, "--timeout", "2s", code=5)
    return "in with a password, refused without"


def first_test(hour: Hour) -> str:
    page = (ROOT / "docs" / "testing.md").read_text("utf-8")
    code = page.partition("## pytest")[2].partition("```python\n")[2].partition("```")[0]
    (hour.folder / "test_orders.py").write_text(code)
    words = ["-q", "-p", "no:cacheprovider"]
    words += [] if hour.python != sys.executable else ["-p", "horolog.testing.plugin"]
    said = hour.module("pytest", *words, "test_orders.py")
    return said.splitlines()[-1].partition(" in ")[0]


def three_brokers(hour: Hour, stack: ExitStack) -> str:
    (hour.folder / "store").mkdir()
    ports = dict(zip(NODES, free_ports(len(NODES)), strict=True))
    processes = {}
    for node, port in ports.items():
        words = (
            "--listen",
            f"127.0.0.1:{port}",
            "--data",
            f"h{node}",
            "--set",
            f"horolog.store=file://{hour.folder}/store",
        )
        processes[node] = stack.enter_context(hour.running("serve", "--set", f"node.id={node}", *words))
    for port in ports.values():
        hour.until_healthy(f"127.0.0.1:{port}")
    bootstrap = ",".join(f"127.0.0.1:{port}" for port in ports.values())
    hour.environment["HOROLOG_BOOTSTRAP"] = bootstrap
    hour.horolog("topics", "create", "orders", "--partitions", "6")
    lines = "".join(f"{number}\n" for number in range(600))
    hour.horolog("produce", "orders", given=lines)
    processes[2].kill()
    killed = time.monotonic()
    hour.horolog("produce", "orders", "--timeout", f"{WAIT_S:.0f}s", given="last\n")
    while len(found := hour.horolog("consume", "orders", "--format", "%s\\n").splitlines()) < 601:
        assert time.monotonic() - killed < WAIT_S, len(found)
    assert sorted(found) == sorted([*lines.split(), "last"])
    return f"{len(found)} records, all read {time.monotonic() - killed:.1f} s after a broker was killed"


class Step(NamedTuple):
    name: str
    seconds: float
    result: str


def timed(name: str, step: Callable[[], str]) -> Step:
    began = time.monotonic()
    result = step()
    return Step(name, time.monotonic() - began, result)


def run(hour: Hour, *, with_install: bool) -> Iterator[Step]:
    if with_install:
        yield timed("install from a checkout", lambda: install(hour))
    with ExitStack() as stack:
        yield timed("`horolog up --demo` until both links answer", lambda: sample_data(hour, stack))
        yield timed("a topic, two records, one question by time", lambda: question(hour))
        yield timed("the Moment page", lambda: moment_page(hour))
    yield timed("a broker that requires a login", lambda: closed_broker(hour))
    yield timed("the first test of docs/testing.md with pytest", lambda: first_test(hour))
    with ExitStack() as stack:
        yield timed("three brokers over a bucket, one of them killed", lambda: three_brokers(hour, stack))


def table(steps: Sequence[Step]) -> str:
    lines = ["| step | time | result |", "|---|---|---|"]
    lines += [f"| {step.name} | {step.seconds:.1f} s | {step.result} |" for step in steps]
    lines.append(f"| all | {sum(step.seconds for step in steps):.1f} s | |")
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--install", action="store_true", help="begin with an installation of this checkout")
    arguments = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        steps = []
        for step in run(Hour(Path(folder)), with_install=arguments.install):
            print(f"{step.seconds:6.1f} s  {step.name}: {step.result}", file=sys.stderr, flush=True)
            steps.append(step)
    print(table(steps))


if __name__ == "__main__":
    main()
