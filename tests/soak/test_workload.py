"""What the clients of a soak make of errors."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer

from horolog.testing import broker_in_thread
from tests.soak.workload import GaveUp, Soak, _abort
from tests.support.history import Outcome


@pytest.mark.parametrize("is_added", [True, False])
def test_librdkafka_gives_up_when_it_aborts_a_transaction_without_partitions(is_added: bool) -> None:
    with broker_in_thread() as broker:
        broker.create_topic("t")
        soak = Soak(broker.bootstrap, 1)
        producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "x", "log_level": 0})
        producer.init_transactions(30)
        producer.begin_transaction()
        producer.produce("t", b"1")
        producer.commit_transaction(30)
        with broker.faults.refuse("CONCURRENT_TRANSACTIONS", "add_partitions_to_txn") as refused:
            producer.begin_transaction()
            producer.produce("t", b"2")
            while not refused.hits:
                producer.poll(0.01)
            if is_added:
                refused.end()
                producer.flush(30)
                _abort(soak, producer, "x 1")
            else:
                with pytest.raises(GaveUp):
                    _abort(soak, producer, "x 1")
    assert soak.history.outcomes.get("x 1") == (Outcome.ABORTED if is_added else None)
