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
from horolog.broker.bucket.led_segments import SegmentCare
from horolog.broker.bucket.log_side import Around, BucketLog
from horolog.broker.bucket.names import Wal
from horolog.broker.bucket.seams import Opening, Stretch
from horolog.broker.bucket.shipped_partition import ShippedPartition
from horolog.broker.bucket.shipped_safety import ShippedSafety, ShippingLimits
from horolog.broker.bucket.store_access import StoreAccess
from horolog.broker.commit.committer import Committer, InternalCommit
from horolog.broker.log.manager import LogManager
from horolog.broker.log.partition import lookups
from horolog.broker.log.storage import NotHere, RealStorage
from horolog.protocol.records.entries import iter_records
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
        care = SegmentCare(delete_delay_ms=lambda: 0, off_loop=partial(self._off_loop, loop))
        around = Around(loop, clock, lambda: secrets.token_bytes(16), care=care)
        self.log = BucketLog(around, access, self.logs, safety, self)

    def _off_loop(self, loop, job, done):
        loop.run_in_executor(None, job).add_done_callback(lambda ended: done(ended.result()))

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


async def test_what_was_answered_is_at_the_successor(s3_folder, s3_kind, monkeypatch):
    monkeypatch.setattr(wal_merger, "MOST_NUMBERS", 10)
    monkeypatch.setattr("horolog.broker.bucket.log_side.LOOKS_EVERY_S", 0.1)
    loop = asyncio.get_running_loop()
    with s3_server.restartable(s3_folder, s3_kind) as server:
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
        rows = await read_through(taken_over)
        assert [value for _, _, value in rows] == [b"%d" % number for number in range(COMMITS)]
        successor.end()
        access.close()
        requests.close()


async def here(read):
    """The result of what may have to wait for the bucket."""
    async with asyncio.timeout(60):
        while True:
            try:
                return read()
            except NotHere:
                await asyncio.sleep(0.01)


async def read_through(partition):
    rows = []
    while (offset := rows[-1][0] + 1 if rows else partition.log_start_offset) < partition.high_watermark:
        data = await here(partial(partition.read, offset, 1 << 20))
        rows += [(one.offset, one.timestamp, one.value) for one in iter_records(data) if one.offset >= offset]
    return rows


async def until(condition):
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - nothing tells what lies in the bucket
            await asyncio.sleep(0.02)


def names_in(bucket, folder):
    return sorted(one.name for one in (bucket / "log" / folder).rglob("*") if one.is_file())


async def test_segments_are_uploaded_and_read_with_every_disk_empty_and_expire(s3_folder, s3_kind, monkeypatch):
    monkeypatch.setattr("horolog.broker.bucket.log_side.LOOKS_EVERY_S", 0.05)
    monkeypatch.setattr("horolog.broker.bucket.log_side.SEGMENTS_EVERY_LOOKS", 1)
    loop = asyncio.get_running_loop()
    with s3_server.running(s3_folder, s3_kind) as at:
        store = open_store(at.url("log"), at.endpoint, at.environment | {"HOME": "/nonexistent"}, 5.0)
        requests = ThreadedRequests(store, loop.call_soon_threadsafe, at_once=8)
        access = StoreAccess(requests, lambda seconds, done: loop.call_later(seconds, done, None))
        broker = Broker(s3_folder / "one", access)
        broker.log.begin(ONE)
        partition = await broker.opened((1, ONE))
        for number in range(40):
            partition.append(encode(2, 0, [10 * number], [b"%d" % number * 40]), number, produce_version=NEW)
            if number in {9, 19, 29}:
                partition.roll(number)
        submit = partial(InternalCommit, [partition], durable=False)
        assert not await answer(lambda done: broker.committer.submit(submit(done=done)))
        wanted = read_all(partition)
        ends = [one.next_offset for one in partition.segments[:-1]]
        assert ends[-1] >= 30
        await until(lambda: broker.log.of_bucket.manifests.covered_end(partition) == ends[-1])
        end = await fenced(access)
        broker.end()
        successor = Broker(s3_folder / "two", access)
        successor.log.begin(TWO)
        taken_over = await successor.opened((1, ONE, end), (2, TWO))
        assert taken_over.front.end_offset == ends[-1]
        assert [one.name for one in (s3_folder / "two" / "t-0").glob("*.log")] == [f"{ends[-1]:020d}.log"]
        assert await read_through(taken_over) == wanted
        for time in range(0, 400, 7):
            found = await here(partial(lookups.first_at_or_after, taken_over, time))
            right = next(((offset, at_ms) for offset, at_ms, _ in wanted if at_ms >= time), None)
            assert (None if found is None else (found.offset, found.timestamp)) == right
        assert len(names_in(at.bucket, "data")) == 2 * len(ends)
        assert await answer(partial(successor.log.move_start, taken_over, 25))
        left = 2 * len([one for one in ends if one > 25])
        await until(lambda: len(names_in(at.bucket, "data")) == left)
        assert await read_through(taken_over) == wanted[25:]
        kept = successor.log.of_bucket.manifests.named(taken_over).keys
        assert {name.rpartition("/")[2] for name in kept} == set(names_in(at.bucket, "data"))
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
