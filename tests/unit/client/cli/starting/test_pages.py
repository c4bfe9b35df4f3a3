"""The console's process is awaited, ended, and does not inherit the address of another broker."""

import asyncio
import os
import socket

import pytest

from horolog.client.cli.starting import pages

READY = "import time; print('http://127.0.0.1:1/', flush=True); time.sleep(600)"
STUBBORN = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {READY}"
FAILED = "raise SystemExit(1)"
SILENT = "import time; time.sleep(600)"


@pytest.fixture
def program(monkeypatch):
    """Runs a program in place of the console; returns what it was started with, and the process."""
    made, start = {}, asyncio.create_subprocess_exec

    def use(text):
        async def begin(executable, *words, **given):
            made["words"], made["given"] = words, given
            made["process"] = await start(executable, "-c", text, **given)
            return made["process"]

        monkeypatch.setattr(asyncio, "create_subprocess_exec", begin)
        return made

    return use


async def test_the_url_is_the_first_line(program):
    made = program(READY)
    environ = {**os.environ, "HOROLOG_BOOTSTRAP": "x:1", "HOROLOG_PROFILE": "p", "HOROLOG_COMMAND_CONFIG": "f"}
    found = await pages.start("127.0.0.1:9092", 0, "UTC", environ)
    assert (found.url, "127.0.0.1:1" in repr(found)) == ("http://127.0.0.1:1/", True)
    assert made["words"][3:] == (
        *("-b", "127.0.0.1:9092", "--listen", "127.0.0.1:0", "--allow-changes", "--with-parent"),
        *("--tz", "UTC"),
    )
    assert not pages.OF_OTHER_BROKERS & made["given"]["env"].keys()
    await found.end()
    assert made["process"].returncode == -15
    await found.end()  # it has ended already


async def test_one_that_does_not_end_is_killed(program, monkeypatch):
    made = program(STUBBORN)
    monkeypatch.setattr(pages, "END_SECONDS", 0.05)
    found = await pages.start("127.0.0.1:9092", 0, None, os.environ)
    await found.end()
    assert made["process"].returncode == -9


async def test_one_that_cannot_serve_is_none(program):
    made = program(FAILED)
    assert await pages.start("127.0.0.1:9092", 0, None, os.environ) is None
    assert made["process"].returncode == 1


async def test_one_that_never_serves_is_ended(program, monkeypatch):
    made = program(SILENT)
    monkeypatch.setattr(pages, "READY_SECONDS", 0.05)
    with pytest.raises(TimeoutError):
        await pages.start("127.0.0.1:9092", 0, None, os.environ)
    assert made["process"].returncode == -15


def test_a_port_that_is_taken_is_not_free():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert pages.free(port) == 0
    assert pages.free(port) == port
