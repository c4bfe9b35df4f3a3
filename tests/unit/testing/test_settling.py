"""After `await clock.advance(...)` everything that was due is done: real clients find it so."""

import asyncio

import confluent_kafka
import pytest
from confluent_kafka import Consumer, Producer

from horolog import Producer as OurProducer
from horolog.testing import ExpectationFailed, broker_in_thread, horolog_broker
from horolog.testing.settling import settle, workers_idle

HOUR_MS = 3_600_000


def produce(broker, topic, *values, **settings):
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 0, **settings})
    for value in values:
        producer.produce(topic, value, key=b"k")
    assert producer.flush(10) == 0


def test_a_log_with_producers_expires_at_once():
    """Its producers have to be known from a snapshot first, which takes more than one round."""
    with broker_in_thread(log_message_timestamp_type="LogAppendTime") as broker:
        broker.create_topic("t", retention_ms=HOUR_MS)
        produce(broker, "t", b"a", b"b", **{"enable.idempotence": True})
        broker.clock.advance("59m")
        assert broker.offsets("t") == (0, 2)
        broker.clock.advance("3 days")
        assert broker.offsets("t") == (2, 2)


def test_a_transaction_that_takes_too_long_is_aborted():
    with broker_in_thread() as broker:
        broker.create_topic("t")
        producer = Producer(
            {"bootstrap.servers": broker.bootstrap, "transactional.id": "x", "transaction.timeout.ms": 60_000}
        )
        producer.init_transactions(10)
        producer.begin_transaction()
        producer.produce("t", b"never")
        producer.flush(10)
        broker.clock.advance("59s")
        assert [one.transaction for one in broker.records("t")] == ["open"]
        broker.clock.advance("2s")
        assert [one.transaction for one in broker.records("t")] == ["aborted"]
        with pytest.raises(confluent_kafka.KafkaException) as refused:
            producer.commit_transaction(10)
        assert refused.value.args[0].fatal() or refused.value.args[0].txn_requires_abort()


def test_a_topic_is_compacted_and_tombstones_go_with_time():
    with broker_in_thread(log_message_timestamp_type="LogAppendTime") as broker:
        hourly = {"segment_ms": HOUR_MS, "delete_retention_ms": HOUR_MS, "min_cleanable_dirty_ratio": 0.01}
        broker.create_topic("t", cleanup_policy="compact", **hourly)
        left = []
        for value in (b"old", b"new", None, b"last", b"behind it"):
            produce(broker, "t", value)
            broker.clock.advance("2h")
            left.append([one.value for one in broker.records("t")])
        assert left[2] == [b"new", None], "the active segment is not compacted"
        assert left[4] == [b"last", b"behind it"]


def joined(broker, **settings):
    """A member of a group that has its partition."""
    given = {"bootstrap.servers": broker.bootstrap, "group.id": "g", "auto.offset.reset": "earliest"}
    consumer = Consumer(given | {"enable.auto.commit": False} | settings)
    consumer.subscribe(["t"])
    assert consumer.poll(20).value() == b"a"
    return consumer


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_the_session_of_a_member_ends_and_it_joins_again(protocol):
    async with horolog_broker() as broker:
        broker.create_topic("t")
        await asyncio.to_thread(produce, broker, "t", b"a")
        consumer = await asyncio.to_thread(joined, broker, **{"group.protocol": protocol})
        group = broker.broker.groups.find("g")
        assert len(group.members) == 1
        await broker.clock.advance("30s")
        assert len(group.members) == 1
        broker.clock.advance("1h")
        assert len(group.members) == 0, "before the loop has another turn"
        await asyncio.to_thread(produce, broker, "t", b"b")
        assert (await asyncio.to_thread(consumer.poll, 20)).value() in {b"a", b"b"}
        await asyncio.to_thread(consumer.close)


def test_committed_offsets_expire_after_their_group():
    with broker_in_thread(log_message_timestamp_type="LogAppendTime") as broker:
        broker.create_topic("t")
        produce(broker, "t", b"a")
        consumer = joined(broker)
        consumer.commit(asynchronous=False)
        consumer.close()
        broker.expect_committed("g", "t", 1)
        broker.clock.advance("6 days")
        broker.expect_committed("g", "t", 1, within=0)
        broker.clock.advance("2 days")
        with pytest.raises(ExpectationFailed, match=r"there is no group g|nothing"):
            broker.expect_committed("g", "t", 1, within=0)


async def test_producers_are_forgotten():
    async with horolog_broker(log_retention_ms=-1) as broker:
        broker.create_topic("t")
        partition = broker.broker.cluster.topics["t"].find(0)
        async with OurProducer(broker.bootstrap) as producer:
            await producer.send_and_wait("t", b"x")
        assert len(dict(partition.producers.last_records())) == 1
        await broker.clock.advance("2 days")
        assert dict(partition.producers.last_records()) == {}


def test_whoever_is_over_a_quota_waits_until_the_clock_moves():
    with broker_in_thread(settings={"quota.producer.default": 1000}) as broker:
        broker.create_topic("t")
        producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 0})
        producer.produce("t", bytes(50_000))
        assert producer.flush(10) == 0
        producer.produce("t", b"late")
        assert producer.flush(0.5) == 1
        broker.clock.advance("2m")
        assert producer.flush(5) == 0
        broker.expect("t", count=1, value="late")


async def test_it_waits_for_workers():
    async with horolog_broker() as broker:
        done = []
        broker.broker.workers.submit(lambda: done.append(1))
        await workers_idle(broker.broker)
        assert done == [1]
        broker.broker.upkeep._scrubbing = True
        await settle(broker.broker)
        broker.broker.upkeep._scrubbing = False
