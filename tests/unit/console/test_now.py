"""The page Now shows what there is, and troubles; ten thousand topics are paged, filtered and sorted."""

import pytest

from horolog.client.values.types import TopicPartition
from horolog.client.wire.cluster_view import ClusterView, Node, PartitionView, TopicView
from horolog.console import now, pulse
from horolog.console.now import ROWS, by_topic, choose, leaders_of
from horolog.console.pulse import BrokerAnswer
from horolog.console.scrapes import Ready, Scrape, Totals
from tests.support.console_browser import shown, topic_with

HOUR = 3_600_000
LONG_S = 60.0
HTTP = {"horolog_http_listen": "127.0.0.1:0"}


@pytest.fixture(autouse=True)
def answers_are_awaited(monkeypatch):
    """A first page waits for the answers of the broker's HTTP port, however busy the machine is."""
    monkeypatch.setattr(pulse, "FIRST_SECONDS", LONG_S)


def topic(name, *partitions, error=0):
    return TopicView(name, b"", False, dict(enumerate(partitions)), error, 0.0, list(range(len(partitions))))


def partition(leader=1, in_sync=(1,), error=0):
    return PartitionView(0, leader, 0, (1,), in_sync, error)


def view(*topics):
    return ClusterView("c", 1, {1: Node(1, "127.0.0.1", 1)}, {one.name: one for one in topics})


async def test_topics_are_shown_with_their_facts_and_linked():
    async with shown() as (page, client, broker):
        time_ms = broker.clock.wall_ms()
        await topic_with(client, "orders", [(time_ms - HOUR, b"a"), (time_ms, b"b")], 2)
        await topic_with(client, "ahead", [(time_ms + 5 * HOUR, b"x")], message_timestamp_after_max_ms="999999999")
        await topic_with(client, "late", [(time_ms, b"a"), (time_ms - HOUR, b"b")])
        text = (await page.get("/")).text
        assert 'href="/topic?name=orders"' in text
        assert "in order" in text
        assert "1h late" in text
        assert "retention of ahead is blocked, partition 0: the record at offset 0" in text
        assert "<h2>Disks</h2>" in text
        part = (await page.get("/?filter=ORD&sort=size", headers={"hx-request": "true"})).text
        assert "<html" not in part
        assert "1 of 3" in part
        assert "late" not in part.partition("<tbody>")[2].partition("</tbody>")[0]
        assert "No topic has" in (await page.get("/?filter=%3Cb%3E")).text
        assert "<b>”" not in (await page.get("/?filter=%3Cb%3E")).text


async def test_an_empty_cluster():
    async with shown() as (page, _, _):
        text = (await page.get("/")).text
        assert "There are no topics" in text
        assert "Nothing is wrong" not in text
        assert (
            "No known problems. Not checked: the readiness of the brokers: the broker has no HTTP port (horolog.http.listen)."
            in text
        )


async def test_nothing_is_wrong_if_the_broker_says_so_too():
    async with shown(broker_settings=HTTP) as (page, _, _):
        text = (await page.get("/")).text
        assert "Nothing is wrong." in text
        assert "Not checked" not in text
        assert '<span class="tag good">ready</span>' in text
        assert '<dl class="figures hour"' in text


async def test_topics_of_other_pages_are_not_checked(monkeypatch):
    monkeypatch.setattr(now, "ROWS", 1)
    async with shown(broker_settings=HTTP) as (page, client, broker):
        for name in ("t", "u"):
            await topic_with(client, name, [(broker.clock.wall_ms(), b"x")])
        assert "Not checked: the times of topics that this page does not list." in (await page.get("/")).text


async def test_what_the_broker_reports_comes_first(monkeypatch):
    async def answer(door):
        return BrokerAnswer(door, Ready(False, ("the disk is full",), ("a copy is damaged",)), Scrape(Totals(), None))

    monkeypatch.setattr(pulse, "answer_of", answer)
    async with shown(broker_settings=HTTP) as (page, client, broker):
        ahead = broker.clock.wall_ms() + 9 * HOUR
        await topic_with(client, "ahead", [(ahead, b"x")], message_timestamp_after_max_ms="999999999")
        text = (await page.get("/")).text.partition('class="troubles"')[2]
        assert text.index("the disk is full") < text.index("a copy is damaged") < text.index("retention of ahead")
        assert "Set horolog.future.timestamp.max.ms" in text


def test_ten_thousand_topics_are_paged():
    topics = [topic(f"topic-{number:05}", *([partition()] * (1 + number % 3))) for number in range(10_000)]
    first = choose(topics, "", "name", 1, {})
    assert (len(first.topics), first.pages, first.found, first.all) == (ROWS, 10_000 // ROWS, 10_000, 10_000)
    assert choose(topics, "", "name", 9999, {}).number == first.pages
    assert [one.name for one in choose(topics, "0999", "size", 1, {"topic-09995": 5}).topics][:2] == [
        "topic-09995",
        "topic-00999",
    ]
    assert len(choose(topics, "", "partitions", 1, {}).topics[0].partitions) == 3
    assert choose(topics, "nothing", "name", 3, {}).topics == ()


def test_leaders_are_brokers_that_are_there():
    several = topic("t", *([partition(leader=7)] * 2))
    assert leaders_of(view(several, topic("u", partition()))) == {TopicPartition("u", 0): 1}


def test_sizes_are_summed_by_topic():
    sizes = {TopicPartition("t", 0): 5, TopicPartition("t", 1): 6, TopicPartition("u", 0): 1}
    assert by_topic(sizes) == {"t": 11, "u": 1}
    assert by_topic(None) == {}
