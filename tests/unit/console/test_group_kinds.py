"""Share groups and streams groups: records that are done early, topologies and tasks."""

import asyncio

from horolog import Admin
from horolog.client.moments.lagging import Lag
from horolog.client.values.types import TopicPartition
from horolog.console.group_kinds import done_early
from horolog.protocol.messages.streams_groups import StreamsGroupHeartbeatRequest
from tests.support.console_browser import shown, topic_with
from tests.support.streams_world import counting

PLACE = TopicPartition("t", 0)
HOUR = 3_600_000


def test_records_that_are_done_early():
    lag = Lag("g", PLACE, 4, 20, 6, None, None, None)
    assert done_early(lag) == 10
    assert done_early(lag._replace(committed=None)) is None
    assert done_early(lag._replace(records=None)) is None


async def test_the_page_of_a_share_group():
    settings = {"horolog_http_listen": "127.0.0.1:0"}
    async with shown(broker_settings=settings) as (page, client, broker):
        await topic_with(client, "t", [(broker.clock.wall_ms() - HOUR, b"a"), (broker.clock.wall_ms(), b"b")])
        async with Admin(client) as admin:
            await admin.alter_share_group_offsets("workers", {PLACE: 0})
        text = (await page.get("/group?name=workers")).text
        assert "Start offset" in text
        assert ">Empty</span> share group, assignor simple</span>" in text
        assert '<td class="num" data-name="done early">0</td>' in text
        assert (
            '<dt title="Acquired, or waiting for another delivery">In flight or delayed, all share groups</dt><dd>0</dd>'
            in text
        )
        assert '<td class="num" data-name="waiting or in flight">2</td>' in text
        assert "<dt>Time behind, at the worst</dt><dd>1h" in text
        listed = (await page.get("/groups")).text
        assert '<td class="quiet" data-name="kind">share</td>' in listed.lower()


async def test_a_share_group_without_an_http_port():
    async with shown() as (page, client, broker):
        await topic_with(client, "t", [(broker.clock.wall_ms(), b"a")])
        async with Admin(client) as admin:
            await admin.alter_share_group_offsets("workers", {PLACE: 0})
        text = (await page.get("/group?name=workers")).text
        assert 'all share groups</dt><dd><span class="unknown">not known</span>' in text


async def test_the_page_of_a_streams_group():
    settings = {"group_streams_initial_rebalance_delay_ms": 0}
    async with asyncio.timeout(30), shown(broker_settings=settings) as (page, client, broker):
        broker.create_topic("t", 2)
        beat = StreamsGroupHeartbeatRequest(
            group_id="g",
            member_id="m",
            member_epoch=0,
            rebalance_timeout_ms=1000,
            process_id="p",
            topology=counting(),
            active_tasks=[],
            standby_tasks=[],
            warmup_tasks=[],
        )
        answer = await client.request(beat, coordinator_of=("group", "g"))
        assert not answer.error_code, answer
        while not answer.active_tasks:
            again = StreamsGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=answer.member_epoch)
            answer = await client.request(again, coordinator_of=("group", "g"))
        text = (await page.get("/group?name=g")).text
        assert "2 subtopologies" in text
        assert "g-by-key" in text
        assert "0: 0, 1" in text
        assert "Start offset" not in text
        assert ">Stable</span> streams group, assignor sticky</span>" in text
        assert "Reset t</a>" in text
        assert "Reset g-by-key</a>" not in text
