"""Every change: its form, its plan, its command, which the command line accepts, its confirmation and log line; and refusals."""

import logging
import re
import shlex
from html import unescape

import pytest

from horolog import Admin
from horolog.client.cli.commands import COMMANDS
from horolog.console import changes
from horolog.console.visits import Refused
from tests.support.change_forms import confirmed, sent
from tests.support.console_browser import ORIGIN, shown, topic_with
from tests.support.guarded_broker import STANDARD_AUTHORIZER


async def test_a_change_is_shown_then_confirmed_and_logged(caplog):
    caplog.set_level(logging.INFO, "horolog.console")
    async with shown(allow_changes=True) as (page, client, broker):
        form = await page.get("/change/topic-create")
        assert "Show what this does" in form.text
        plan = await sent(page, "topic-create", name="orders", partitions="3", settings="retention.ms=7d")
        assert "nothing has changed yet" in plan.text
        assert "creates topic orders with 3 partitions" in plan.text
        assert "orders" not in (await client.metadata()).topics
        done = await confirmed(page, "topic-create", plan)
        assert (done.status_code, done.headers["location"]) == (303, "/topic?name=orders")
        assert len((await client.metadata()).topics["orders"].partitions) == 3
        assert "- changed 127" in caplog.text.replace(broker.bootstrap, "127")
        assert "topics create orders -p 3 -c retention.ms=604800000" in caplog.text


async def test_the_list_has_the_change_at_once():
    async with shown(allow_changes=True) as (page, _client, _broker):
        assert "orders" not in (await page.get("/")).text
        await confirmed(page, "topic-create", await sent(page, "topic-create", name="orders"))
        assert ">orders</a>" in (await page.get("/")).text


async def test_a_console_that_changes_nothing_has_no_such_page():
    async with shown() as (page, client, broker):
        await topic_with(client, "t", [(broker.clock.wall_ms(), b"x")])
        assert (await page.get("/change/topic-create")).status_code == 403
        answer = await sent(page, "topic-delete", name="t", step="apply")
        assert (answer.status_code, "--allow-changes" in answer.text) == (403, True)
        for path in ("/", "/topic?name=t", "/moment?topic=t"):
            assert "/change/" not in (await page.get(path)).text


async def test_what_a_foreign_page_sends_is_refused():
    async with shown(allow_changes=True) as (page, client, _broker):
        data = {"csrf": page.application.sessions.everybody.csrf, "name": "t"}
        assert (await page.post("/change/topic-create", data=data)).status_code == 403
        assert (await page.post("/change/topic-create", data={**data, "csrf": "x"}, headers=ORIGIN)).status_code == 403
        assert "t" not in (await client.metadata()).topics
        assert (await page.get("/change/everything")).status_code == 404


async def test_a_plan_that_is_old_is_shown_again_and_not_done():
    async with shown(allow_changes=True) as (page, client, broker), Admin(client) as admin:
        await topic_with(client, "t", [(broker.clock.wall_ms(), b"x")])
        plan = await sent(page, "topic-partitions", name="t", partitions="4")
        await admin.create_partitions({"t": 2})
        answer = await confirmed(page, "topic-partitions", plan)
        assert (answer.status_code, "has changed since" in answer.text) == (409, True)
        assert "adds 2 partitions" in answer.text
        assert (await confirmed(page, "topic-partitions", answer)).status_code == 303


async def test_a_broker_that_refuses_says_why_and_the_form_stays():
    async with shown(allow_changes=True) as (page, client, broker):
        await topic_with(client, "t", [(broker.clock.wall_ms(), b"x")])
        answer = await sent(page, "topic-create", name="t")
        assert answer.status_code == 502
        assert "TOPIC_ALREADY_EXISTS" in answer.text
        assert 'name="name" value="t"' in answer.text
        plan = await sent(page, "topic-create", name="other")
        async with Admin(client) as admin:
            await admin.create_topic("other")
        assert "TOPIC_ALREADY_EXISTS" in (await confirmed(page, "topic-create", plan)).text


async def test_an_apply_that_fails_is_logged(caplog, monkeypatch):
    from horolog.client.admin.admin import Admin as Changing
    from horolog.client.values.errors import error_of

    async def failing(self, names):
        raise error_of(29, "not allowed")

    async with shown(allow_changes=True) as (page, client, broker):
        await topic_with(client, "t", [(broker.clock.wall_ms(), b"x")])
        plan = await sent(page, "topic-delete", name="t")
        monkeypatch.setattr(Changing, "delete_topics", failing)
        answer = await confirmed(page, "topic-delete", plan, confirm="t")
        assert answer.status_code == 403
        assert "failed on" in caplog.text


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (
            "topic-create",
            {"name": "new", "partitions": "2", "replicas": "1", "settings": "retention.ms=1d\nsegment.ms=1h"},
        ),
        ("topic-partitions", {"name": "t", "partitions": "4"}),
        ("topic-setting", {"name": "t", "key": "retention.ms", "value": "7d"}),
        ("topic-setting", {"name": "t", "key": "retention.ms", "value": ""}),
        ("topic-delete", {"name": "t"}),
        ("group-delete", {"name": "g"}),
        ("user-put", {"name": "alice"}),
        ("acl-add", {"principal": "alice", "operation": "read", "resource": "topic:t*", "permission": "deny"}),
        ("quota-set", {"user": "(default)", "client-id": "c", "values": "request_percentage=50"}),
        ("produce", {"topic": "t", "key": "k", "value": "{}", "headers": "a=b", "at": "3h", "partition": "0"}),
    ],
)
async def test_the_command_is_one(kind, fields):
    """The command line reads it without complaint."""
    from horolog.client.cli.main import parser_of
    from horolog.client.values.types import TopicPartition

    guarded = {"settings": {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:ANONYMOUS"}}
    async with (
        shown(allow_changes=True, broker_settings=guarded) as (page, client, broker),
        Admin(client) as admin,
    ):
        await topic_with(client, "t", [(broker.clock.wall_ms(), b"x")])
        await admin.alter_group_offsets("g", {TopicPartition("t", 0): 0})
        text = (await sent(page, kind, **fields)).text
        words = shlex.split(unescape(re.search(r'<code id="command">(.*?)</code>', text, re.DOTALL)[1]))
        words = words[words.index("horolog") :]
        command = next(one for one in COMMANDS if one.name == words[1])
        parsed = parser_of(command).parse_args(words[2:])
        assert broker.bootstrap in str(vars(parsed))


async def test_a_refusal_stands_at_its_field_or_has_a_page():
    async with shown(allow_changes=True) as (page, _client, _broker):
        answer = await sent(page, "topic-create", name="", partitions="3")
        assert (answer.status_code, 'id="name-wrong"' in answer.text) == (400, True)
        assert 'name="partitions" value="3"' in answer.text


async def test_a_refusal_without_a_field_is_a_page(monkeypatch):
    async def making(_visit):
        async def plan():
            raise Refused("not today", 409)

        return changes.Form("A form", (), plan, "Do it")

    monkeypatch.setattr(changes, "form_of", making)
    async with shown(allow_changes=True) as (page, _client, _broker):
        answer = await sent(page, "topic-create")
        assert (answer.status_code, "not today" in answer.text) == (409, True)


async def test_a_confirmation_is_the_name():
    async with shown(allow_changes=True) as (page, client, broker):
        await topic_with(client, "t", [(broker.clock.wall_ms(), b"x")])
        plan = await sent(page, "topic-delete", name="t")
        wrong = await confirmed(page, "topic-delete", plan, "x")
        assert (wrong.status_code, "type t to confirm" in wrong.text) == (400, True)
        assert (await confirmed(page, "topic-delete", plan, "t")).status_code == 303
