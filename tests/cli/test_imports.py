"""A command imports what it needs and no more: its start is most of its time. Counts are held, not seconds, which vary.

Python itself starts in 0.02 s; with these modules a command takes 0.06 to 0.1 s of CPU on a small server, plain Python.
"""

import json
import os
import subprocess
import sys

import pytest

from horolog.testing import broker_in_thread
from tests.support.style import PROJECT
from tools.compiled import SHARED

RUN = """
import json, sys
from horolog.client.cli.main import main
code = main(sys.argv[1:])
print(json.dumps([code, sorted(sys.modules)]), file=sys.stderr)
"""
WITHOUT_A_BROKER = {"profiles": 18, "files": 21}
TALKING = {
    "health": 66,
    "cluster": 94,
    "logdirs": 94,
    "producers orders": 94,
    "transactions list": 94,
    "topics list": 66,
    "topics describe orders": 109,
    "groups list": 95,
    "configs list topic orders": 95,
    "users list": 95,
    "offsets orders 1h": 66,
    "timeline orders": 70,
    "retention orders": 104,
    "at orders 1h": 88,
    "consume orders --max 1": 110,
    "produce orders": 94,
}
"""The most modules of horolog that a command may have loaded when it ends."""
NEVER = {
    *("horolog.broker.log", "horolog.broker.server", "horolog.console", "horolog.pipeline", "horolog.testing"),
    *("concurrent.futures.process", "ctypes", "doctest", "http.client", "http.server", "multiprocessing.pool", "pdb"),
    *("pydoc", "sqlite3", "unittest", "xml.etree", "cryptography", "numpy", "obstore", "pyarrow", "starlette"),
}
"""Each of them costs more than a command does, or belongs to another program."""


def loaded(words, address="127.0.0.1:1"):
    """The exit code of a command, and the modules that it has loaded."""
    environ = {**os.environ, "PYTHONPATH": str(PROJECT), "HOROLOG_BOOTSTRAP": address, "HOROLOG_TZ": "UTC"}
    ended = subprocess.run(
        [sys.executable, "-c", RUN, *words.split()],
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    code, modules = json.loads(ended.stderr.splitlines()[-1])
    return code, set(modules), ended.stderr


@pytest.fixture(scope="module")
def address():
    with broker_in_thread() as broker:
        broker.create_topic("orders")
        yield broker.bootstrap


@pytest.mark.parametrize("words", WITHOUT_A_BROKER)
def test_a_command_without_a_broker_loads_no_client_and_no_event_loop(words):
    code, modules, said = loaded(words)
    assert code == 0, said
    assert within(modules, WITHOUT_A_BROKER[words])
    assert {"asyncio", "ssl", "socket", "logging", "horolog.client.wire"} & modules == set()


@pytest.mark.parametrize("words", TALKING)
def test_a_command_that_talks_to_a_broker_loads_what_it_needs(address, words):
    code, modules, said = loaded(words, address)
    assert code == 0, said
    assert within(modules, TALKING[words])


def within(modules, most):
    """The extension module that holds the code of all compiled ones is none of them."""
    assert NEVER & modules == set()
    ours = sorted(one for one in modules - {SHARED.replace("/", ".")} if one.partition(".")[0] == "horolog")
    assert len(ours) <= most, ours
    return True
