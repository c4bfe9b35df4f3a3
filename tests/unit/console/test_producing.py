"""A record is written as it was typed, at its time, or again as another was."""

import json
import logging

import pytest

from horolog import Consumer, Producer
from horolog.client.values.types import TopicPartition
from tests.support.change_forms import confirmed, sent
from tests.support.console_browser import shown, topic_with

HOUR = 3_600_000


async def last_of(client, partition=0):
    async with Consumer(client) as consumer:
        place = TopicPartition("t", partition)
        consumer.assign([place])
        consumer.seek(place, 0)
        return (await consumer.poll(5000))[-1]


async def test_a_record_with_everything(caplog):
    caplog.set_level(logging.INFO, "horolog.console")
    async with shown(allow_changes=True) as (page, client, broker):
        await topic_with(client, "t", [(broker.clock.wall_ms(), b"x")])
        value = '\n{"a":\r\n 1}'
        plan = await sent(page, "produce", topic="t", key="k", value=value, headers="n=v=w\n", at="3h", partition="0")
        assert "JSON of" in plan.text
        done = await confirmed(page, "produce", plan)
        assert done.status_code == 303, done.text
        assert done.headers["location"].startswith("/moment?topic=t&at=")
        assert "- changed " in caplog.text
        assert '{"a"' not in caplog.text, "contents are not logged"
        record = await last_of(client)
        assert (record.key, json.loads(record.value), record.headers) == (b"k", {"a": 1}, ((b"n", b"v=w"),))
        assert abs(record.timestamp_ms - (broker.clock.wall_ms() - 3 * HOUR)) < 600_000


async def test_a_record_that_deletes_its_key():
    async with shown(allow_changes=True) as (page, client, broker):
        await topic_with(client, "t", [(broker.clock.wall_ms(), b"x")])
        plan = await sent(page, "produce", topic="t", key="k", value="")
        assert "deletes the key" in plan.text
        assert (await confirmed(page, "produce", plan)).status_code == 303
        assert (await last_of(client)).value is None
        assert "text of 3 bytes" in (await sent(page, "produce", topic="t", value="abc")).text


async def test_a_record_is_written_again():
    async with shown(allow_changes=True) as (page, client, broker):
        now = broker.clock.wall_ms() - HOUR
        await topic_with(client, "t", [(now, b"first")])
        async with Producer(client) as producer:
            await producer.send_and_wait("t", b"second", key=b"k", headers=[(b"a", b"b")], timestamp_ms=now)
            await producer.send_and_wait("t", b"\xff\xfe", timestamp_ms=now)
            await producer.send_and_wait("t", b"x", headers=[(b"a", b"1\n2")], timestamp_ms=now)
        assert "again=0%3A1" in (await page.get(f"/moment?topic=t&at={now}")).text
        form = (await page.get("/change/produce?topic=t&again=0:1")).text
        for part in ("second</textarea>", 'value="k"', "a=b</textarea>"):
            assert part in form
        for again, status in (("0:2", 409), ("0:3", 409), ("0:9", 404), ("x", 400)):
            assert (await page.get(f"/change/produce?topic=t&again={again}")).status_code == status


@pytest.mark.parametrize(
    ("fields", "status", "field"),
    [
        ({"partition": "7"}, 404, "partition"),
        ({"at": "soonish"}, 400, "at"),
        ({"headers": "none"}, 400, "headers"),
        ({"value": "x" * 50_000}, 400, "value"),
    ],
)
async def test_what_makes_no_sense_is_said_at_its_field(fields, status, field):
    async with shown(allow_changes=True) as (page, client, broker):
        await topic_with(client, "t", [(broker.clock.wall_ms(), b"x")])
        answer = await sent(page, "produce", topic="t", **{"value": "v", **fields})
        assert answer.status_code == status
        assert f'id="{field}-wrong"' in answer.text
