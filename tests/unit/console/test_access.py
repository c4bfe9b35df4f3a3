"""The page Access lists users, rules and quotas; a list that the broker refuses is one sentence."""

from horolog.client.admin.admin import Admin
from horolog.client.values.errors import error_of
from horolog.console import access
from horolog.console.visits import NO_RULES
from tests.support.change_forms import sent
from tests.support.console_browser import shown


async def test_empty_lists():
    async with shown() as (page, _client, _broker):
        text = (await page.get("/access")).text
        for words in ("No user has a SCRAM password.", NO_RULES, "There are no quotas."):
            assert words in text
        assert "/change/" not in text


async def test_without_an_authorizer_no_rule_can_be_added():
    async with shown(allow_changes=True) as (page, _client, _broker):
        text = (await page.get("/access")).text
        assert "/change/user-put" in text
        assert "/change/acl-add" not in text
        refused = await sent(page, "acl-add", principal="alice", operation="read", resource="topic:t")
        assert (refused.status_code, NO_RULES in refused.text) == (409, True)


async def test_a_refusal_leaves_the_other_lists(monkeypatch):
    async def refused(_self, *_):
        raise error_of(35, "this broker is too old")

    monkeypatch.setattr(Admin, "describe_acls", refused)
    async with shown() as (page, _client, _broker):
        answer = await page.get("/access")
        assert answer.status_code == 200
        assert "The broker does not show this list: this broker is too old (UNSUPPORTED_VERSION)" in answer.text
        assert "There are no rules" not in answer.text
        assert "There are no quotas." in answer.text


async def test_long_lists_are_cut(monkeypatch):
    async def many(_self, *_):
        return {f"user-{number}": {"SCRAM-SHA-256": 4096} for number in range(5)}

    monkeypatch.setattr(Admin, "describe_users", many)
    monkeypatch.setattr(access, "ROWS_AT_MOST", 3)
    async with shown(allow_changes=True) as (page, _client, _broker):
        text = (await page.get("/access")).text
        assert text.count("New password of user-") == 3
        assert "2 more are not shown." in text
