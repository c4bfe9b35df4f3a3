"""Users are added, get another password and are removed; the password is in no page, command or line of the log."""

import logging

import pytest

from horolog import Admin
from tests.support.change_forms import confirmed, sent
from tests.support.console_browser import shown

PASSWORD = "correct horse"


async def put(page, plan, password=PASSWORD):
    return await confirmed(page, "user-put", plan, password=password)


async def test_a_user_is_added_and_removed(caplog):
    caplog.set_level(logging.INFO, "horolog.console")
    async with shown(allow_changes=True) as (page, client, _broker):
        admin = Admin(client)
        form = (await page.get("/change/user-put?name=alice")).text
        assert 'type="password"' not in form, "only once the plan is known"
        plan = await sent(page, "user-put", name="alice", mechanism="SCRAM-SHA-256")
        assert "adds a password of user alice for SCRAM-SHA-256" in plan.text
        assert 'type="password" name="password"' in plan.text
        assert (await put(page, plan)).status_code == 303
        assert await admin.describe_users() == {"alice": {"SCRAM-SHA-256": 4096}}
        again = await sent(page, "user-put", name="alice", mechanism="SCRAM-SHA-256")
        assert "changes the password of user alice" in again.text
        assert (await put(page, again, "another")).status_code == 303
        listed = (await page.get("/access")).text
        assert "/change/user-remove?name=alice&amp;mechanism=SCRAM-SHA-256" in listed
        gone = await sent(page, "user-remove", name="alice", mechanism="SCRAM-SHA-256")
        assert (await confirmed(page, "user-remove", gone, "bob")).status_code == 400
        assert (await confirmed(page, "user-remove", gone, "alice")).status_code == 303
        assert await admin.describe_users() == {}
        assert "users add alice --mechanism SCRAM-SHA-256" in caplog.text
        assert PASSWORD not in caplog.text


@pytest.mark.parametrize("password", ["", "x" * 1025])
async def test_a_password_that_cannot_be_is_typed_again(password):
    async with shown(allow_changes=True) as (page, client, _broker):
        plan = await sent(page, "user-put", name="alice")
        answer = await put(page, plan, password)
        assert (answer.status_code, 'id="password-wrong"' in answer.text) == (400, True)
        assert "What this does" in answer.text
        assert not password or password not in answer.text
        assert await Admin(client).describe_users() == {}
        assert (await put(page, answer)).status_code == 303


@pytest.mark.parametrize(
    ("kind", "fields", "status"),
    [
        ("user-put", {"name": ""}, 400),
        ("user-put", {"name": "a", "mechanism": "PLAIN"}, 400),
        ("user-remove", {"name": "a"}, 404),
    ],
)
async def test_what_cannot_be_done(kind, fields, status):
    async with shown(allow_changes=True) as (page, _client, _broker):
        answer = await sent(page, kind, **fields)
        assert (answer.status_code, 'id="plan"' in answer.text) == (status, False)
