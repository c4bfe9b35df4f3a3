"""Expectations wait for what comes, fail with the records that there are, and look at the log only where it has changed."""

import asyncio
import time

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from horolog.testing import ExpectationFailed, horolog_broker


@pytest.fixture
async def broker():
    async with horolog_broker() as running:
        running.create_topic("orders")
        yield running


async def send(broker, *values):
    async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
        for value in values:
            await producer.send_and_wait("orders", value, key=b"alice")


async def test_it_waits_for_records_that_come(broker):
    sending = asyncio.ensure_future(send(broker, b"one", b"two", b"three"))
    found = await broker.expect("orders", count=3, within="60s")
    await sending
    assert [one.value for one in found] == [b"one", b"two", b"three"]
    assert len(await broker.expect("orders")) == 3
    assert len(await broker.expect("orders", key="alice", value="two")) == 1
    assert await broker.expect("orders", count=0, key="bob") == []


async def test_too_few_fail_after_the_time_and_too_many_at_once(broker):
    await send(broker, b'{"id": 1}', b'{"id": 2}')
    began = time.monotonic()
    with pytest.raises(ExpectationFailed) as few:
        await broker.expect("orders", count=1, value={"id": 3}, within="200ms")
    assert time.monotonic() - began >= 0.2
    said = str(few.value).splitlines()
    assert said[0] == 'orders: expected 1 record with value {"id": 3} within 200ms, found none'
    assert said[-1] == "nearest: orders-0 at offset 0: the value's id is 1, not 3"
    with pytest.raises(ExpectationFailed, match="expected 1 record within 1h, found 2") as many:
        async with asyncio.timeout(60):
            await broker.expect("orders", count=1, within="1h")
    assert len(many.value.records) == 2
    with pytest.raises(ExpectationFailed, match="expected records with key bob"):
        await broker.expect("orders", key="bob", within=0)
    with pytest.raises(ValueError, match="a number of records"):
        await broker.expect("orders", count=-1)


async def test_a_topic_that_is_not_there(broker):
    with pytest.raises(ExpectationFailed, match="there is no topic order; the topics here are: orders"):
        await broker.expect("order", count=1, within="50ms")
    await broker.expect_none("order")


async def test_none_is_expected_for_some_time(broker):
    await broker.expect_none("orders", within="50ms")
    sending = asyncio.ensure_future(send(broker, b"late"))
    with pytest.raises(ExpectationFailed, match="expected no records with value late for 1m, found 1"):
        await broker.expect_none("orders", value="late", within="60s")
    await sending


async def test_commits_of_a_group(broker):
    await send(broker, b"one", b"two")
    with pytest.raises(ExpectationFailed, match="found none\nthere is no group g; the groups here are: none"):
        await broker.expect_committed("g", "orders", 2, within="50ms")
    consumer = AIOKafkaConsumer(
        "orders", bootstrap_servers=broker.bootstrap, group_id="g", auto_offset_reset="earliest"
    )
    await consumer.start()
    await consumer.getone()
    await consumer.getone()
    await consumer.commit()
    await broker.expect_committed("g", "orders", 2)
    with pytest.raises(ExpectationFailed, match="found 2\nthe group has committed: orders-0: 2"):
        await broker.expect_committed("g", "orders", 1, within="50ms")
    await consumer.stop()
