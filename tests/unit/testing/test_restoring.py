"""A snapshot that is read back gives the same records, in the same topic or another one."""

import pytest

from horolog import Producer
from horolog.broker.log.storage import StorageFault
from horolog.testing import horolog_broker
from horolog.testing.snapshot import SnapshotError

T0 = "2026-11-17 10:05"


async def filled(broker, count=3):
    broker.create_topic("t", 2)
    async with Producer(broker.bootstrap) as producer:
        for number in range(count):
            await producer.send(
                "t",
                b"%d" % number,
                partition=number % 2,
                timestamp_ms=broker.clock.wall_ms() + number,
                headers=[(b"h", b"v")],
            )
        await producer.flush()


async def test_there_and_back(tmp_path):
    async with horolog_broker(clock=T0) as broker:
        await filled(broker, 1201)
        text = broker.snapshot("t")
        file = tmp_path / "t.txt"
        broker.expect_snapshot("t", file, update=True)
        assert file.read_text() == text
    async with horolog_broker(clock="2030-01-01") as other:
        assert await other.restore(file) == 1201
        other.expect_snapshot("t", file)
        assert await other.restore(text, "copy") == 1201
        assert other.snapshot("copy") == text.replace("topic: t\n", "topic: copy\n")
        assert other.records("copy")[0].timestamp_ms == other.clock.start_ms
        with pytest.raises(AssertionError, match="differs from its snapshot"):
            other.expect_snapshot("copy", file)


async def test_what_does_not_fit_is_refused():
    async with horolog_broker(clock=T0) as broker:
        await filled(broker)
        text = broker.snapshot("t", times="none")
        broker.create_topic("narrow")
        with pytest.raises(SnapshotError, match="topic narrow has 1 partition, but the snapshot has 2"):
            await broker.restore(text, "narrow")
        broker.create_topic("full", 2)
        with broker.faults.disk_full("full"), pytest.raises(StorageFault):
            await broker.restore(text, "full")
        assert await broker.restore(text.partition("\n\n")[0], "empty") == 0
