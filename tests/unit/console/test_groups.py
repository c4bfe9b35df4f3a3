"""Groups with their lag in records and seconds, and how it went while somebody looked."""

from horolog import Admin
from horolog.client.moments.lagging import Lag
from horolog.client.values.errors import KafkaError
from horolog.client.values.types import TopicPartition
from horolog.console import groups
from horolog.console.groups import GROUPS_KEPT, Sample, chart_data, samples_of, sums
from horolog.protocol.errors import ErrorCode
from tests.support.console_browser import shown, topic_with

HOUR = 3_600_000
PLACE = TopicPartition("t", 0)


async def test_groups_are_listed_and_filtered():
    async with shown() as (page, client, broker):
        await topic_with(client, "t", [(broker.clock.wall_ms() - HOUR, b"a"), (broker.clock.wall_ms(), b"b")])
        async with Admin(client) as admin:
            for name in ("billing", "<b>odd</b>"):
                await admin.alter_group_offsets(name, {PLACE: 0})
        text = (await page.get("/groups")).text
        assert "/group?name=billing" in text
        assert "1h" in text
        assert "&lt;b&gt;odd" in text
        assert "<b>odd" not in text
        part = (await page.get("/groups?filter=bill*", headers={"hx-request": "true"})).text
        assert "odd" not in part
        assert "<html" not in part
        assert "No group has" in (await page.get("/groups?filter=none")).text


async def test_a_group_and_how_its_lag_went():
    async with shown() as (page, client, broker):
        await topic_with(client, "t", [(broker.clock.wall_ms() - HOUR, b"a"), (broker.clock.wall_ms(), b"b")])
        async with Admin(client) as admin:
            await admin.alter_group_offsets("billing", {PLACE: 0})
        text = (await page.get("/group?name=billing")).text
        assert "data-lag=" in text
        assert "1 sample" in text
        assert "The group has no members now." in text
        await page.get("/group?name=billing", headers={"hx-request": "true"})
        assert (await page.get("/group?name=nobody")).status_code == 404
        assert (await page.get("/group")).status_code == 400


async def test_a_lag_that_cannot_be_asked_for_is_not_known(monkeypatch):
    async with shown() as (page, client, broker):
        await topic_with(client, "t", [(broker.clock.wall_ms(), b"a")])
        async with Admin(client) as admin:
            await admin.alter_group_offsets("billing", {PLACE: 0})

        async def refused(*_):
            raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)

        monkeypatch.setattr(groups, "lag_of", refused)
        assert "not known" in (await page.get("/groups")).text


def lag(records, seconds):
    return Lag("g", PLACE, 0, 9, records, None, seconds, None)


def test_sums_leave_out_what_is_not_known():
    assert sums([lag(5, 1.0), lag(2, 7.5), lag(None, None)]) == (7, 7.5)
    assert sums([]) == sums([lag(None, None)]) == (None, None)


def test_a_partition_without_a_commit_has_no_lag_to_sum():
    waiting = lag(None, None)._replace(committed=None, most_records=9, most_seconds=3600.0)
    assert sums([lag(2, 7.5), waiting]) == (2, 7.5)
    assert waiting.lacks_commit


def test_samples_are_kept_for_the_groups_looked_at_last():
    class Client:
        pass

    client = Client()
    samples_of(client, "first").append(Sample(1, 2, 3.25))
    assert chart_data(samples_of(client, "first")) == {"times": [1], "records": [2], "seconds": [3.2]}
    for number in range(GROUPS_KEPT):
        samples_of(client, str(number))
    assert not samples_of(client, "first")
