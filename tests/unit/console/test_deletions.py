"""A topic or a group is deleted once its name is typed, and the plan has shown the loss."""

import pytest

from horolog import Admin, Consumer
from tests.support.change_forms import confirmed, sent
from tests.support.console_browser import shown, topic_with


async def records(client, broker):
    now = broker.clock.wall_ms()
    await topic_with(client, "t", [(now - number, b"x") for number in range(4)])


@pytest.mark.parametrize(("kind", "name"), [("topic-delete", "tt"), ("group-delete", "nobody")])
async def test_what_is_not_there_is_not_deleted(kind, name):
    async with shown(allow_changes=True) as (page, client, broker):
        await records(client, broker)
        answer = await sent(page, kind, name=name)
        assert answer.status_code == 404
        assert 'id="plan"' not in answer.text


async def test_a_topic_is_deleted_once_its_name_is_typed():
    async with shown(allow_changes=True) as (page, client, broker):
        await records(client, broker)
        plan = await sent(page, "topic-delete", name="t")
        assert "you lose 4 records" in plan.text
        unsure = await confirmed(page, "topic-delete", plan, "")
        assert (unsure.status_code, 'id="confirm-wrong"' in unsure.text) == (400, True)
        assert (await confirmed(page, "topic-delete", plan, "t")).status_code == 303
        assert "t" not in (await client.metadata()).topics


async def test_a_group_is_deleted_once_it_has_no_members():
    async with shown(allow_changes=True) as (page, client, broker), Admin(client) as admin:
        await records(client, broker)
        async with Consumer(client, group="g") as consumer:
            await consumer.subscribe(["t"])
            await consumer.poll(5000)
            await consumer.commit()
            refused = await sent(page, "group-delete", name="g")
            assert (refused.status_code, "it has members" in refused.text) == (409, True)
        plan = await sent(page, "group-delete", name="g")
        assert "deletes group g with its offsets in 1 partition" in plan.text
        assert (await confirmed(page, "group-delete", plan, "g")).status_code == 303
        assert "g" not in [one.group for one in await admin.list_groups()]
