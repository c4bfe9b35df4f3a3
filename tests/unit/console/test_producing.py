"""A record is written as it was typed, at its time, or again as another was."""

import json
import logging
from html import unescape

import pytest

from horolog import Consumer, Producer
from horolog.client.decoding import RegistryAccess
from horolog.client.values.types import TopicPartition
from horolog.testing.registry_server import horolog_registry
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


ORDER = json.dumps({"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]})


async def test_a_value_is_encoded_by_a_schema_and_written_again_with_it():
    async with (
        horolog_registry() as registry,
        shown(allow_changes=True, registry=RegistryAccess(registry.url)) as (page, client, broker),
    ):
        registry.register("t-value", ORDER)
        await topic_with(client, "t", [(broker.clock.wall_ms(), b"x")])
        assert 'name="schema" value=""' in (await page.get("/change/produce?topic=t")).text
        for schema, option in (("t-value", "--subject t-value"), ("1", "--schema-id 1")):
            plan = await sent(page, "produce", topic="t", value='{"id": 7}', schema=schema)
            assert "encoded as Order (1)" in plan.text
            assert f"--registry {registry.url} {option}" in plan.text
            assert (await confirmed(page, "produce", plan)).status_code == 303
            assert (await last_of(client)).value == b"\0\0\0\0\1\x0e"
        form = unescape((await page.get("/change/produce?topic=t&again=0:1")).text)
        assert '{"id":7}</textarea>' in form
        assert 'name="schema" value="1"' in form
        for fields, field, said in (
            ({"value": '{"id": "x"}', "schema": "t-value"}, "value", "id"),
            ({"value": "{}", "schema": "gone"}, "schema", "gone"),
        ):
            answer = await sent(page, "produce", topic="t", **fields)
            assert answer.status_code == 400
            assert said in answer.text.partition(f'id="{field}-wrong"')[2].partition("</p>")[0]


async def test_a_confirmed_schema_is_the_one_that_was_shown():
    async with (
        horolog_registry() as registry,
        shown(allow_changes=True, registry=RegistryAccess(registry.url)) as (page, client, broker),
    ):
        registry.register("t-value", ORDER)
        await topic_with(client, "t", [(broker.clock.wall_ms(), b"x")])
        plan = await sent(page, "produce", topic="t", value='{"id": 7}', schema="t-value")
        registry.register("t-value", ORDER.replace("long", "double"))
        answer = await confirmed(page, "produce", plan)
        assert (answer.status_code, "encoded as Order (2)" in answer.text) == (409, True)


async def test_without_a_registry_no_schema_is_asked_for():
    async with shown(allow_changes=True) as (page, client, broker):
        await topic_with(client, "t", [(broker.clock.wall_ms(), b"x")])
        assert 'name="schema"' not in (await page.get("/change/produce?topic=t")).text
        answer = await sent(page, "produce", topic="t", value="v", schema="t-value")
        assert (answer.status_code, "--registry URL" in answer.text) == (400, True)


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
