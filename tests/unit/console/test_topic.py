"""The page of a topic says when its records are, what was set and by whom, and what a hostile value says is text."""

import re
from datetime import UTC

import pytest

from horolog import Client
from horolog.client.admin.admin_configs import Config
from horolog.client.values.errors import KafkaError
from horolog.client.values.times import parse_time
from horolog.client.values.types import TopicPartition
from horolog.console import topic
from horolog.console.facts import PartitionFacts, TopicFacts
from horolog.console.topic import mean_bytes, retention_edge, settings_of
from horolog.protocol.errors import ErrorCode
from horolog.testing import horolog_broker
from tests.support.console_browser import browser, shown, topic_with

HOUR = 3_600_000


async def test_a_topic_with_its_settings_and_retention():
    async with shown() as (page, client, broker):
        now = broker.clock.wall_ms()
        await topic_with(client, "t", [(now - HOUR, b"a"), (now, b"b")], 2, retention_ms="7200000")
        text = (await page.get("/topic?name=t")).text
        assert "retention.ms" in text.partition("defaults")[0]
        assert "<td>topic</td>" in text
        assert "may be deleted" in text
        assert "data-chart=" in text
        assert (await page.get("/topic?name=t&from=2h&until=30m")).text.count("<time") > 3
        assert (await page.get(f"/topic?name=t&from={now - HOUR}&until={now - HOUR + 1}")).status_code == 200
        assert (await page.get("/topic?name=t&from=1h&until=2h")).status_code == 400
        assert (await page.get("/topic?name=t&from=never")).status_code == 400
        close = await page.get("/topic?name=tt")
        assert (close.status_code, "do you mean" in close.text) == (404, True)
        assert (await page.get("/topic")).status_code == 400


async def test_an_empty_topic_and_one_that_is_ahead():
    async with shown() as (page, client, broker):
        await topic_with(client, "none", [])
        assert "has no records with a time" in (await page.get("/topic?name=none")).text
        ahead = broker.clock.wall_ms() + 9 * HOUR
        await topic_with(client, "ahead", [(ahead, b"x")], message_timestamp_after_max_ms="99999999999")
        assert "later than now" in (await page.get("/topic?name=ahead")).text


async def test_what_is_not_told_is_not_known(monkeypatch):
    async with shown() as (page, client, broker):
        await topic_with(client, "t", [(broker.clock.wall_ms(), b"x")])

        async def nothing(client):
            return None

        monkeypatch.setattr(topic, "log_dirs_of", nothing)
        text = (await page.get("/topic?name=t")).text
        assert 'Size</dt><dd><span class="unknown">not known</span>' in text
        assert "bytes by time: " in text


async def test_settings_that_are_not_shown_to_this_user():
    class Refusing(Client):
        async def retry(self, operation, *, timeout_ms=None):
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)

    assert await settings_of(Refusing("127.0.0.1:1"), "t") is None


def test_the_edge_of_retention():
    def settings(kept, policy="delete"):
        return [Config("retention.ms", kept, 1), Config("cleanup.policy", policy, 5)]

    assert retention_edge(settings("1000"), 5000) == 4000
    assert retention_edge(settings("1000", "compact,delete"), 5000) == 4000
    for found in (settings("-1"), settings("1000", "compact"), settings("x"), [], None):
        assert retention_edge(found, 5000) is None


def test_mean_sizes():
    def facts(start, end, size):
        return TopicFacts("t", (PartitionFacts(TopicPartition("t", 0), start, end, size_bytes=size),))

    place = TopicPartition("t", 0)
    assert mean_bytes(facts(0, 4, 100)) == {place: 25.0}
    assert mean_bytes(facts(4, 4, 100)) == {place: 0.0}
    assert mean_bytes(facts(0, 4, None)) == mean_bytes(facts(None, 4, 1)) == {}


async def test_segments_and_exact_bytes_where_the_broker_tells_them():
    async with (
        horolog_broker(horolog_http_listen="127.0.0.1:0") as broker,
        Client(broker.bootstrap) as client,
        browser(broker.bootstrap) as page,
    ):
        now = broker.clock.wall_ms()
        await topic_with(client, "t", [(now - HOUR, b"a"), (now, b"b")], 2)
        text = (await page.get("/topic?name=t")).text
        assert '<svg class="strip" role="img"' in text
        assert "estimated" not in text
        assert "2 segments in 2 partitions" in text
        one = (await page.get("/topic?name=t&partition=1")).text
        assert "Timeline of partition 1" in one
        assert "1 segment in 1 partition" in one
        assert "all partitions" in one
        assert (await page.get("/topic?name=t&partition=2")).status_code == 404
        assert (await page.get("/topic?name=t&partition=x")).status_code == 400


async def test_why_there_are_no_segments_is_said():
    async with shown() as (page, client, broker):
        await topic_with(client, "t", [(broker.clock.wall_ms(), b"a")])
        text = (await page.get("/topic?name=t")).text
        assert "segments are not shown: the broker has no HTTP port" in text
        assert "bytes by time are estimated" in text


@pytest.mark.parametrize(
    ("query", "field", "typed"), [("from=soonish&until=1h", "from", "soonish"), ("from=1h&until=2h", "until", "2h")]
)
async def test_a_range_that_makes_no_sense_is_said_beside_its_field(query, field, typed):
    async with shown() as (page, client, broker):
        now = broker.clock.wall_ms()
        await topic_with(client, "t", [(now - HOUR, b"x"), (now, b"y")])
        answer = await page.get(f"/topic?name=t&{query}")
        assert answer.status_code == 400
        assert f'<p class="wrong" id="{field}-wrong" role="alert">' in answer.text
        assert f'name="{field}" value="{typed}"' in answer.text
        assert "2 records" in answer.text, "the timeline of all there is"


async def test_settings_are_said_as_people_say_them():
    async with shown() as (page, client, _):
        await topic_with(client, "t", [], retention_ms="1209600000")
        assert '<td class="value mono" title="1209600000">14 days</td>' in (await page.get("/topic?name=t")).text


async def test_fields_have_times_after_a_zoom():
    async with shown() as (page, client, broker):
        now = broker.clock.wall_ms() // 1000 * 1000
        await topic_with(client, "t", [(now, b"x")])
        text = (await page.get(f"/topic?name=t&from={now - HOUR}&until={now + HOUR}&tz=UTC")).text
        shown_times = re.findall(r'name="(?:from|until)" value="([^"]*)"', text)
        assert [parse_time(one, now_ms=0, zone=UTC).ms for one in shown_times] == [now - HOUR, now + HOUR]
        assert all(re.fullmatch(r"[-\dT:]+Z", one) for one in shown_times)
