"""A reset is shown before it is done, done as it was shown, logged, and refused where anything has moved."""

import logging
import re

import pytest

from horolog import Admin
from horolog.client.values.types import TopicPartition
from horolog.console.resets import Step
from tests.support.console_browser import ORIGIN, shown, topic_with

HOUR = 3_600_000
PLACE = TopicPartition("t", 0)


async def behind(client, broker, at=2):
    """A group at an offset of four records, an hour between each."""
    now = broker.clock.wall_ms()
    await topic_with(client, "t", [(now - (4 - number) * HOUR, b"x") for number in range(4)])
    async with Admin(client) as admin:
        await admin.alter_group_offsets("g", {PLACE: at})
    return now


async def committed(client):
    async with Admin(client) as admin:
        return (await admin.group_offsets("g"))[PLACE].offset


def fields_of(text):
    return dict(
        re.findall(
            r'type="hidden" name="(\w+)" value="([^"]*)"', text.partition('<form method="post" action="/group/reset')[2]
        )
    )


def test_steps():
    assert (Step(PLACE, 5, 2, None, 0, 9).again, Step(PLACE, 5, 2, None, 0, 9).skipped) == (3, 0)
    assert (Step(PLACE, 2, 7, None, 0, 9).again, Step(PLACE, 2, 7, None, 0, 9).skipped) == (0, 5)
    assert Step(PLACE, 2, 7, None, 4, 9).skipped == 3, "retention has taken the others"
    assert (Step(PLACE, None, 7, None, 0, 9).again, Step(PLACE, 7, None, None, 0, 9).skipped) == (0, 0)


async def test_a_dry_run_changes_nothing():
    async with shown() as (page, client, broker):
        now = await behind(client, broker)
        text = (await page.get(f"/group/reset?name=g&topic=t&to={now - 4 * HOUR}")).text
        assert "Read again</dt><dd>2" in text
        assert "horolog groups reset g --topic t --to" in text
        assert f" -b {broker.bootstrap}</code>" in text
        assert 'name="confirm"' not in text
        assert (
            'Skipped, never read</dt><dd class="warn">2'
            in (await page.get(f"/group/reset?name=g&topic=t&to={now}")).text
        )
        assert "Dry run" not in (await page.get("/group/reset?name=g&topic=t")).text
        assert await committed(client) == 2
        for query, status in (("topic=t", 400), ("name=nobody&topic=t", 404), ("name=g&topic=tt", 404)):
            assert (await page.get(f"/group/reset?{query}")).status_code == status
        refused = await page.post(
            "/group/reset",
            data={
                "csrf": page.application.sessions.everybody.csrf,
                "name": "g",
                "topic": "t",
                "confirm": "g",
                "p0": "2:0",
            },
            headers=ORIGIN,
        )
        assert (refused.status_code, "--allow-changes" in refused.text) == (403, True)
        assert await committed(client) == 2


async def test_a_reset_that_is_confirmed_is_done_and_logged(caplog):
    caplog.set_level(logging.INFO, "horolog.console")
    async with shown(allow_changes=True) as (page, client, broker):
        now = await behind(client, broker)
        fields = fields_of((await page.get(f"/group/reset?name=g&topic=t&to={now - 4 * HOUR}")).text)
        assert fields["p0"] == "2:0"
        unsure = await page.post("/group/reset", data={**fields, "confirm": "x"}, headers=ORIGIN)
        assert (unsure.status_code, await committed(client)) == (400, 2)
        assert 'name="confirm" value="x" aria-invalid="true"' in unsure.text
        assert '<p class="wrong" id="confirm-wrong" role="alert">type the name of the group' in unsure.text
        assert fields_of(unsure.text) == fields
        answer = await page.post("/group/reset", data={**fields, "confirm": "g"}, headers=ORIGIN)
        assert (answer.status_code, answer.headers["location"]) == (303, "/group?name=g")
        assert await committed(client) == 0
        assert "reset group 'g'" in caplog.text
        again = await page.post("/group/reset", data={**fields, "confirm": "g"}, headers=ORIGIN)
        assert (again.status_code, "has moved" in again.text) == (409, True)


async def test_a_time_that_cannot_be_read_stays_in_its_field():
    async with shown(allow_changes=True) as (page, client, broker):
        now = await behind(client, broker)
        answer = await page.get("/group/reset?name=g&topic=t&to=soonish")
        assert answer.status_code == 400
        assert 'value="soonish"' in answer.text
        assert '<p class="wrong" id="to-wrong" role="alert">' in answer.text
        assert "Dry run" not in answer.text
        assert str(now) not in (await page.get(f"/group/reset?name=g&topic=t&to={now}")).text.partition("<main")[
            2
        ].replace(f"&#34;target&#34;: {now}", "")


@pytest.mark.parametrize("given", [{"csrf": "wrong"}, {"p0": "x:y"}, {"p0": "1"}, {"p0": None}])
async def test_other_forms_are_refused(given):
    async with shown(allow_changes=True) as (page, client, broker):
        now = await behind(client, broker)
        fields = fields_of((await page.get(f"/group/reset?name=g&topic=t&to={now - 4 * HOUR}")).text)
        data = {key: value for key, value in {**fields, "confirm": "g", **given}.items() if value is not None}
        assert (await page.post("/group/reset", data=data, headers=ORIGIN)).status_code in {400, 403}
        assert await committed(client) == 2


async def test_a_group_with_members_is_left_alone():
    from horolog import Consumer

    async with shown(allow_changes=True) as (page, client, broker):
        now = await behind(client, broker)
        async with Consumer(client, group="g") as consumer:
            await consumer.subscribe(["t"])
            await consumer.poll(5000)
            text = (await page.get(f"/group/reset?name=g&topic=t&to={now}")).text
            assert "it has members" in text
            data = {
                "csrf": page.application.sessions.everybody.csrf,
                "name": "g",
                "topic": "t",
                "confirm": "g",
                "p0": "2:0",
            }
            assert (await page.post("/group/reset", data=data, headers=ORIGIN)).status_code == 409


async def test_a_share_group_is_reset_too():
    async with shown(allow_changes=True) as (page, client, broker), Admin(client) as admin:
        now = await behind(client, broker)
        await admin.alter_share_group_offsets("s", {PLACE: 2})
        assert "Stable" not in (await page.get("/groups")).text
        shown_page = (await page.get(f"/group/reset?name=s&topic=t&to={now - 4 * HOUR}")).text
        assert "Read again</dt><dd>2" in shown_page
        done = await page.post("/group/reset", data={**fields_of(shown_page), "confirm": "s"}, headers=ORIGIN)
        assert done.status_code == 303
        assert (await admin.share_group_offsets("s"))[PLACE].offset == 0
        assert "/group?name=s" in (await page.get("/groups")).text
