"""Creates beside a real S3 server: one winner of each key, and nothing acknowledged is lost when the server is killed."""

import asyncio
import secrets
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial

import pytest

pytest.importorskip("obstore")

from horolog.base.clock import SystemClock
from horolog.broker.bucket.store_access import StoreAccess
from horolog.broker.bucket.store_journal import StoreJournal
from horolog.broker.cluster.cluster_state import ClusterState, ProducerIdsReserved
from horolog.broker.cluster.journal import AppendOutcome
from horolog.stores.faults import StoreError
from horolog.stores.object_store import Outcome
from horolog.stores.opening import open_store
from horolog.stores.requests import ThreadedRequests
from horolog.stores.self_test import self_test
from tests.support import s3_server
from tests.support.waiting import wait_until

WRITERS, KEYS, KILLS = 20, 100, 3


def won(store, key, mine):
    """Create, as the protocol has it: sent again while the outcome is unknown, and while a key that is taken has no bytes yet.

    The server of this test answers 412 up to some milliseconds before a read finds the object.
    """
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        outcome = store.create(key, mine).outcome
        if outcome is Outcome.MADE:
            return True
        if outcome is Outcome.TAKEN:
            with suppress(FileNotFoundError, StoreError):
                return store.get(key) == mine
        time.sleep(0.02)
    raise AssertionError(key)


def test_of_many_writers_one_wins_each_key_and_a_killed_server_loses_nothing(s3_folder):
    with s3_server.restartable(s3_folder) as server, ThreadPoolExecutor(WRITERS) as pool:
        store = open_store(
            server.at.url("race"), server.at.endpoint, server.at.environment | {"HOME": "/nonexistent"}, 5.0
        )
        names = [f"{key:020}" for key in range(KEYS)]

        def write(number):
            return [name for name in names if won(store, name, b"%d" % number)]

        writers = [pool.submit(write, number) for number in range(WRITERS)]
        for kill in range(1, KILLS + 1):
            enough = KEYS * kill // (KILLS + 1)
            wait_until(lambda enough=enough: objects(server) >= enough)
            server.kill()
            server.start()
        winners = [(name, b"%d" % number) for number, writer in enumerate(writers) for name in writer.result(120)]
        assert sorted(name for name, _ in winners) == names, "each key has one writer that was told that it won"
        assert {name: store.get(name) for name in names} == dict(winners)
        assert sorted(one.key for one in store.list()) == names


def objects(server):
    return sum(1 for _ in (server.at.bucket / "race").glob("*"))


async def test_journals_of_three_brokers_are_one_sequence(s3_folder, s3_kind):
    """The journal over the real client: every append ends, and the entries are there once, in one order."""
    loop = asyncio.get_running_loop()
    with s3_server.running(s3_folder, s3_kind) as server:
        store = open_store(server.url("j"), server.endpoint, server.environment | {"HOME": "/nonexistent"}, 5.0)
        requests = ThreadedRequests(store, loop.call_soon_threadsafe, at_once=6)
        journals = [journal_of(requests, loop) for _ in range(3)]

        async def write(index):
            state, appended = ClusterState(), 0
            while appended < 10:
                entry = ProducerIdsReserved(index * 100 + appended)
                if (
                    await answer(loop, partial(journals[index].append, entry, state.apply(entry)))
                    is AppendOutcome.WRITTEN
                ):
                    appended += 1
                for one in await answer(loop, partial(journals[index].follow, state.number)):
                    state = state.apply(one)

        await asyncio.gather(*map(write, range(3)))
        read = await answer(loop, partial(journals[0].follow, 0))
        assert sorted(one.first for one in read) == [index * 100 + number for index in range(3) for number in range(10)]
        requests.close()


def journal_of(requests, loop):
    access = StoreAccess(requests, lambda seconds, done: loop.call_later(seconds, done, None))
    return StoreJournal(access, lambda: secrets.token_bytes(16))


async def answer(loop, begin):
    future = loop.create_future()
    begin(future.set_result)
    return await future


def test_the_self_test_passes_and_leaves_nothing(s3_folder, s3_kind):
    with s3_server.running(s3_folder, s3_kind) as server:
        environment = server.environment | {"HOME": "/nonexistent"}
        store = open_store(server.url("f"), server.endpoint, environment)
        assert [one for one in self_test(store, SystemClock(), writers=20, keys=10) if one.fault] == []
        assert list(store.list()) == []
        for url, change, said in (
            ("s3://nobody-made-it/f", {}, "there is no bucket nobody-made-it"),
            (server.url("f"), {"AWS_SECRET_ACCESS_KEY": "wrong"}, "access denied (SignatureDoesNotMatch)"),
        ):
            first = next(self_test(open_store(url, server.endpoint, environment | change), SystemClock()))
            assert said in first.fault
