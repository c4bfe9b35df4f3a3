"""After `await clock.advance(...)` everything that was due is done: real clients find it so."""

import confluent_kafka
import pytest
from confluent_kafka import Producer

from horolog.testing import broker_in_thread, horolog_broker
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


async def test_it_waits_for_workers():
    async with horolog_broker() as broker:
        done = []
        broker.broker.workers.submit(lambda: done.append(1))
        await workers_idle(broker.broker)
        assert done == [1]
        broker.broker.upkeep._scrubbing = True
        await settle(broker.broker)
        broker.broker.upkeep._scrubbing = False
