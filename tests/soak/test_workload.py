"""What the clients of a soak make of errors."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer

from horolog.broker.transactions.marking import Marking
from horolog.testing import broker_in_thread
from tests.soak.workload import GaveUp, Soak, _abort, _persist
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


def test_librdkafka_may_abort_what_was_never_added_when_the_next_coordinator_has_its_id() -> None:
    """As behind a failover or a hand-over: the coordinator before has refused the partition, or has gone with the request."""
    with broker_in_thread() as broker:
        broker.create_topic("t")
        soak = Soak(broker.bootstrap, 1)
        producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "x", "log_level": 0})
        producer.init_transactions(30)
        producer.begin_transaction()
        producer.produce("t", b"1")
        producer.commit_transaction(30)
        with broker.faults.refuse("NOT_COORDINATOR", "add_partitions_to_txn") as refused:
            producer.begin_transaction()
            producer.produce("t", b"2")
            while not refused.hits:
                producer.poll(0.01)
            broker.restart()
        _abort(soak, producer, "x 1")
        producer.begin_transaction()
        producer.produce("t", b"3")
        producer.commit_transaction(30)
        assert [one.value for one in broker.records("t")] == [b"1", b"3"]
    assert soak.history.outcomes["x 1"] == Outcome.ABORTED


@pytest.mark.parametrize(("aborted", "then"), [(1, 1), (1, 2), (3, 1)])
def test_librdkafka_may_give_the_sequences_of_an_aborted_transaction_out_again(aborted: int, then: int) -> None:
    """It does so with batches that were written while it lost the answer, as behind a failover."""
    with broker_in_thread() as broker:
        broker.create_topic("t")
        producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "x", "log_level": 0})
        producer.init_transactions(30)
        producer.begin_transaction()
        with broker.faults.drop("produce", after_work=True, times=1) as lost:
            for _ in range(aborted):
                producer.produce("t", b"aborted")
            while not lost.hits:
                producer.poll(0.01)
        # a batch that it puts back into its queue after it has emptied it goes with the next try
        _persist(lambda: producer.abort_transaction(2))
        producer.begin_transaction()
        offsets: list[int | None] = []
        for _ in range(then):
            producer.produce("t", b"committed", on_delivery=lambda _, message: offsets.append(message.offset()))
        producer.commit_transaction(30)
        assert {one.offset: one.value for one in broker.records("t") if one.value == b"committed"} == dict.fromkeys(
            offsets, b"committed"
        )
        assert len(offsets) == then


def test_librdkafka_may_abort_while_the_transaction_before_has_no_markers_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """As behind a failover: the leader of a partition is away, and the markers are written when it is back."""
    tries, mark = iter(range(3)), Marking.mark

    def mark_later(self: Marking, transaction, partitions, epoch, done) -> None:  # type: ignore[no-untyped-def]
        if next(tries, None) is None:
            mark(self, transaction, partitions, epoch, done)
        else:
            done(frozenset(partitions))

    monkeypatch.setattr(Marking, "mark", mark_later)
    with broker_in_thread() as broker:
        broker.create_topic("t")
        producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "x", "log_level": 0})
        producer.init_transactions(30)
        for ends in (producer.commit_transaction, producer.abort_transaction, producer.commit_transaction):
            producer.begin_transaction()
            producer.produce("t", b"1")
            producer.poll(0.2)
            ends(30)
    assert next(tries, None) is None
