"""Reads of closed segments, and retention, at a store that is slow, never answers, refuses or gives wrong bytes of them alone.

One line says so, each Fetch ends when it has to, everything else goes on, and what was asked for follows once the store has it.
"""

import asyncio
import logging
import time

import pytest

pytest.importorskip("confluent_kafka")

from horolog.broker.bucket import block_fetcher
from horolog.broker.bucket.names import DATA, MANIFESTS
from horolog.broker.server.store_run import REQUESTS_AT_ONCE
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from horolog.protocol.records.entries import iter_records
from horolog.stores.requests import ThreadedRequests
from tests.stores.test_bad_days import AWAY, BACK, OverServer, Reader, Sender, _tries_often, old_records, said
from tests.support.hostile_store import Habit, serving
from tests.support.raw_wire import RawWire
from tests.unit.broker.server import test_over_store
from tests.unit.broker.server.test_over_store import running, until

__all__ = ["_tries_often"]

MAX_WAIT_MS = 300
ENDS_WITHIN_S = 15.0
"""Much more than MAX_WAIT_MS on a busy machine, and less than a client waits."""
OF_SEGMENTS = f"f/{DATA}/"
OF_PARTITIONS = (OF_SEGMENTS, f"f/{MANIFESTS}/")
FETCH_VERSION = 11


class ManyRequests(OverServer):
    """Brokers that send as many requests at once as one that is a process."""

    def new_requests(self):
        loop = asyncio.get_running_loop()
        self.requests.append(ThreadedRequests(self.store, loop.call_soon_threadsafe, REQUESTS_AT_ONCE))
        return self.requests[-1]


async def fetched(broker, offset):
    """The values and the error of one Fetch of t-0, which has to end in time."""
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    request = FetchRequest(
        max_wait_ms=MAX_WAIT_MS, min_bytes=1, max_bytes=1 << 20, topics=[FetchTopic(topic="t", partitions=[partition])]
    )

    def ask():
        with RawWire(f"127.0.0.1:{broker.listeners[0].port}") as wire:
            return wire.ask(request, FETCH_VERSION)

    began = time.monotonic()
    answer = await asyncio.to_thread(ask)
    assert time.monotonic() - began < ENDS_WITHIN_S
    ((found,),) = [topic.partitions for topic in answer.responses]
    return [one.value for one in iter_records(found.records or b"")], ErrorCode(found.error_code)


def worse_than_info(caplog):
    """Without the lines about leases, which end on a busy machine."""
    found = [one for one in caplog.records if one.levelno >= logging.WARNING]
    return [one.getMessage() for one in found if not one.name.endswith("members_watch")]


TROUBLES = {
    "slow": ({}, Habit.SLOW, None),
    "never": ({}, Habit.NEVER_ANSWERS, "does not answer in time"),
    "resets": ({}, Habit.RESETS, "cannot be reached"),
    "503": ({"GET": (503, "SlowDown")}, Habit.GOOD, "the store answers 503 Service Unavailable (SlowDown)"),
    "wrong bytes": ({}, Habit.ALTERS_READS, "the store has other bytes than were written"),
}


@pytest.mark.parametrize("trouble", TROUBLES)
async def test_old_reads_of_a_store_in_trouble(tmp_path, caplog, monkeypatch, trouble):
    monkeypatch.setattr(block_fetcher, "LOST_FOR_S", 0.2)
    refuses, habit, reason = TROUBLES[trouble]
    with serving() as server:
        async with running(ManyRequests(tmp_path, server)) as made:
            values = await old_records(made)
            broker = made.running[2][1]
            caplog.clear()
            server.refuses_below = server.habit_below = OF_SEGMENTS
            server.refuses, server.habit = refuses, habit
            consumer = Reader(broker)
            try:
                if reason is None:
                    await until(lambda: consumer.values() == values)
                    assert worse_than_info(caplog) == []
                    return
                errors = set()
                while ErrorCode.KAFKA_STORAGE_ERROR not in errors:
                    found, error = await fetched(broker, 0)
                    assert found == []
                    errors.add(error)
                assert errors <= {ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR}
                await until(lambda: worse_than_info(caplog))
                sender = Sender(broker)
                for number in range(5):
                    sender.send(b"new-%d" % number)
                    await until(lambda end=number + 1: sender.has(*[b"new-%d" % one for one in range(end)]))
                new = []
                while len(new) < 5:
                    found, error = await fetched(broker, len(values) + len(new))
                    assert error is ErrorCode.NONE
                    new += found
                assert new == [b"new-%d" % number for number in range(5)]
                assert made.served() == {0: 2}
                assert consumer.values() == []
                (line,) = worse_than_info(caplog)
                assert line.endswith(reason)
                server.refuses, server.habit = {}, Habit.GOOD
                await until(lambda: consumer.values() == [*values, *new])
                assert (await fetched(broker, 0))[1] is ErrorCode.NONE
            finally:
                server.refuses, server.habit = {}, Habit.GOOD
                consumer.close()
            assert consumer.errors == []
            assert set(worse_than_info(caplog)) <= {line, BACK}


@pytest.mark.parametrize("trouble", ["slow", "never", "503"])
async def test_retention_over_a_store_in_trouble(tmp_path, caplog, monkeypatch, trouble):
    """The start moves once the store has its manifest, and not before; records are written and read meanwhile."""
    now = test_over_store.OF_STORE._replace(delete_delay_ms=0, history_ms=0)
    monkeypatch.setattr(test_over_store, "OF_STORE", now)
    refuses, habit, reason = TROUBLES[trouble]
    with serving() as server:
        async with running(ManyRequests(tmp_path, server)) as made:
            values = await old_records(made)
            cluster, broker = made[2], made.running[2][1]
            partition = cluster.topics["t"].find(0)

            def objects():
                return [name for name in list(server.objects) if name.startswith(OF_SEGMENTS) and name.endswith(".log")]

            before = objects()
            caplog.clear()
            server.refuses_below = server.habit_below = OF_PARTITIONS
            server.refuses, server.habit = dict.fromkeys(("PUT", "DELETE", "POST"), refuses.get("GET")), habit
            if not refuses:
                server.refuses = {}
            try:
                cluster.alter_topic_configs({"t": {"retention.bytes": "300"}}, lambda _: None)
                await until(lambda: partition.config.retention_bytes == 300)
                broker.upkeep.apply_retention()
                if reason is not None:
                    await until(lambda: said(caplog, AWAY))
                    broker.upkeep.apply_retention()
                    assert partition.log_start_offset == 0
                    assert objects() == before
                    sender = Sender(broker)
                    sender.send(b"new")
                    await until(lambda: sender.has(b"new"))
                    found, error = await fetched(broker, len(values))
                    assert (found, error) == ([b"new"], ErrorCode.NONE)
                    (line,) = worse_than_info(caplog)
                    assert line.endswith(reason)
                    server.refuses, server.habit = {}, Habit.GOOD
                await until(lambda: partition.log_start_offset > 0)
                await until(lambda: not set(before) <= set(objects()))
            finally:
                server.refuses, server.habit = {}, Habit.GOOD
            found, error = await fetched(broker, partition.log_start_offset)
            assert error is ErrorCode.NONE
            assert (await fetched(broker, 0))[1] is ErrorCode.OFFSET_OUT_OF_RANGE
            assert set(worse_than_info(caplog)) <= {BACK, *said(caplog, AWAY)}
            assert len(said(caplog, AWAY)) == (0 if reason is None else 1)
