"""Open transactions come first; one that hangs is aborted once its topic's name is typed."""

from contextlib import asynccontextmanager, suppress

import pytest

from horolog import Admin, Producer
from horolog.client.values.errors import KafkaError, error_of
from horolog.client.values.types import TopicPartition
from tests.support.change_forms import confirmed, sent
from tests.support.console_browser import shown, topic_with

PLACE = TopicPartition("t", 0)


@asynccontextmanager
async def open_transaction(client, broker):
    await topic_with(client, "t", [(broker.clock.wall_ms(), b"x")])
    async with Producer(client, transactional_id="hanging") as producer:
        with suppress(KafkaError):  # it is aborted meanwhile
            async with producer.transaction():
                await producer.send_and_wait("t", b"open", partition=0)
                yield


async def test_an_open_transaction_is_aborted():
    async with shown(allow_changes=True) as (page, client, broker), open_transaction(client, broker):
        admin = Admin(client)
        listed = (await page.get("/transactions?topic=t")).text
        assert '<span class="tag warn">Ongoing</span>' in listed
        assert 'href="/transactions?topic=t&amp;partition=0"' in listed
        (open_one,) = [one for one in await admin.describe_producers(PLACE) if one.transaction_start_offset >= 0]
        start = str(open_one.transaction_start_offset)
        assert f"/change/transaction-abort?topic=t&amp;partition=0&amp;start={start}" in listed
        plan = await sent(page, "transaction-abort", topic="t", partition="0", start=start)
        assert f"transactions abort t 0 --start-offset {start} --yes" in plan.text
        assert (await confirmed(page, "transaction-abort", plan, "x")).status_code == 400
        assert (await confirmed(page, "transaction-abort", plan, "t")).status_code == 303
        assert all(one.transaction_start_offset < 0 for one in await admin.describe_producers(PLACE))
        assert (await sent(page, "transaction-abort", topic="t", partition="0", start=start)).status_code == 404


async def test_nothing_is_there():
    async with shown() as (page, client, broker):
        await topic_with(client, "t", [(broker.clock.wall_ms(), b"x")])
        text = (await page.get("/transactions")).text
        assert "There are no transactional ids." in text
        assert "Consumers with read_committed wait" in text
        wrong = await page.get("/transactions?topic=tt")
        assert (wrong.status_code, 'id="topic-wrong"' in wrong.text) == (404, True)


@pytest.mark.parametrize(("partition", "start"), [("7", "0"), ("0", "99")])
async def test_what_cannot_be_aborted(partition, start):
    async with shown(allow_changes=True) as (page, client, broker):
        await topic_with(client, "t", [(broker.clock.wall_ms(), b"x")])
        answer = await sent(page, "transaction-abort", topic="t", partition=partition, start=start)
        assert answer.status_code == 404


async def test_a_refusal_is_a_sentence(monkeypatch):
    async def refused(_self):
        raise error_of(35, "this broker is too old")

    monkeypatch.setattr("horolog.client.admin.admin.Admin.list_transactions", refused)
    async with shown() as (page, _client, _broker):
        assert "this broker is too old" in (await page.get("/transactions")).text
