"""The hour of a cluster: asked again and again, bounded, and over an hour after its last page."""

import asyncio

import pytest

from horolog.base.clock import SystemClock
from horolog.client.segments.segments_look import HttpAccess
from horolog.client.wire import http_get
from horolog.console import pulse
from horolog.console.pulse import IDLE_S, HourSample, Pulse, Pulses, answer_of, points
from horolog.console.scrapes import Totals
from horolog.testing import horolog_broker
from tests.support.waiting import until

CLOSED = HttpAccess("http://127.0.0.1:9", timeout_ms=500)


class Clock(SystemClock):
    ahead = 0.0

    def monotonic(self):
        return super().monotonic() + self.ahead


@pytest.fixture
def answers(monkeypatch):
    """What HTTP ports answer, by path."""
    given = {
        "/ready": (200, b'{"ready": true, "reasons": [], "warnings": []}'),
        "/metrics": (200, b"horolog_connections 1\n"),
    }

    async def getting(_access, path, **_):
        status, body = given[path]
        return http_get.HttpResponse(status, body)

    monkeypatch.setattr(pulse, "get", getting)
    return given


async def test_a_broker_is_asked_and_its_rates_are_known():
    async with horolog_broker(horolog_http_listen="127.0.0.1:0") as broker:
        pulses = Pulses(0.01)
        known = await pulses.of("c", [HttpAccess(broker.http)], SystemClock())
        await until(lambda: len(known.samples) > 2)
        assert known.answers[0].ready.is_ready
        assert [one.value for one in points(known.samples, "size_bytes")] == [0] * len(known.samples)
        assert any(one.value is not None for one in points(known.samples, "sent_bytes"))
        assert await pulses.of("c", known.doors, SystemClock()) is known
        assert repr(pulses) == "<Pulses of 1 clusters>"
        assert "1 broker," in repr(known)
        await pulses.close()
        assert known.is_over


async def test_answers_that_are_none(answers):
    assert (await answer_of(CLOSED)).scrape.totals.connections == 1
    answers["/metrics"] = 200, b"<html>"
    assert (await answer_of(CLOSED)).why == "sent an unreadable response"
    answers["/ready"] = 401, b""
    assert (await answer_of(CLOSED)).why == "requires a token"


async def test_a_port_that_is_closed():
    assert "cannot be reached" in (await answer_of(CLOSED)).why


async def test_a_sum_needs_all_brokers(answers):
    known = Pulse([CLOSED, CLOSED], SystemClock(), 0.01)
    await known.wanted([CLOSED, CLOSED])
    assert known.samples[-1].totals.connections == 2
    answers["/metrics"] = 200, b""
    await until(lambda: known.samples[-1].totals == Totals())
    await known.end()


@pytest.mark.usefixtures("answers")
async def test_it_is_over_an_hour_after_the_last_page():
    clock = Clock()
    pulses = Pulses(0.01)
    known = await pulses.of("c", [CLOSED], clock)
    clock.ahead = IDLE_S + 1
    await until(lambda: known.is_over)
    assert await pulses.of("c", [CLOSED], clock) is not known
    await pulses.close()


@pytest.mark.usefixtures("answers")
async def test_clusters_are_bounded(monkeypatch):
    monkeypatch.setattr(pulse, "CLUSTERS_AT_MOST", 1)
    pulses = Pulses()
    first = await pulses.of("a", [CLOSED], SystemClock())
    second = await pulses.of("b", [CLOSED], SystemClock())
    assert (first.is_over, second.is_over) == (True, False)
    await pulses.close()


async def test_a_page_waits_only_for_a_moment(monkeypatch):
    async def never(_door):
        await asyncio.Event().wait()

    monkeypatch.setattr(pulse, "answer_of", never)
    monkeypatch.setattr(pulse, "FIRST_SECONDS", 0.01)
    pulses = Pulses()
    known = await pulses.of("a", [CLOSED], SystemClock())
    assert (known.answers, len(known.samples)) == ((), 0)
    await pulses.close()


def test_rates():
    def rates(*values, brokers=((), (), ()), step=10_000):
        samples = [
            HourSample(number * step, which, Totals(requests=value))
            for number, (value, which) in enumerate(zip(values, brokers, strict=True))
        ]
        return [one.value for one in points(samples, "requests")]

    assert rates(0, 10, 30) == [1.0, 2.0]
    assert rates(10, 0, 10) == [None, 1.0], "the broker was started again"
    assert rates(0, None, 10) == [None, None]
    assert rates(0, 10, 30, brokers=((), (CLOSED,), (CLOSED,))) == [None, 2.0]
    assert rates(0, 10, 30, step=0) == [None, None]
