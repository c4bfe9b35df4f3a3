"""Topics are created, grown and set, each after its plan has said what happens."""

import pytest

from horolog import Admin
from tests.support.change_forms import confirmed, sent
from tests.support.console_browser import shown, topic_with

HOUR = 3_600_000


async def old_records(client, broker):
    now = broker.clock.wall_ms()
    await topic_with(client, "t", [(now - back * HOUR, b"x" * 100) for back in (50, 40, 30, 1)])


@pytest.mark.parametrize(
    ("kind", "fields", "status", "field"),
    [
        ("topic-create", {"name": ""}, 400, "name"),
        ("topic-create", {"name": "n", "partitions": "x"}, 400, "partitions"),
        ("topic-create", {"name": "n", "settings": "retention.ms"}, 400, "settings"),
        ("topic-partitions", {"name": "t", "partitions": "1"}, 400, "partitions"),
        ("topic-setting", {"name": "t", "key": "retention.ms", "value": "soon"}, 400, "value"),
        ("topic-setting", {"name": "t", "key": "colour", "value": "red"}, 404, ""),
    ],
)
async def test_what_cannot_be_done(kind, fields, status, field):
    async with shown(allow_changes=True) as (page, client, broker):
        await old_records(client, broker)
        answer = await sent(page, kind, **fields)
        assert answer.status_code == status
        assert 'id="plan"' not in answer.text
        assert (f'id="{field}-wrong"' in answer.text) == bool(field)


async def test_retention_that_takes_records_says_how_many_and_wants_the_name():
    async with shown(allow_changes=True) as (page, client, broker), Admin(client) as admin:
        await old_records(client, broker)
        form = (await page.get("/change/topic-setting?name=t&key=retention.ms")).text
        assert "Its default here is 7 days" in form
        assert 'class="note">' in form
        harmless = await sent(page, "topic-setting", name="t", key="retention.ms", value="3d")
        assert "retention deletes no record" in harmless.text
        assert 'name="confirm"' not in harmless.text
        plan = await sent(page, "topic-setting", name="t", key="retention.ms", value="35h")
        assert "retention deletes up to 2 records" in plan.text
        assert (await confirmed(page, "topic-setting", plan, "x")).status_code == 400
        assert (await confirmed(page, "topic-setting", plan, "t")).status_code == 303
        assert (await admin.describe_configs("topic", "t"))["retention.ms"].value == str(35 * HOUR)
        back = await sent(page, "topic-setting", name="t", key="retention.ms", value="")
        assert "from 1 day 11 hours to 7 days" in back.text
        assert (await confirmed(page, "topic-setting", back)).status_code == 303
        assert (await admin.describe_configs("topic", "t"))["retention.ms"].source == 5
        other = await sent(page, "topic-setting", name="t", key="max.message.bytes", value="2MiB")
        assert "retention" not in other.text.partition("What this does")[2]


async def test_partitions_are_added():
    async with shown(allow_changes=True) as (page, client, broker):
        await old_records(client, broker)
        plan = await sent(page, "topic-partitions", name="t", partitions="3")
        assert "another partition than its old ones" in plan.text
        assert (await confirmed(page, "topic-partitions", plan)).status_code == 303
        assert len((await client.metadata()).topics["t"].partitions) == 3


def test_a_default_has_the_unit_of_its_setting():
    from horolog.client.admin.admin_configs import Config
    from horolog.console.topic_changes import _default_of, _typed

    def default(name, value, source, *synonyms):
        return _default_of(Config(name, value, source, synonyms=synonyms))

    assert default("retention.ms", "1", 1, ("retention.ms", "1", 1), ("log.retention.hours", "168", 5)) == "604800000"
    assert default("retention.ms", "1", 1, ("log.retention.minutes", "2", 4)) == "120000"
    assert default("cleanup.policy", "x", 1, ("log.cleanup.policy", "delete", 5)) == "delete"
    assert (default("a", "1", 1), default("a", "1", 5)) == (None, "1")
    assert (_typed("retention.ms", "604800000"), _typed("cleanup.policy", "delete")) == ("7 days", "delete")
    assert _typed("retention.ms", "-1") == "-1"


async def test_a_topic_is_created_as_the_form_says():
    async with shown(allow_changes=True) as (page, client, _broker), Admin(client) as admin:
        plan = await sent(
            page, "topic-create", name="new", partitions="2", replicas="1", settings="retention.ms=1d\n\nsegment.ms=1h"
        )
        assert "sets retention.ms to 1 day" in plan.text
        assert (await confirmed(page, "topic-create", plan)).status_code == 303
        assert len((await client.metadata()).topics["new"].partitions) == 2
        assert (await admin.describe_configs("topic", "new"))["segment.ms"].value == str(HOUR)
        plain = await sent(page, "topic-create", name="plain")
        assert "with the broker&#39;s default number of partitions" in plain.text


@pytest.mark.parametrize(("key", "value"), [("cleanup.policy", "compact"), ("retention.ms", "-1")])
async def test_settings_that_delete_nothing_by_age(key, value):
    async with shown(allow_changes=True) as (page, client, broker):
        await old_records(client, broker)
        plan = await sent(page, "topic-setting", name="t", key=key, value=value)
        assert "retention deletes no record" in plan.text
