"""A store that refuses, is slow or never answers while a broker runs: one line says so, and nothing is lost.

What the start gets from such stores is in tests/unit/broker/server/test_store_run.py, objects that are deleted are in test_over_store.py.
"""

import signal
import time

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from horolog.base import interrupts
from horolog.broker.backup.rounds import moments_in
from horolog.broker.backup.verifying import verify
from horolog.broker.bucket import block_fetcher, refused_deletes, store_access
from horolog.broker.cluster.new_topics import NewTopic
from horolog.broker.observability.health import readiness
from horolog.stores.faults import StoreError
from horolog.stores.object_store import Created, Outcome
from horolog.stores.opening import open_store
from tests.support.backed_up import BackedUp
from tests.support.hostile_store import ENVIRONMENT, Habit, serving
from tests.support.log_model import read_all
from tests.unit.broker.server import test_over_store
from tests.unit.broker.server.test_over_store import Brokers, running, until
from tests.unit.broker.server.test_store_run import Teller, begin, ended

TIMEOUT_S = 1.0
LEAST_PAUSE_S = 0.1
MANY = 7
"""So many requests for one object without one that succeeds are enough to see whether there are pauses between them."""
EVERYTHING = ("GET", "PUT", "DELETE", "POST")
AWAY = "the store is unavailable; trying again: "
UNDELETED = "objects cannot be deleted: "
BACK = "the store is available again"


@pytest.fixture(autouse=True)
def _tries_often(monkeypatch):
    pytest.importorskip("obstore")
    monkeypatch.setattr(store_access, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(store_access, "LONGEST_PAUSE_S", LEAST_PAUSE_S)


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

    def __init__(self, broker, partition=0, **settings):
        address = f"127.0.0.1:{broker.listeners[0].port}"
        how = {"enable.idempotence": True, "linger.ms": 0, "log_level": 0, "retry.backoff.ms": 20}
        how |= {key.replace("_", "."): value for key, value in settings.items()}
        self.acknowledged, self._partition, self._producer = (
            [],
            partition,
            Producer({"bootstrap.servers": address, **how}),
        )

    def send(self, value):
        self._producer.produce("t", value, partition=self._partition, on_delivery=self._note)

    def _note(self, error, message):
        assert error is None, error
        self.acknowledged.append(message.value())

    def has(self, *values):
        self._producer.poll(0)
        return self.acknowledged == list(values)


class Reader:
    """A consumer from the start, in whose thread librdkafka fetches; `errors` has what it was given in place of records."""

    def __init__(self, broker):
        address = f"127.0.0.1:{broker.listeners[0].port}"
        how = {"group.id": "g", "enable.auto.commit": False, "log_level": 0, "fetch.error.backoff.ms": 20}
        self._consumer = Consumer({"bootstrap.servers": address, **how})
        self._consumer.assign([TopicPartition("t", 0, 0)])
        self._values, self.errors = [], []

    def values(self):
        while (message := self._consumer.poll(0)) is not None:
            if message.error() is None:
                self._values.append(message.value())
            else:
                self.errors.append(message.error())
        return self._values

    def asked(self, server):
        """How often the store was asked for the first object that it needs."""
        return server.requests.count(("GET", next((name for _, name in server.requests if name.endswith(".meta")), "")))

    def close(self):
        self._consumer.close()


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


async def old_records(made, count=20):
    """Have that many records lie in closed segments of the store, and another broker lead them, whose disk has none of them."""
    made.given = {"log.segment.bytes": "300"}
    await made.start(1)
    await made.create(1)
    over, broker = made.running[1]
    sender = Sender(broker)
    values = [b"%d" % number for number in range(count)]
    for number, value in enumerate(values):
        sender.send(value)
        await until(lambda end=number + 1: sender.has(*values[:end]))
    covered_end = over._log_side.of_bucket.manifests.covered_end
    (partition,) = made[1].topics["t"].led_here
    await until(lambda: covered_end(partition) > count // 2)
    await made.stop(1)
    await made.start(2)
    await until(lambda: made.served() == {0: 2})
    return values


@pytest.mark.parametrize(
    ("status", "code", "reason"),
    [
        (403, "InvalidObjectState", "access denied (InvalidObjectState)"),
        (404, "NoSuchKey", "the store does not have it"),
        (500, "", "the store answers 500 Internal Server Error"),
        (503, "SlowDown", "the store answers 503 Service Unavailable (SlowDown)"),
    ],
)
async def test_a_reader_of_old_records_waits_until_the_store_gives_them(
    tmp_path, caplog, monkeypatch, status, code, reason
):
    monkeypatch.setattr(block_fetcher, "LOST_FOR_S", 0.2)
    with serving() as server:
        async with running(OverServer(tmp_path, server)) as made:
            values = await old_records(made)
            caplog.clear()
            server.refuses_below, server.refuses["GET"] = "f/data/", (status, code)
            server.requests.clear()
            began = time.monotonic()
            broker = made.running[2][1]
            consumer = Reader(broker)
            try:
                await until(lambda: consumer.asked(server) >= MANY)
                assert [line.endswith(reason) for line in readiness(broker).warnings] == [True] * (status < 500)
                assert consumer.values() == []
                assert consumer.asked(server) <= MANY + (time.monotonic() - began) / LEAST_PAUSE_S
                server.refuses.clear()
                await until(lambda: consumer.values() == values)
            finally:
                server.refuses.clear()
                consumer.close()
            assert consumer.errors == []
            assert (readiness(broker).warnings, broker.store_figures().unreadable) == ([], ())
            (line,) = [one.getMessage() for one in caplog.records if one.getMessage().endswith(reason)]
            assert line.startswith("t-0: offsets 0 up to 4 cannot be read: data/" if status < 500 else AWAY)


async def test_objects_that_the_store_does_not_delete_go_once_it_does(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(refused_deletes, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(refused_deletes, "LONGEST_PAUSE_S", LEAST_PAUSE_S)
    now = test_over_store.OF_STORE._replace(delete_delay_ms=0, history_ms=0)
    monkeypatch.setattr(test_over_store, "OF_STORE", now)
    with serving() as server:
        async with running(OverServer(tmp_path, server)) as made:
            await old_records(made)
            server.refuses.update(dict.fromkeys(("DELETE", "POST"), (403, "AccessDenied")))
            topic = made[2].topics["t"]
            of_topic = f"f/data/{topic.id.hex()}/"

            def left():
                return [name for name in list(server.objects) if name.startswith(of_topic)]

            try:
                assert left()
                made[2].delete_topics({"t": topic.id}, lambda _: None)
                await until(lambda: said(caplog, UNDELETED))
                assert left()
                broker = made.running[2][1]
                assert [line for line in readiness(broker).warnings if line.endswith("access denied (AccessDenied)")]
                assert (broker.store_figures().fault, readiness(broker).reasons) == ("", [])
                made[2].create_topics([NewTopic("t", 1)], lambda _: None)
                await until(lambda: made.served() == {0: 2})
                sender = Sender(made.running[2][1])
                sender.send(b"meanwhile")
                await until(lambda: sender.has(b"meanwhile"))
            finally:
                server.refuses.clear()
            await until(lambda: not left())
            (line,) = said(caplog, UNDELETED)
            assert "access denied (AccessDenied); they stay in the store" in line
            assert said(caplog, AWAY) == []
            assert readiness(broker).warnings == []
            assert [row[2] for row in read_all(made[2].topics["t"].find(0))] == [b"meanwhile"]


@pytest.mark.parametrize(
    ("refuses", "habit", "reason"),
    [
        ({"PUT": (403, "AccessDenied")}, Habit.GOOD, "access denied"),
        (dict.fromkeys(EVERYTHING, (404, "NoSuchBucket")), Habit.GOOD, "there is no bucket lake"),
        ({"GET": (500, "")}, Habit.GOOD, "the store answers 500"),
        ({"PUT": (503, "SlowDown")}, Habit.GOOD, "the store answers 503"),
        ({}, Habit.NEVER_ANSWERS, "does not answer in time"),
        ({}, Habit.RESETS, "cannot be reached"),
    ],
    ids=["403", "404", "500", "503", "never", "resets"],
)
def test_a_round_of_a_backup_fails_with_the_reason_and_the_next_one_has_everything(refuses, habit, reason):
    with serving() as server:
        made = BackedUp()
        made.store = open_store("s3://lake/b", server.endpoint, ENVIRONMENT, TIMEOUT_S, retries=0)
        made.rounds = made.new_rounds(store=made.store)
        before = made.round().moment
        old = made.log_of("events")
        made.source.fill("events", 6)
        server.refuses.update(refuses)
        server.habit = habit
        with pytest.raises(StoreError, match=reason):
            made.round()
        server.refuses.clear()
        server.habit = Habit.GOOD
        after = made.round().moment
        newest, *others = moments_in(made.store)
        assert (newest.number, before.number in {one.number for one in others}) == (after.number, True)
        assert verify(made.store, [newest, *others]).findings == ()
        for moment, log in ((before, old), (after, made.log_of("events"))):
            restored, storage = made.restored(moment)
            assert (restored.findings, made.log_of("events", storage)) == ([], log)


async def test_a_broker_that_alone_is_without_the_store_leaves_its_producers_to_others(tmp_path, monkeypatch):
    """One that knows only this broker has old Metadata from it, and sends a request that has timed out to it again."""
    monkeypatch.setattr(interrupts, "SIGNALS", (signal.SIGUSR1,))
    monkeypatch.setattr(interrupts, "ignore", lambda: None)
    async with running(Brokers(tmp_path), 1) as made:
        teller = Teller()
        serving = begin(made, 2, teller)
        await until(lambda: len(teller.starts) == 1 and made[1].nodes == (1, 2))
        made[1].create_topics([NewTopic("t", 2)], lambda _: None)
        await until(lambda: "t" in made[1].topics and made.served())
        ((_, partition),) = made[1].state.led_by(2)
        sender = Sender(teller.starts[0], partition=partition, request_timeout_ms=500)
        sender.send(b"before")
        await until(lambda: sender.has(b"before"))
        with monkeypatch.context() as cut:
            cut.setattr(made.requests[-1], "create", lambda _key, _data, done: done(Created(Outcome.UNKNOWN, "cut")))
            cut.setattr(made.requests[-1], "get", lambda _key, done: done(StoreError("cut")))
            sender.send(b"meanwhile")
            await until(lambda: sender.has(b"before", b"meanwhile"))
            assert len(teller.starts) == 1
        await until(lambda: len(teller.starts) == 2)
        await ended(serving)


async def test_a_slow_store_is_only_slow(tmp_path, caplog):
    with serving() as server:
        async with running(OverServer(tmp_path, server), 1) as made:
            await made.create(1)
            server.habit = Habit.SLOW
            sender = Sender(made.running[1][1])
            sender.send(b"v")
            await until(lambda: sender.has(b"v"))
            assert said(caplog, AWAY) == []
