"""A broker's log over a real S3 server: producers are answered while it is killed and started again, and a successor has all of it."""

import asyncio
import secrets
from functools import partial

import pytest

pytest.importorskip("obstore")

from horolog.base.clock import SystemClock
from horolog.broker.base.answers import run
from horolog.broker.base.metrics import Metrics
from horolog.broker.bucket import wal_fencing, wal_merger
from horolog.broker.bucket.log_side import Around, BucketLog
from horolog.broker.bucket.names import Wal
from horolog.broker.bucket.seams import Opening, Stretch
from horolog.broker.bucket.shipped_partition import ShippedPartition
from horolog.broker.bucket.shipped_safety import ShippedSafety, ShippingLimits
from horolog.broker.bucket.store_access import StoreAccess
from horolog.broker.commit.committer import Committer, InternalCommit
from horolog.broker.log.manager import LogManager
from horolog.broker.log.storage import RealStorage
from horolog.stores.opening import open_store
from horolog.stores.requests import ThreadedRequests
from tests.support import s3_server
from tests.support.log_model import NEW, encode, read_all, small_config
from tests.support.logs import broker_settings
from tests.support.shipping import TOPIC_ID

ONE, TWO = Wal(1, 10), Wal(2, 20)
CONFIG = small_config(segment_bytes=1 << 20)
COMMITS = 150


class Broker:
    """The log's half of a broker, with what it needs."""

    def __init__(self, folder, access):
        loop, clock = asyncio.get_running_loop(), SystemClock()
        self.logs = LogManager([str(folder)], RealStorage(), clock, broker_settings(), kind=ShippedPartition)
        limits = ShippingLimits(flush_ms=10, flush_bytes=1 << 20, unsafe_bytes=1 << 24)
        safety = ShippedSafety(loop, lambda: limits, lambda _: None, clock.monotonic)
        self.committer = Committer(loop, safety, lambda _: None, Metrics(), clock.monotonic)
        self.log = BucketLog(Around(loop, clock, lambda: secrets.token_bytes(16)), access, self.logs, safety, self)

    def lineages(self):
        return {(TOPIC_ID, 0): (Stretch(1, ONE),)}

    def proof_of_life(self, sent_s): ...

    def fenced(self, fence): ...

    async def opened(self, *lineage):
        stretches = tuple(Stretch(*one) for one in lineage)
        return await answer(partial(self.log.open_from, Opening("t", TOPIC_ID, 0, CONFIG, stretches)))

    def end(self):
        self.log.stop(is_fenced=False)
        self.logs.abandon()


async def answer(begin):
    future = asyncio.get_running_loop().create_future()
    begin(future.set_result)
    return await asyncio.wait_for(future, 60)


async def test_what_was_answered_is_at_the_successor(s3_folder, monkeypatch):
    monkeypatch.setattr(wal_merger, "MOST_NUMBERS", 10)
    monkeypatch.setattr("horolog.broker.bucket.log_side.LOOKS_EVERY_S", 0.1)
    loop = asyncio.get_running_loop()
    with s3_server.restartable(s3_folder) as server:
        environment = server.at.environment | {"HOME": "/nonexistent"}
        store = open_store(server.at.url("log"), server.at.endpoint, environment, 5.0)
        requests = ThreadedRequests(store, loop.call_soon_threadsafe, at_once=8)
        access = StoreAccess(requests, lambda seconds, done: loop.call_later(seconds, done, None))
        broker = Broker(s3_folder / "one", access)
        broker.log.begin(ONE)
        partition = await broker.opened((1, ONE))
        ends = []

        async def produce(number):
            partition.append(encode(2, 0, [number], [b"%d" % number]), number, produce_version=NEW)
            end = partition.log_end_offset
            failures = await answer(
                lambda done: broker.committer.submit(InternalCommit([partition], done, durable=False))
            )
            if not failures:
                ends.append(end)

        for number in range(COMMITS):
            await produce(number)
            if number == COMMITS // 2:
                server.kill()
                server.start()
        assert max(ends) == COMMITS == partition.high_watermark
        assert list((server.at.bucket / "log" / f"merged/{ONE}").iterdir())
        end = await fenced(access)
        refused = await answer(lambda done: broker.committer.submit(late(partition, done)))
        assert list(refused) == [partition]
        broker.end()
        successor = Broker(s3_folder / "two", access)
        taken_over = await successor.opened((1, ONE, end), (2, TWO))
        assert [row[2] for row in read_all(taken_over)] == [b"%d" % number for number in range(COMMITS)]
        successor.end()
        access.close()
        requests.close()


def late(partition, done):
    """Records that come after the fence."""
    partition.append(encode(2, 0, [1], [b"late"]), 1, produce_version=NEW)
    return InternalCommit([partition], done, durable=False)


async def fenced(access):
    """Where the WAL ends."""

    def begin(done):
        async def steps():
            done(await wal_fencing.fence(access, ONE, 2, secrets.token_bytes(16)))

        run(steps())

    return await answer(begin)
