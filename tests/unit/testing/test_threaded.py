"""A broker in a thread: everything that an embedded one can, called from the test's thread."""

import inspect

import pytest
from confluent_kafka import Consumer, Producer

from horolog.broker.config.setting_types import SettingsError
from horolog.broker.on_record.cluster_errors import ClusterError
from horolog.testing import ExpectationFailed, broker_in_thread
from horolog.testing.embedded import EmbeddedBroker
from horolog.testing.threaded import ThreadedBroker

T0 = 1_700_000_000_000


@pytest.fixture
def broker():
    with broker_in_thread(clock=T0, log_message_timestamp_type="LogAppendTime") as running:
        running.create_topic("t", 2)
        yield running


def produce(broker, *values):
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for value in values:
        producer.produce("t", value, partition=1)
    assert producer.flush(20) == 0


def test_its_clock(broker):
    produce(broker, b"one")
    broker.clock.advance(hours=1)
    produce(broker, b"two")
    assert [one.timestamp_ms for one in broker.records("t")] == [T0, T0 + 3_600_000]
    broker.clock.set("2026-11-17")
    assert broker.clock.wall_ms() == 1_794_873_600_000
    broker.clock.run()
    assert broker.clock.wall_ms() >= 1_794_873_600_000
    assert broker.clock.start_ms == T0
    assert "BrokerClock" in repr(broker.clock)
    assert broker.bootstrap in repr(broker)


def test_its_log(broker, tmp_path):
    produce(broker, b"one", b"two")
    assert broker.topics() == {"t": 2}
    assert (broker.offsets("t"), broker.offsets("t", partition=1)) == ((0, 0), (0, 2))
    assert len(broker.expect("t", count=2, where=lambda record: record.partition == 1)) == 2
    with pytest.raises(ExpectationFailed):
        broker.expect("t", count=3, within=0)
    broker.expect_none("t", value="three")
    text = broker.snapshot("t")
    assert broker.restore(text, "copy") == 2
    broker.expect_snapshot("t", tmp_path / "t", update=True)
    broker.expect_snapshot("t", tmp_path / "t")
    with pytest.raises(ClusterError):
        broker.offsets("t", 2)


def test_its_groups(broker):
    produce(broker, b"one")
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "g",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": 0,
        }
    )
    consumer.subscribe(["t"])
    assert consumer.poll(20).value() == b"one"
    consumer.commit(asynchronous=False)
    broker.expect_committed("g", "t", 1, partition=1)
    consumer.close()


def test_its_faults(broker):
    with broker.faults.refuse("NOT_ENOUGH_REPLICAS", "produce") as fault:
        assert broker.faults.armed == [fault]
        broker.faults.clear()
    assert broker.faults.armed == []
    assert "Faults" in repr(broker.faults)


def test_it_tells_what_went_wrong_at_the_start():
    with pytest.raises(SettingsError), broker_in_thread(num_partitions="none"):
        pass


def test_its_methods_are_those_of_an_embedded_broker():
    for name, method in vars(ThreadedBroker).items():
        if not name.startswith("_"):
            assert inspect.signature(method) == inspect.signature(getattr(EmbeddedBroker, name))
            assert method.__doc__ == getattr(EmbeddedBroker, name).__doc__


def test_an_expectation_may_take_longer_than_a_call(broker, monkeypatch):
    waits = []
    monkeypatch.setattr(ThreadedBroker, "_wait", lambda _, function, longer_s=0: waits.append(longer_s))
    broker.expect("t", within="1m")
    broker.expect("t")
    assert waits == [60, 0]
