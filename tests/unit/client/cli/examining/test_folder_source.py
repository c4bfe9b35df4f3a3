"""A moment of a data folder is the moment that its broker shows: with times out of order, transactions, old formats and damage."""

import random
from contextlib import suppress

import pytest

from horolog.broker.log.files import checkpoints
from horolog.client.admin.admin import Admin
from horolog.client.cli.examining.folder_source import opened
from horolog.client.moments.look_ahead import DEFAULT, TO_THE_END, LookAhead
from horolog.client.moments.moment import merge
from horolog.client.producing.producer import Producer
from horolog.client.values.types import TopicPartition
from horolog.client.wire.client import Client
from horolog.commands.errors import CommandError, NotFoundError
from horolog.protocol.records.head import heads_in
from horolog.testing import horolog_broker
from tests.support import golden

NOW_MS = 1_700_000_000_000
SPAN_MS = 10_000
PARTITIONS = [TopicPartition("t", index) for index in range(3)]


class Abandoned(Exception):
    """Leaves a transaction."""


async def fill(client, seed):
    """Records out of order, in batches of all kinds and transactions that are committed, aborted, or open at the end."""
    rolled = random.Random(seed)
    for number in range(6):
        codec = rolled.choice(["none", "gzip", "zstd"])
        transactional = f"x{seed}-{number}" if rolled.random() < 0.6 else None
        async with Producer(client, compression=codec, transactional_id=transactional) as producer:
            if transactional is None:
                await send(producer, rolled, number)
                continue
            with suppress(Abandoned):
                await send_together(producer, rolled, number)


async def send_together(producer, rolled, number):
    async with producer.transaction():
        await send(producer, rolled, number)
        if rolled.random() < 0.4:
            raise Abandoned


async def send(producer, rolled, number):
    for each in range(40):
        regular = NOW_MS - SPAN_MS + (number * 40 + each) * SPAN_MS // 240
        time_ms = regular - (rolled.randrange(3000) if rolled.random() < 0.5 else 0)
        await producer.send("t", b"%d" % each, b"k", timestamp_ms=time_ms, partition=rolled.randrange(3))
        if rolled.random() < 0.1:
            await producer.flush()


async def shown(source, borders, isolation, look_ahead, partitions=PARTITIONS):
    async with merge(source, partitions, *borders, isolation=isolation, look_ahead=look_ahead) as moment:
        found = [(each.record, each.late_ms) async for each in moment]
    report = moment.report
    return found, (report.records, report.late, report.most_late_ms, report.without_time, report.out_of_place)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("config", [{}, {"message_timestamp_type": "LogAppendTime"}], ids=["own times", "append times"])
async def test_it_is_what_the_broker_shows(tmp_path, seed, config):
    """While the broker runs and after its end, of every isolation, at borders anywhere."""
    rolled = random.Random(seed)
    borders = [(None, None)]
    borders += [
        tuple(sorted(NOW_MS - SPAN_MS - 3000 + rolled.randrange(SPAN_MS + 4000) for _ in range(2))) for _ in range(4)
    ]
    cases = [
        (each, isolation, look_ahead)
        for each in borders
        for isolation in ("read_committed", "read_uncommitted")
        for look_ahead in (TO_THE_END, DEFAULT, LookAhead(1000, None))
    ]
    async with (
        horolog_broker(clock=NOW_MS, storage=tmp_path / "data", log_retention_ms=-1) as broker,
        Client(broker.bootstrap) as client,
    ):
        broker.create_topic("t", 3, segment_bytes=4096, **config)
        await fill(client, seed)
        expected = [await shown(client, *case) for case in cases]
        with opened(str(tmp_path / "data"), "t", None) as source:
            assert [await shown(source, *case) for case in cases] == expected
    assert any(found for found, _ in expected)
    with opened(str(tmp_path / "data"), "t", None) as source:
        assert [await shown(source, *case) for case in cases] == expected


async def test_records_of_an_open_transaction_are_not_committed_here_either(tmp_path):
    async with horolog_broker(clock=NOW_MS, storage=tmp_path / "data") as broker, Client(broker.bootstrap) as client:
        broker.create_topic("t", 1)
        async with Producer(client, transactional_id="x") as producer:
            with suppress(Abandoned):
                await look_inside(producer, str(tmp_path / "data"))


async def look_inside(producer, folder):
    """At the record of a transaction that has not ended."""
    async with producer.transaction():
        await producer.send("t", b"open", timestamp_ms=NOW_MS, partition=0)
        await producer.flush()
        with opened(folder, "t", [0]) as source:
            for isolation, count in (("read_committed", 0), ("read_uncommitted", 1)):
                found, _ = await shown(source, (NOW_MS, NOW_MS + 1), isolation, DEFAULT, PARTITIONS[:1])
                assert len(found) == count
        raise Abandoned


async def test_what_a_topic_says_of_its_times_is_known(tmp_path):
    async with horolog_broker(clock=NOW_MS, storage=tmp_path / "data") as broker:
        broker.create_topic("t", 1, message_timestamp_type="LogAppendTime")
        broker.create_topic("u", 1)
    keys = {"message.timestamp.before.max.ms": None, "message.timestamp.after.max.ms": None}
    with opened(str(tmp_path / "data/"), "t", None) as source:
        told = await source.time_settings(["t"])
    assert told == {"t": keys | {"message.timestamp.type": "LogAppendTime"}}
    with opened(str(tmp_path / "data"), "u", None) as source:
        assert await source.time_settings(["u"]) == {"u": keys | {"message.timestamp.type": None}}
        assert repr(source) == "<FolderSource of 1 partitions>"


async def test_damage_is_passed_over_and_told(tmp_path):
    async with (
        horolog_broker(clock=NOW_MS, storage=tmp_path / "data", log_retention_ms=-1) as broker,
        Client(broker.bootstrap) as client,
    ):
        broker.create_topic("t", 3, segment_bytes=4096)
        await fill(client, 1)
    folder = tmp_path / "data/t-0"
    first = min(folder.glob("*.log"))
    data = bytearray(first.read_bytes())
    data[list(heads_in(bytes(data)))[1].position - 5] ^= 0xFF
    first.write_bytes(data)
    before = {path: path.read_bytes() for path in folder.iterdir()}
    with opened(str(tmp_path / "data"), "t", None) as source:
        found, _ = await shown(source, (None, None), "read_uncommitted", TO_THE_END)
        assert source.damaged_bytes > 0
    assert 100 < len(found) < 240
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize("name", sorted({name for name, _ in golden.names()}))
async def test_folders_of_kafkas_give_what_their_consumer_read(tmp_path_factory, tmp_path, name):
    """Of those records that have a time, in the order of their times."""
    case = golden.Case(name, golden.unpacked(tmp_path_factory))
    case.copy(case.stages[-1], tmp_path, "t")
    views = [view for view in case.manifest["consumed"] if view != "default"] or ["read_uncommitted"]
    for view in views:
        expected = case.records(view if view in case.manifest["consumed"] else "")
        with opened(str(tmp_path), "t", None) as source:
            found, _ = await shown(source, (None, None), view, TO_THE_END, PARTITIONS[:1])
        timely = sorted((each.timestamp, each.offset, each.value) for each in expected if each.timestamp >= 0)
        assert [(one.timestamp_ms, one.offset, one.value) for one, _ in found] == timely


def test_what_is_not_there_is_said(tmp_path):
    (tmp_path / "t-0").mkdir()
    for folder, topic, wanted, said in (
        (tmp_path / "gone", "t", None, "is not a folder"),
        (tmp_path, "u", None, "no partition of topic u is in"),
        (tmp_path, "t", [0, 7], "no partition 7 of topic t"),
    ):
        with pytest.raises(NotFoundError, match=said), opened(str(folder), topic, wanted):
            pass


async def test_files_that_go_meanwhile_end_it_with_a_sentence(tmp_path):
    async with (
        horolog_broker(clock=NOW_MS, storage=tmp_path / "data", log_retention_ms=-1) as broker,
        Client(broker.bootstrap) as client,
    ):
        broker.create_topic("t", 3, segment_bytes=4096)
        await fill(client, 2)

    async def read_what_has_gone():
        with opened(str(tmp_path / "data"), "t", None) as source:
            for path in (tmp_path / "data/t-1").glob("*.log"):
                path.unlink()
            await shown(source, (None, None), "read_committed", TO_THE_END)

    with pytest.raises(CommandError, match="removed it in the meantime"):
        await read_what_has_gone()


async def test_records_that_a_kafka_has_deleted_since_are_not_shown(tmp_path):
    """It has moved the start of the log, and has not told our file of starts."""
    folder = tmp_path / "data"
    async with horolog_broker(clock=NOW_MS, storage=folder) as broker, Producer(broker.bootstrap) as producer:
        broker.create_topic("t", 1)
        for number in range(9):
            await producer.send("t", b"%d" % number, timestamp_ms=NOW_MS, partition=0)
            await producer.flush()
        async with Admin(broker.bootstrap) as admin:
            await admin.delete_records({TopicPartition("t", 0): 2})
    kafkas = folder / checkpoints.LOG_START_OFFSETS
    assert kafkas.read_text() == "0\n1\nt 0 2\n"
    for told, first in (("0\n2\nt 0 5\nother 0 1\n", 5), ("0\n1\nt 0 3\n", 2), ("", 2), ("no offsets", 2)):
        kafkas.write_text(told)  # the second is a digit that has flipped, the others are damage
        with opened(str(folder), "t", None) as source:
            found, _ = await shown(source, (None, None), "read_uncommitted", DEFAULT, PARTITIONS[:1])
        assert [record.offset for record, _ in found] == list(range(first, 9)), told
