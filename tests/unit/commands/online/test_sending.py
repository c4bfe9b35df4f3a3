"""Lines become records; each that is not written is named with its file, its line and the reason."""

import asyncio
import io

import pytest

from horolog.client.producing.producer import Producer
from horolog.commands.online import lines, sending
from horolog.commands.online.record_text import Line, RecordTextError
from horolog.commands.online.sending import Refusal, Sending
from horolog.commands.online.units import UnitInDoubt
from horolog.testing import horolog_broker

TIME_MS = 1_700_000_000_000


def value_of(text):
    if text == b"bad":
        raise RecordTextError("it is bad")
    return Line(text, None, (), None, None)


async def send(broker, text, *, read=value_of, topic="t", **options):
    """One file on standard input; what became of it, and whether to go on with the next."""
    advanced = []
    async with Producer(broker.bootstrap) as producer:
        run = Sending(producer, topic, **options)
        goes_on = await run.file("-", io.StringIO(text), read, advanced.append)
        await producer.flush()
    return run, goes_on, sum(advanced)


async def test_lines_are_sent_with_what_they_and_the_options_say():
    def read(text):
        return Line(text, b"own", ((b"h", b"2"),), 7, 1) if text == b"full" else value_of(text)

    async with horolog_broker() as broker:
        broker.create_topic("t", 2)
        options = {"key": b"k", "headers": ((b"h", b"1"),), "timestamp_ms": TIME_MS, "partition": 0, "null_empty": True}
        run, goes_on, size = await send(broker, "plain\nfull\n\n", read=read, **options)
        plain, empty, full = broker.records("t")
    assert (goes_on, run.written, run.refused, run.written_bytes, size) == (True, 3, 0, 9, 12)
    assert run.seconds > 0
    assert (plain.key, plain.value, plain.timestamp_ms, plain.partition) == (b"k", b"plain", TIME_MS, 0)
    assert empty.value is None
    assert (full.key, full.timestamp_ms, full.partition) == (b"own", 7, 1)
    assert [tuple(one) for one in full.headers] == [(b"h", b"1"), (b"h", b"2")]


async def test_the_first_bad_line_stops_the_run_unless_it_shall_go_on():
    async with horolog_broker() as broker:
        broker.create_topic("t")
        run, goes_on, _ = await send(broker, "one\nbad\ntwo\n")
        assert (goes_on, run.stopped_early, run.refused) == (False, True, 1)
        assert list(run.refusals()) == [Refusal("standard input", 2, "it is bad")]
        run, goes_on, _ = await send(broker, "bad\none\nbad\n", stop_at_error=False)
        assert (goes_on, run.stopped_early) == (True, False)
        assert [each.line for each in run.refusals()] == [1, 3]
        assert [one.value for one in broker.records("t")] == [b"one", b"one"]


async def test_what_the_broker_refuses_is_named_too():
    async with horolog_broker() as broker:
        broker.create_topic("t", max_message_bytes=200)
        run, _, _ = await send(broker, "one\n" + "x" * 900 + "\ntwo\n", stop_at_error=False)
        (refusal,) = run.refusals()
        assert refusal.line == 2
        assert (run.written, run.written_bytes) == (2, 6)
        run, _, _ = await send(broker, "one\n", timestamp_ms=2**63)
        assert "does not fit into 64 bits" in next(run.refusals()).reason


async def test_refusals_are_counted_without_end_and_kept_up_to_a_number(monkeypatch):
    monkeypatch.setattr(sending, "MAX_REFUSALS", 3)
    async with horolog_broker() as broker:
        broker.create_topic("t")
        run, _, _ = await send(broker, "bad\n" * 600, stop_at_error=False)
    assert (run.refused, len(list(run.refusals()))) == (600, 3)


async def test_a_line_without_end_is_named_and_nothing_follows(monkeypatch):
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 100)
    monkeypatch.setattr(lines, "CHUNK_BYTES", 64)
    async with horolog_broker() as broker:
        broker.create_topic("t")
        run, goes_on, _ = await send(broker, "one\n" + "x" * 200)
    assert goes_on is False
    assert [(each.line, "longer than 100 bytes" in each.reason) for each in run.refusals()] == [(2, True)]


@pytest.mark.parametrize("is_settled", [True, False])
async def test_a_doubt_about_a_time_is_settled_once_or_names_the_line(is_settled):
    settled, doubts = [], []

    def read(text):
        if not settled:
            raise UnitInDoubt(TIME_MS // 1000, "s", str)
        return value_of(text)

    async def settle(doubt):
        doubts.append(doubt.unit)
        settled.extend([True] * is_settled)
        return is_settled

    async with horolog_broker() as broker:
        broker.create_topic("t")
        run, _, _ = await send(broker, "one\ntwo\n", read=read, settle_doubt=settle)
        assert (run.written, run.refused) == ((2, 0) if is_settled else (0, 1))
        assert doubts == ["s"]
        assert len(broker.records("t")) == run.written


async def test_a_record_that_nobody_waits_for_any_more_is_given_up():
    """As if the event loop ended before the response."""

    class Held:
        async def send(self, *_arguments, **_named):
            return futures.append(asyncio.get_running_loop().create_future()) or futures[-1]

    futures = []
    run = Sending(Held(), "t")
    assert await run.file("-", io.StringIO("one\n"), value_of, lambda _: None)
    futures[0].cancel()
    await asyncio.sleep(0)
    assert [each.reason for each in run.refusals()] == ["given up"]
