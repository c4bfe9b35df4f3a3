"""What `bench` measures is what it says it counts; records that are missing are no measurement."""

import pytest

from horolog.client.wire.client import Client
from horolog.commands.errors import CommandError
from horolog.commands.online import measuring
from horolog.commands.online.measuring import Figures
from horolog.testing import broker_in_thread


@pytest.fixture(scope="module")
def broker():
    with broker_in_thread() as running:
        running.create_topic("t", 2)
        running.create_topic("narrow", 1, max_message_bytes=100)
        running.create_topic("live", 2)
        running.create_topic("empty")
        yield running


@pytest.fixture
def written():
    """How far the measurements say they are."""
    return []


async def produce(client, topic, count, size_bytes, advance):
    return await measuring.produce(
        client, topic, count, size_bytes=size_bytes, codec="gzip", acks="all", advance=advance
    )


async def test_records_are_written_read_and_looked_up(broker, written):
    async with Client(broker.bootstrap) as client:
        figures = await produce(client, "t", 700, 50, written.append)
        assert (figures.part, figures.count, figures.megabytes) == ("produce", 700, 0.035)
        assert figures.per_second == pytest.approx(700 / figures.seconds)
        values = [one.value for one in broker.records("t")]
        assert {len(value) for value in values} == {50}
        assert len(set(values)) == 700
        assert sum(written) >= 700
        written.clear()
        figures = await measuring.consume(client, "t", 700, written.append)
        assert (figures.part, figures.count, figures.megabytes) == ("consume", 700, 0.035)
        assert sum(written) == 700
        figures = await measuring.look_ups(client, "t", 10)
        assert (figures.part, figures.count, len(figures.latencies_seconds)) == ("lookup", 10, 10)
        assert (await measuring.look_ups(client, "empty", 2)).count == 2


async def test_latency_is_from_the_sending_to_a_reader_that_waits(broker, monkeypatch):
    monkeypatch.setattr(measuring, "LATENCY_SECONDS", 1)
    async with Client(broker.bootstrap) as client:
        figures = await measuring.latency(client, "live", 60, 20, "1")
    assert (figures.part, figures.count, len(figures.latencies_seconds)) == ("latency", 60, 60)
    assert figures.latencies_seconds == sorted(figures.latencies_seconds)
    assert 0 < figures.latency_ms(0.0) <= figures.latency_ms(0.5) <= figures.latency_ms(1.0) < 10_000


async def test_what_is_not_written_is_no_measurement(broker, written):
    with pytest.raises(CommandError, match="3 of 3 records were not written, the first because: "):
        async with Client(broker.bootstrap) as client:
            await produce(client, "narrow", 3, 500, written.append)


async def test_what_does_not_come_is_no_measurement(broker, written, monkeypatch):
    monkeypatch.setattr(measuring, "RECORD_WAIT_SECONDS", 0.02)
    async with Client(broker.bootstrap) as client:
        with pytest.raises(CommandError, match="only 0 of 5 records arrived"):
            await measuring.consume(client, "empty", 5, written.append)
        monkeypatch.setattr(measuring, "LATENCY_SECONDS", 5)
        with pytest.raises(CommandError, match="of 5 records arrived"):
            await measuring.latency(client, "live", 1, 20, "1")


def test_figures_without_time_or_measurements():
    figures = Figures("trial", 5, 0.0)
    assert (figures.per_second, figures.latency_ms(0.5)) == (0.0, None)
    assert Figures("trial", 1, 1.0, None, [0.001, 0.002, 0.003]).latency_ms(0.5) == 2.0
