"""Access rules are added and removed, in the words of the command line, and each says whom it may lock out."""

import pytest

from horolog import Admin
from horolog.commands.online.access_words import acl_of_words
from horolog.console.acl_changes import words_of
from tests.support.change_forms import confirmed, sent
from tests.support.console_browser import shown
from tests.support.guarded_broker import STANDARD_AUTHORIZER

GUARDED = {"settings": {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:ANONYMOUS"}}
RULE = {"principal": "User:alice", "permission": "allow", "operation": "read", "resource": "topic:orders*", "host": "*"}


def test_words_are_read_back():
    for resource in ("topic:orders*", "topic:*", "group:g", "transactional-id:x", "cluster"):
        for deny in (True, False):
            acl = acl_of_words("User:a", "describe-configs", resource, "10.0.0.1", deny=deny)
            words = words_of(acl)
            deny_again = words.pop("permission") == "deny"
            assert acl_of_words(**words, deny=deny_again) == acl


async def test_a_rule_is_added_and_removed():
    async with shown(allow_changes=True, broker_settings=GUARDED) as (page, client, _broker):
        admin = Admin(client)
        plan = await sent(page, "acl-add", **{**RULE, "principal": "alice", "host": ""})
        assert "it is the first rule about topic:orders*" in plan.text
        assert "acls add User:alice read &#39;topic:orders*&#39; -b" in plan.text
        assert (await confirmed(page, "acl-add", plan)).status_code == 303
        assert [words_of(acl) for acl in await admin.describe_acls()] == [RULE]
        twice = await sent(page, "acl-add", **RULE)
        assert (twice.status_code, "exists already" in twice.text) == (409, True)
        other = await sent(page, "acl-add", **{**RULE, "operation": "write", "host": "10.0.0.1"})
        assert "first rule" not in other.text
        assert "--host 10.0.0.1" in other.text
        denying = await sent(page, "acl-add", **{**RULE, "permission": "deny"})
        assert "it overrides all rules" in denying.text
        assert "--deny" in denying.text
        assert (await confirmed(page, "acl-add", denying)).status_code == 303
        gone = await sent(page, "acl-remove", **RULE)
        assert "only this rule allows are refused" in gone.text
        assert (await confirmed(page, "acl-remove", gone, "alice")).status_code == 400
        assert (await confirmed(page, "acl-remove", gone, "User:alice")).status_code == 303
        assert "may be allowed" in (await sent(page, "acl-remove", **{**RULE, "permission": "deny"})).text
        assert (await sent(page, "acl-remove", **RULE)).status_code == 404


@pytest.mark.parametrize(
    ("changed", "field"),
    [({"principal": ""}, "principal"), ({"operation": "look"}, "operation"), ({"resource": "orders"}, "resource")],
)
async def test_words_that_are_none(changed, field):
    async with shown(allow_changes=True, broker_settings=GUARDED) as (page, _client, _broker):
        answer = await sent(page, "acl-add", **{**RULE, **changed})
        assert (answer.status_code, f'id="{field}-wrong"' in answer.text) == (400, True)
