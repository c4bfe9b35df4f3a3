"""Pieces of a topic are copied once, behind what was copied before, and a record that B refuses is reported."""

import asyncio
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest

from horolog.client.admin.admin import Admin
from horolog.client.consuming.consumer import Consumer
from horolog.client.producing.producer import Producer
from horolog.client.values.errors import KafkaError
from horolog.client.values.types import TopicPartition
from horolog.client.wire.client import Client
from horolog.client.wire.fetch import RawFetch
from horolog.pipeline.jobs import mirror_copy
from horolog.pipeline.jobs.mirror_copy import CopyPiece, Link, Progress, copy_piece, fenced, rounds
from horolog.protocol.errors import ErrorCode
from horolog.protocol.records.compression import CODEC_NAMES, Codec
from tests.support.names import unique

PLACE = TopicPartition("t", 0)
KEEP = {"retention.ms": "-1"}


@pytest.fixture
def other(start_broker):
    return start_broker()


async def test_who_comes_later_fences_who_was_there(session_broker, other):
    topic = unique("fenced")
    place = TopicPartition(topic, 0)
    link = Link(session_broker.address, other.address, unique("mirror"))
    for broker in (session_broker, other):
        async with Admin(broker.address) as admin:
            await admin.create_topic(topic, 1, configs=KEEP)
    async with Producer(session_broker.address) as producer:
        for number in range(10):
            await producer.send(topic, b"%d" % number)
    async with Client(other.address) as target:
        async with fenced(target, link, place) as (zombie, have):
            assert have is None
            async with zombie.transaction():
                await zombie.send_offsets(link.group, {place: Progress(0, 0).committed()})

            async def go_on_too_late():
                async with zombie.transaction():
                    await zombie.send(topic, b"of a zombie", partition=0)
                    await zombie.flush()
                    copied = await copy_piece(link, CopyPiece(place, 0, 10))  # fences, and takes back what was sent
                    assert copied.records == 10
                    await zombie.send_offsets(link.group, {place: Progress(5, 0).committed()})

            with pytest.raises(KafkaError) as refused:
                await go_on_too_late()
            assert refused.value.code in {ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH}
        assert (await copy_piece(link, CopyPiece(place, 0, 10))).records == 0
        assert (await copy_piece(link, CopyPiece(place, 4, 10))).records == 0
    async with Consumer(other.address, isolation="read_committed") as consumer:
        consumer.assign([place])
        consumer.seek(place, 0)
        found = []
        while await consumer.position(place) < (await consumer.end_offsets([place]))[place]:
            found += [record.value for record in await consumer.poll(500)]
    assert found == [b"%d" % number for number in range(10)]


def test_rounds():
    other_place = TopicPartition("t", 1)
    assert rounds({PLACE: (0, 25), other_place: (3, 9), TopicPartition("t", 2): (4, 4)}, 10) == [
        [CopyPiece(PLACE, 0, 10), CopyPiece(other_place, 3, 9)],
        [CopyPiece(PLACE, 10, 20)],
        [CopyPiece(PLACE, 20, 25)],
    ]


def test_why_a_record_was_not_written_is_one_line():
    refused = KafkaError(ErrorCode.INVALID_TIMESTAMP, "it is too old")
    assert mirror_copy.reason_of(refused) == (
        "INVALID_TIMESTAMP: it is too old (a bound of the topic on B refuses its time)"
    )
    assert mirror_copy.reason_of(KafkaError(ErrorCode.CORRUPT_MESSAGE, "bad")) == "CORRUPT_MESSAGE: bad"
    assert mirror_copy.reason_of(ValueError("odd")) == "ValueError: odd"


def test_every_outcome_of_a_write_is_looked_at():
    async def outcomes():
        loop = asyncio.get_running_loop()
        made = [loop.create_future() for _ in range(4)]
        made[0].set_result(1)
        made[1].set_exception(ValueError("odd"))
        made[2].cancel()
        return [str(error) for error in mirror_copy.failures_of(made)]

    assert asyncio.run(outcomes()) == ["odd"]


class Fetching:
    """A client whose fetches bring this."""

    def __init__(self, data):
        self.data = data

    async def fetch_raw(self, *_, **__):
        return RawFetch(0, 0, 0, [], memoryview(self.data))


def test_a_range_of_which_nothing_comes_is_not_waited_for_forever(monkeypatch):
    monkeypatch.setattr(mirror_copy, "_FRUITLESS_FETCHES", 3)

    async def read():
        return [records async for records, _ in mirror_copy.visible(Fetching(b""), PLACE, 5, 9)]

    with pytest.raises(mirror_copy.MirrorFailed, match="no records were received for the offsets from 5 up to 9"):
        asyncio.run(read())


def test_a_batch_that_cannot_be_read_does_not_say_its_codec():
    with pytest.raises(mirror_copy.MirrorFailed, match="at offset 7: "):
        asyncio.run(mirror_copy.codec_at(Fetching(bytes(100)), PLACE, 7))
    assert CODEC_NAMES[asyncio.run(mirror_copy.codec_at(Fetching(b""), PLACE, 7))] == Codec.NONE


@asynccontextmanager
async def nothing(*_, **__):
    yield None


@pytest.mark.parametrize("have", [None, Progress(4, 0)])
def test_a_piece_before_which_something_is_missing_is_not_copied(monkeypatch, have):
    async def codec(*_):
        return "none"

    @asynccontextmanager
    async def fenced_at(*_):
        yield None, have

    monkeypatch.setattr(mirror_copy, "Client", nothing)
    monkeypatch.setattr(mirror_copy, "codec_at", codec)
    monkeypatch.setattr(mirror_copy, "fenced", fenced_at)
    with pytest.raises(mirror_copy.MirrorFailed, match="t-0: offsets before 5 are not copied yet: another mirror"):
        mirror_copy.copy(Link("a:1", "b:1", "m"), CopyPiece(PLACE, 5, 9))


class Producing:
    """A producer whose records are refused from one on."""

    def __init__(self, good):
        self.good = good

    async def send(self, *_):
        future = asyncio.get_running_loop().create_future()
        self.good -= 1
        if self.good < 0:
            future.set_exception(KafkaError(ErrorCode.INVALID_TIMESTAMP, "it is too old"))
        else:
            future.set_result(1)
        return future

    async def flush(self):
        pass


def records_of(*values):
    return [SimpleNamespace(key=None, value=value, headers=(), timestamp_ms=7) for value in values]


async def chunks_of(*chunks):
    for number, chunk in enumerate(chunks, 1):
        yield chunk, 10 * number


def test_a_transaction_ends_when_it_has_enough_or_a_record_is_refused(monkeypatch):
    monkeypatch.setattr(mirror_copy, "TRANSACTION_BYTES", 100)

    async def some(good, *chunks):
        before = mirror_copy.Copied(3, 50, -1)
        return await mirror_copy._send_some(Producing(good), PLACE, chunks_of(*chunks), 5, before)

    big = records_of(bytes(200))
    position, copied = asyncio.run(some(9, big, big))
    assert (position, copied.records, copied.last_ms) == (10, 4, 7)
    position, copied = asyncio.run(some(9, records_of(b"1", b"2"), []))
    assert (position, copied.records) == (20, 5)
    with pytest.raises(mirror_copy.MirrorFailed, match="t-0: INVALID_TIMESTAMP: it is too old"):
        asyncio.run(some(1, records_of(b"1", b"2")))
