"""The brokers of a cluster: where they are, what they lead, and what their HTTP ports report."""

from dataclasses import replace

from horolog.client.segments.segments_look import HttpAccess
from horolog.client.values.types import TopicPartition
from horolog.client.wire.cluster_view import ClusterView, Node
from horolog.console import brokers
from horolog.console.brokers import BrokerRow, Doors, Hour, brokers_of
from horolog.console.pulse import BrokerAnswer
from horolog.console.scrapes import Scrape, Totals
from horolog.testing import horolog_broker
from tests.support.console_browser import browser, shown, topic_with


def view(count):
    return ClusterView("c", 2, {number: Node(number, "host", number, "r1") for number in range(1, count + 1)}, {})


def test_what_each_leads(monkeypatch):
    leaders = {TopicPartition("t", index): 1 + index // 2 for index in range(3)}
    door = HttpAccess("http://host:1")
    heard = BrokerAnswer(door, None, Scrape(Totals(), None))
    found = brokers_of(view(2), leaders, [heard, BrokerAnswer(door, why="is closed")])
    assert found.rows == [BrokerRow(1, "host:1", "r1", False, 2), BrokerRow(2, "host:2", "r1", True, 1)]
    assert (found.answers, found.left_out) == ([heard], 0)
    monkeypatch.setattr(brokers, "SHOWN_AT_MOST", 1)
    assert brokers_of(view(3), {}, []).left_out == 2


async def test_the_page_has_them():
    async with shown(broker_settings={"horolog_http_listen": "127.0.0.1:0"}) as (page, client, broker):
        await topic_with(client, "t", [(broker.clock.wall_ms(), b"x")], 3)
        text = (await page.get("/")).text.partition("<h2>Brokers</h2>")[2]
        assert f'{broker.bootstrap} <span class="tag">controller</span></td><td></td><td class="num">3</td>' in text
        assert broker.http.removeprefix("http://") in text


async def test_without_an_http_port_the_reason_is_shown():
    async with shown() as (page, _client, _broker):
        text = (await page.get("/")).text
        assert "the broker has no HTTP port (horolog.http.listen)" in text
        assert "<th>Process</th>" not in text


def test_the_answer_of_a_broker_is_that_of_its_port():
    one, other = (BrokerAnswer(HttpAccess(f"http://host:{port}")) for port in (1, 2))
    doors = Doors((one.door, other.door), {1: one.door, 2: other.door, 3: other.door})
    hour = Hour((one, other), doors=doors)
    assert [hour.answer_of(number) for number in (1, 2, 3, 4)] == [one, other, other, None], "workers share one"


async def test_a_port_that_was_given_is_of_no_broker_in_particular():
    async with horolog_broker(horolog_http_listen="127.0.0.1:0") as broker, browser(broker.bootstrap) as page:
        options = page.application.desk.options
        (cluster,) = options.clusters
        given = replace(options, clusters=(replace(cluster, http=HttpAccess(broker.http)),))
        page.application.desk = replace(page.application.desk, options=given)
        text = (await page.get("/")).text
        assert broker.http.removeprefix("http://") in text
