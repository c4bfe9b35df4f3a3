"""Quotas are set and removed, with the values before, and for all that have none of their own."""

import pytest

from horolog import Admin
from tests.support.change_forms import confirmed, sent
from tests.support.console_browser import shown


async def test_a_quota_is_set_changed_and_removed():
    async with shown(allow_changes=True) as (page, client, _broker):
        admin = Admin(client)
        plan = await sent(page, "quota-set", user="alice", values="producer_byte_rate=10MiB\n")
        assert "sets producer_byte_rate of user alice to 10485760, from none" in plan.text
        assert "quotas set producer_byte_rate=10485760 --user alice -b" in plan.text
        assert (await confirmed(page, "quota-set", plan)).status_code == 303
        again = await sent(page, "quota-set", user="alice", values="producer_byte_rate=5\nrequest_percentage=12.5")
        assert "from 10485760" in again.text
        assert (await confirmed(page, "quota-set", again)).status_code == 303
        (quota,) = await admin.describe_quotas({})
        assert dict(quota.values) == {"producer_byte_rate": 5.0, "request_percentage": 12.5}
        assert "producer_byte_rate <b>5 B/s</b>" in (await page.get("/access")).text
        gone = await sent(page, "quota-remove", user="alice")
        assert "removes request_percentage of user alice: 12.5" in gone.text
        assert (await confirmed(page, "quota-remove", gone)).status_code == 303
        assert await admin.describe_quotas({}) == []
        assert (await sent(page, "quota-remove", user="alice")).status_code == 404


async def test_a_quota_of_all_others():
    async with shown(allow_changes=True) as (page, client, _broker):
        fields = {"user": "(default)", "client-id": "reports"}
        plan = await sent(page, "quota-set", **fields, values="consumer_byte_rate=7")
        assert "--default user --client-id reports" in plan.text
        assert (await confirmed(page, "quota-set", plan)).status_code == 303
        (quota,) = await Admin(client).describe_quotas({})
        assert dict(quota.entity) == {"user": None, "client-id": "reports"}
        assert "user (default), client-id reports" in (await page.get("/access")).text
        assert "--default user --client-id reports" in (await sent(page, "quota-remove", **fields)).text


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({}, "user"),
        ({"user": "a", "ip": "10.0.0.1"}, "ip"),
        ({"user": "a"}, "values"),
        ({"user": "a", "values": "speed=1"}, "values"),
        ({"user": "a", "values": "producer_byte_rate=quick"}, "values"),
    ],
)
async def test_what_is_no_quota(fields, field):
    async with shown(allow_changes=True) as (page, _client, _broker):
        answer = await sent(page, "quota-set", **fields)
        assert (answer.status_code, f'id="{field}-wrong"' in answer.text) == (400, True)
