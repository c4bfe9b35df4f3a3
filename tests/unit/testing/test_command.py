"""`horolog test-broker`: one line when it is ready, and an end with whoever started it."""

import argparse
import asyncio
import io
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from horolog.commands.arguments import Parser
from horolog.commands.console import Console
from horolog.commands.errors import UsageError
from horolog.commands.exit_codes import ExitCode
from horolog.testing import command

PROJECT = Path(__file__).resolve().parents[3]
ENDS_WITHIN_S = 20


def parsed(*words):
    parser = Parser(prog="horolog test-broker")
    command.configure(parser)
    return parser.parse_args(words)


def start(*words, **given):
    return subprocess.Popen(
        [sys.executable, "-m", "horolog", "test-broker", *words],
        cwd=PROJECT,
        stdout=subprocess.PIPE,
        text=True,
        **given,
    )


def ask(control, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(control + path, data, timeout=20) as answer:
        return json.load(answer)


async def run(*words, until):
    """The command in this process, until `until` has seen its line; the code and the line."""
    said = io.StringIO()
    running = asyncio.ensure_future(command.run(parsed(*words), Console(out=said)))
    async with asyncio.timeout(20):
        while not said.getvalue():
            await asyncio.sleep(0.01)
            if running.done():
                break
        await until(running, said.getvalue())
        return await running, said.getvalue()


async def post(line, path):
    await asyncio.to_thread(ask, json.loads(line)["control"], path, {})


async def test_it_tells_where_it_is_and_ends_when_told():
    async def stop(_, line):
        topics = await asyncio.to_thread(ask, json.loads(line)["control"], "/topics")
        clock = await asyncio.to_thread(ask, json.loads(line)["control"], "/clock")
        assert (topics, clock["time"]) == ({"orders": 3, "t": 1}, "2026-11-17T10:05:00.000+00:00")
        await post(line, "/stop")

    words = ("--json", "--detached", "--topic", "orders:3", "--topic", "t:1", "--clock", "2026-11-17 10:05")
    code, line = await run(*words, until=stop)
    assert code is ExitCode.OK
    assert json.loads(line).keys() == {"bootstrap", "control", "pid", "version"}
    assert json.loads(line)["pid"] == os.getpid()


async def test_a_registry_may_run_beside_it():
    async def look(_, line):
        subjects = await asyncio.to_thread(ask, json.loads(line)["registry"], "/subjects")
        assert subjects == []
        await post(line, "/stop")

    code, line = await run("--json", "--registry", until=look)
    assert (code, json.loads(line).keys() > {"bootstrap", "registry"}) == (ExitCode.OK, True)


async def test_a_signal_is_a_good_end(tmp_path, monkeypatch):
    monkeypatch.setattr(command, "INPUT", -1)

    async def cancel(running, line):
        assert "test broker on 127.0.0.1:" in line
        running.cancel()

    code, _ = await run("--data", str(tmp_path / "data"), until=cancel)
    assert code is ExitCode.OK
    assert (tmp_path / "data" / "meta.properties").exists()


async def test_bad_arguments_are_usage():
    for words, message in (
        (("--set", "num.partitions=none"), "num.partitions"),
        (("--set", "nothing"), "expected KEY=VALUE"),
        (("--topic", "a:x"), "partitions"),
    ):
        with pytest.raises(UsageError, match=message):
            await command.run(parsed(*words), Console(out=io.StringIO()))
    assert command.settings_of(parsed("--set", "a=b=c", "--port", "9"))["a"] == "b=c"
    for function, text in ((command.port, "65536"), (command.port, "x"), (command.moment, "teatime")):
        with pytest.raises(argparse.ArgumentTypeError):
            function(text)


async def test_it_ends_when_its_input_does(monkeypatch):
    reading, writing = os.pipe()
    monkeypatch.setattr(command, "INPUT", reading)

    async def close(_, __):
        os.write(writing, b"ignored")
        await asyncio.sleep(0.05)
        os.close(writing)

    code, _ = await run("--json", until=close)
    assert code is ExitCode.OK
    os.close(reading)


async def test_it_ends_when_it_has_another_parent(monkeypatch):
    monkeypatch.setattr(command, "INPUT", -1)

    async def orphan(_, __):
        monkeypatch.setattr(os, "getppid", lambda: 1 << 30)

    code, _ = await run("--json", until=orphan)
    assert code is ExitCode.OK


def test_only_pipes_and_sockets_tell_of_a_parent(tmp_path):
    reading, writing = os.pipe()
    assert command.is_pipe(reading)
    os.close(reading)
    os.close(writing)
    with (tmp_path / "file").open("w") as file:
        assert not command.is_pipe(file.fileno())
    assert not command.is_pipe(10_000)
    assert not command.is_pipe(-1)


async def test_input_that_cannot_be_read_is_over():
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    command._read_on(loop, reading, ended)
    assert not ended.is_set()
    os.close(reading)
    command._read_on(loop, reading, ended)
    assert ended.is_set()
    os.close(writing)


def test_the_process_ends_with_its_input():
    with start("--json", stdin=subprocess.PIPE) as process:
        addresses = json.loads(process.stdout.readline())
        assert ask(addresses["control"], "/")["broker"] == addresses["bootstrap"]
        process.stdin.close()
        assert process.wait(ENDS_WITHIN_S) == 0


def test_the_process_ends_by_a_signal():
    with start("--json", stdin=subprocess.DEVNULL) as process:
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait(ENDS_WITHIN_S) == 0


def test_the_process_ends_with_its_parent():
    """A shell starts it and is killed."""
    shell = ["bash", "-c", f"{sys.executable} -m horolog test-broker --json </dev/null & wait"]
    with subprocess.Popen(shell, cwd=PROJECT, stdout=subprocess.PIPE, text=True) as parent:
        pid = json.loads(parent.stdout.readline())["pid"]
        parent.kill()
        parent.wait(ENDS_WITHIN_S)
        deadline = time.monotonic() + ENDS_WITHIN_S
        while is_running(pid) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not is_running(pid)


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except OSError:
        return False
