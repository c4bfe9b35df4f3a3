"""Records of a topic as they lie in the log, with what became of their transactions."""

import pytest
from confluent_kafka import Producer as Librdkafka

from horolog import Producer
from horolog.broker.on_record.cluster_errors import ClusterError
from horolog.testing import broker_in_thread, horolog_broker
from horolog.testing.reading import state_of, topic_named


async def test_records_of_all_partitions_in_their_order():
    async with horolog_broker() as broker:
        broker.create_topic("t", 2, message_timestamp_type="CreateTime")
        async with Producer(broker.bootstrap) as producer:
            await producer.send(
                "t", b"b", key=b"k", partition=1, timestamp_ms=1_700_000_000_000, headers=[(b"h", None)]
            )
            await producer.send("t", b"a", partition=0)
            await producer.flush()
        first, second = broker.records("t")
        assert (first.value, first.partition) == (b"a", 0)
        assert second[:7] == ("t", 1, 0, 1_700_000_000_000, b"k", b"b", ((b"h", None),))
        assert second.transaction is None
        assert second.producer is not None
        topic = topic_named(broker.broker.cluster, "t")
        before = state_of(topic)
        assert state_of(topic) == before
        with pytest.raises(ClusterError, match="there is no topic u; the topics here are: t"):
            broker.records("u")
        assert broker.topics() == {"t": 2}


def test_transactions_and_what_was_trimmed():
    with broker_in_thread() as broker:
        broker.create_topic("t")
        plain = Librdkafka({"bootstrap.servers": broker.bootstrap})
        plain.produce("t", b"plain")
        plain.flush(10)
        producer = Librdkafka({"bootstrap.servers": broker.bootstrap, "transactional.id": "x"})
        producer.init_transactions(10)
        for value, end in ((b"kept", producer.commit_transaction), (b"lost", producer.abort_transaction)):
            producer.begin_transaction()
            producer.produce("t", value)
            producer.flush(10)
            assert broker.records("t")[-1].transaction == "open"
            end(10)
        found = [(one.value, one.transaction, one.producer is None) for one in broker.records("t")]
        assert found == [(b"plain", None, True), (b"kept", "committed", False), (b"lost", "aborted", False)]
        assert [one.value for one in broker.expect("t", committed=True, count=2)] == [b"plain", b"kept"]
