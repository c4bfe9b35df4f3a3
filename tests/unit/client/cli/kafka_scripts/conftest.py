"""Kafka's scripts as a user types them, in this process, at a broker that the tests of a file share."""

import asyncio
import io

import pytest

from horolog.client.admin.admin import Admin
from horolog.client.cli.kafka_scripts.__main__ import main
from horolog.commands.console import Console
from horolog.testing import broker_in_thread

NOW_MS = 1_700_000_000_000


class Typed:
    """What a script printed, and its exit code."""

    def __init__(self, code, out, err):
        self.code = code
        self.out = out
        self.err = err
        self.lines = out.splitlines()

    def __repr__(self):
        return f"<ended with {self.code}: {self.out!r} {self.err!r}>"

    @property
    def rows(self):
        """The cells of a table."""
        return [line.split() for line in self.lines if line.strip()]


class Scripts:
    """`run("kafka-topics", "--list")` at the broker; `settings` become a file for --command-config."""

    def __init__(self, broker):
        self.broker = broker
        self.address = broker.bootstrap

    def run(self, script, *words, stdin=""):
        console = Console(io.StringIO(), io.StringIO(), io.StringIO(stdin), {}, lambda: NOW_MS)
        code = main([f"/opt/kafka/bin/{script}.sh", "--bootstrap-server", self.address, *words], console)
        return Typed(code, console.out.getvalue(), console.err.getvalue())

    def ask(self, call):
        """The result of a call of the admin client."""

        async def go():
            async with Admin(self.address) as admin:
                return await call(admin)

        return asyncio.run(go())


@pytest.fixture(scope="module")
def scripts():
    with broker_in_thread(clock=NOW_MS, log_retention_ms=-1) as broker:
        broker.create_topic("t", 2)
        yield Scripts(broker)
