"""A store that refuses, is slow or never answers while a broker runs: one line says so, and nothing is lost.

What the start gets from such stores is in tests/unit/broker/server/test_store_run.py, objects that are deleted are in test_over_store.py.
"""

import pytest
from confluent_kafka import Producer

from horolog.broker.bucket import store_access
from horolog.stores.opening import open_store
from tests.support.hostile_store import ENVIRONMENT, Habit, serving
from tests.support.log_model import read_all
from tests.unit.broker.server.test_over_store import Brokers, running, until

TIMEOUT_S = 0.2
EVERYTHING = ("GET", "PUT", "DELETE", "POST")
AWAY = "the store is unavailable; trying again: "
BACK = "the store is available again"


@pytest.fixture(autouse=True)
def _tries_often(monkeypatch):
    pytest.importorskip("obstore")
    monkeypatch.setattr(store_access, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(store_access, "LONGEST_PAUSE_S", 0.1)


class OverServer(Brokers):
    """Brokers over a server on loopback."""

    def __init__(self, folder, server):
        super().__init__(folder)
        self.store = open_store("s3://lake/f", server.endpoint, ENVIRONMENT, TIMEOUT_S, retries=0)

    def values(self):
        """Those that the partition of the only broker has."""
        partition = self[1].topics["t"].find(0)
        return [row[2] for row in read_all(partition)]


class Sender:
    """A producer whose acknowledgements are counted when a test looks."""

    def __init__(self, broker):
        address = f"127.0.0.1:{broker.listeners[0].port}"
        how = {"enable.idempotence": True, "linger.ms": 0, "log_level": 0, "retry.backoff.ms": 20}
        self.acknowledged, self._producer = [], Producer({"bootstrap.servers": address, **how})

    def send(self, value):
        self._producer.produce("t", value, partition=0, on_delivery=self._note)

    def _note(self, error, message):
        assert error is None, error
        self.acknowledged.append(message.value())

    def has(self, *values):
        self._producer.poll(0)
        return self.acknowledged == list(values)


def said(caplog, text):
    return [one.getMessage() for one in caplog.records if one.getMessage().startswith(text)]


@pytest.mark.parametrize(
    ("refuses", "habit", "reason"),
    [
        (dict.fromkeys(EVERYTHING, (403, "ExpiredToken")), Habit.GOOD, "access denied (ExpiredToken)"),
        (dict.fromkeys(EVERYTHING, (404, "NoSuchBucket")), Habit.GOOD, "there is no bucket lake"),
        ({"PUT": (409, "OperationAborted")}, Habit.GOOD, "the store answers 409 Conflict (OperationAborted)"),
        (dict.fromkeys(EVERYTHING, (500, "")), Habit.GOOD, "the store answers 500 Internal Server Error"),
        (
            dict.fromkeys(EVERYTHING, (503, "SlowDown")),
            Habit.GOOD,
            "the store answers 503 Service Unavailable (SlowDown)",
        ),
        ({}, Habit.RESETS, " cannot be reached"),
        ({}, Habit.NEVER_ANSWERS, " does not answer in time"),
    ],
    ids=["403", "404", "409", "500", "503", "resets", "never"],
)
async def test_nothing_is_acknowledged_meanwhile_and_all_of_it_afterwards(tmp_path, caplog, refuses, habit, reason):
    with serving() as server:
        async with running(OverServer(tmp_path, server), 1) as made:
            await made.create(1)
            sender = Sender(made.running[1][1])
            sender.send(b"before")
            await until(lambda: sender.has(b"before"))
            server.refuses.update(refuses)
            server.habit = habit
            sender.send(b"meanwhile")
            await until(lambda: said(caplog, AWAY))
            assert sender.has(b"before")
            server.refuses.clear()
            server.habit = Habit.GOOD
            await until(lambda: sender.has(b"before", b"meanwhile"))
            await until(lambda: said(caplog, BACK))
            (line,) = said(caplog, AWAY)
            assert line.endswith(reason)
            assert made.values() == [b"before", b"meanwhile"]


async def test_a_slow_store_is_only_slow(tmp_path, caplog):
    with serving() as server:
        async with running(OverServer(tmp_path, server), 1) as made:
            await made.create(1)
            server.habit = Habit.SLOW
            sender = Sender(made.running[1][1])
            sender.send(b"v")
            await until(lambda: sender.has(b"v"))
            assert said(caplog, AWAY) == []
