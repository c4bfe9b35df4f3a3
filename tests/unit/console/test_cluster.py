"""The page Cluster: brokers, leaders, workers, and the object store with its bill."""

import pytest

from horolog import Client
from horolog.client.wire import http_get
from horolog.client.wire.cluster_view import ClusterView, Node, PartitionView, TopicView
from horolog.console import cluster, pulse
from horolog.console.brokers import Hour
from horolog.console.cluster import LedPartitions, TopicLeaders, brokers_in, leaders_of_topic
from horolog.testing import horolog_cluster
from tests.support.console_browser import browser, shown, topic_with

METRICS = """horolog_connections 1
process_start_time_seconds 1700000000
horolog_worker_info{worker="0",state="ready"} 1
horolog_worker_info{worker="1",state="starting"} 1
horolog_worker_down_seconds{worker="1"} 2
"""
STORE = """horolog_store_requests_total{kind="get",outcome="done"} 30
horolog_store_requests_total{kind="create",outcome="unknown"} 2
horolog_store_request_seconds_sum{kind="get"} 0.3
horolog_store_daily_dollars 0.5
horolog_store_unsafe_bytes 2048
horolog_store_lease_left_seconds LEASE
"""


@pytest.fixture
def answers(monkeypatch):
    """What HTTP ports answer, by path."""
    given = {"/ready": b'{"ready": true, "reasons": [], "warnings": []}', "/metrics": METRICS.encode()}

    async def getting(_access, path, **_):
        return http_get.HttpResponse(200, given[path])

    monkeypatch.setattr(pulse, "get", getting)
    return given


def view_of(*leaders):
    nodes = {number: Node(number, "host", number, "r1" if number == 1 else None) for number in (1, 2)}
    places = {index: PartitionView(index, leader, 0, (1, 2), (1,)) for index, leader in enumerate(leaders)}
    topic = TopicView("t", b"", False, places, numbers=list(places))
    return ClusterView("c", 2, nodes, {"t": topic})


def test_who_leads_what():
    view = view_of(1, 1, 1, 2, -1, 7)
    assert leaders_of_topic(view.topics["t"], view) == TopicLeaders(
        "t", 6, (LedPartitions(1, "0-2"), LedPartitions(2, "3")), "4, 5"
    )
    one, other = brokers_in(view, Hour())
    assert (one.leads, one.replicas, one.rack, one.is_controller) == (3, 6, "r1", False)
    assert (other.leads, other.address, other.rack, other.is_controller) == (1, "host:2", "", True)
    assert (one.answer, one.started_s, one.store) == (None, None, None)


async def test_brokers_over_a_store_have_a_bill(answers, monkeypatch):
    async def url(_client):
        return "s3://bucket/prefix"

    monkeypatch.setattr(cluster, "store_url_of", url)
    answers["/metrics"] = (METRICS + STORE.replace("LEASE", "4.25")).encode()
    async with shown(broker_settings={"horolog_http_listen": "127.0.0.1:0"}) as (page, client, broker):
        await topic_with(client, "orders", [(broker.clock.wall_ms(), b"x")], 3)
        text = (await page.get("/cluster")).text
    assert "over <code>s3://bucket/prefix</code>" in text
    assert "<dt>Requests cost a day</dt><dd>$0.5</dd>" in text
    assert "<dt>And a month</dt><dd>$15.00</dd>" in text
    assert "<dt>Not in the store yet</dt><dd>2.0 KiB</dd>" in text
    assert "<dt>Shortest lease</dt><dd>4.2 s</dd>" in text
    assert '<td class="name">get</td><td class="num">30</td><td class="num">0</td><td class="num">10.0 ms</td>' in text
    assert '<td class="name">create</td><td class="num">2</td><td class="num bad">2</td>' in text
    assert '<a href="/topic?name=orders">orders</a></td><td class="num">3</td><td><b>' in text
    assert "down for 2s" in text
    assert "2023-11-14" in text


async def test_a_lease_that_is_over_is_bad(answers):
    answers["/metrics"] = (METRICS + STORE.replace("LEASE", "-1")).encode()
    async with shown(broker_settings={"horolog_http_listen": "127.0.0.1:0"}) as (page, _client, _broker):
        assert '<dt>Shortest lease</dt><dd class="bad">expired</dd>' in (await page.get("/cluster")).text


async def test_a_broker_without_a_store(answers):
    async with shown(broker_settings={"horolog_http_listen": "127.0.0.1:0"}) as (page, client, broker):
        text = (await page.get("/cluster?filter=x")).text
        assert "These brokers share no object store." in text
        assert "No topic has “x” in its name." in text
        part = await page.get("/cluster", headers={"hx-request": "true"})
        assert part.text.startswith("<div data-into=")
        assert '<a class="button" href="/cluster">' in (await page.get("/")).text
        assert await cluster.store_url_of(client) is None
        assert broker.bootstrap in text


async def test_a_port_that_does_not_answer_leaves_states_unknown(answers):
    answers["/metrics"] = b"<html>"
    async with shown(broker_settings={"horolog_http_listen": "127.0.0.1:0"}) as (page, _client, _broker):
        assert '<span class="tag bad">sent an unreadable response</span>' in (await page.get("/cluster")).text


async def test_three_brokers_over_a_store():
    async with horolog_cluster() as brokers:
        await brokers.create_topic("orders", 3)
        async with Client(brokers.bootstrap), browser(brokers.bootstrap) as page:
            text = (await page.get("/cluster")).text
            assert text.count('data-name="leads"') == 3
            assert all(address in text for address in brokers.addresses.values())
            leaders = brokers.leaders("orders")
            assert all(f"<b>{number}</b>: " in text for number in set(leaders.values()))
            assert "States, workers and the store are not shown: the broker has no HTTP port" in text


async def test_a_broker_that_hides_its_settings(monkeypatch):
    from horolog.client.admin.admin_configs import ConfigAdmin
    from horolog.client.values.errors import KafkaError
    from horolog.protocol.errors import ErrorCode

    async def refuse(*_):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "no")

    async with shown() as (_page, client, _broker):
        await client.metadata()
        monkeypatch.setattr(ConfigAdmin, "describe_configs", refuse)
        assert await cluster.store_url_of(client) is None
