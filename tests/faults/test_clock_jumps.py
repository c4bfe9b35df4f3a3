"""The wall clock of a real broker leaps by hours and years while a group consumes and a producer produces."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from tests.support.broker_process import BrokerProcess
from tests.support.faked_clock import LIBRARY, faked
from tests.support.witness import Witness, create, numbers_in, wait_until

JUMPS = ("+1h", "-3h", "+400d", "-400d", "-20y", "+0")
SESSION_MS = 6000


@pytest.fixture
def offset_file(tmp_path: Path) -> Path:
    if LIBRARY is None:
        pytest.skip("libfaketime is not installed")
    path = tmp_path / "clock"
    path.write_text("+0\n")
    return path


class Member:
    """One consumer of a group, in a thread; how often it was given partitions tells whether its session lasted."""

    def __init__(self, address: str, topic: str) -> None:
        self.seen: list[int] = []
        self.assignments = 0
        self._stopping = threading.Event()
        self._consumer = Consumer(
            {
                "bootstrap.servers": address,
                "group.id": "g",
                "session.timeout.ms": SESSION_MS,
                "heartbeat.interval.ms": 500,
                "auto.offset.reset": "earliest",
                "auto.commit.interval.ms": 500,
                "log_level": 0,
            }
        )
        self._consumer.subscribe([topic], on_assign=lambda *_: self._assigned())
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def _assigned(self) -> None:
        self.assignments += 1

    def _work(self) -> None:
        while not self._stopping.is_set():
            for message in self._consumer.consume(500, 0.2):
                value = message.value()
                if message.error() is None and value is not None:
                    self.seen.append(int(value.rstrip(b".")))

    def close(self) -> None:
        self._stopping.set()
        self._thread.join(20)
        self._consumer.close()


def test_order_sessions_transactions_and_retention_do_not_notice(
    tmp_path: Path, brokers: Callable[..., BrokerProcess], offset_file: Path
) -> None:
    broker = brokers(
        tmp_path / "data",
        faked(offset_file),
        log_retention_check_interval_ms="300",
        log_initial_task_delay_ms="0",
        offsets_retention_check_interval_ms="500",
        log_message_timestamp_before_max_ms=str(2**63 - 1),
    ).start()
    create(broker.address, "t", 1, segment_bytes="60000", retention_ms="86400000")
    witness = Witness(broker.address, "t", acks="all", **{"enable.idempotence": True})
    transactional = Producer(
        {"bootstrap.servers": broker.address, "transactional.id": "x", "transaction.timeout.ms": 60_000, "log_level": 0}
    )
    transactional.init_transactions(20)
    transactional.begin_transaction()
    transactional.produce("other", b"1")
    transactional.flush(10)
    member = Member(broker.address, "t")
    try:
        with witness.producing():
            witness.wait_for(500)
            for jump in JUMPS:
                offset_file.write_text(f"{jump}\n")
                witness.wait_for(100)
                time.sleep(1.2)  # several looks for what has expired
        transactional.commit_transaction(20)
        wait_until(lambda: len(member.seen) >= len(witness.acknowledged), 20, "everything consumed")
    finally:
        member.close()
    assert not witness.errors
    assert member.assignments == 1, "its session lasted through every leap"
    assert member.seen == sorted(witness.acknowledged), "each once, in order"
    records = numbers_in(broker.address, "t")
    witness.check(records, exactly_once=True)
    assert len(records) == len(witness.acknowledged), "nothing has expired"
    assert "jumped ahead" in broker.log()
    assert list(numbers_in(broker.address, "other", isolation="read_committed").values()) == [1]
    assert broker.stop() == 0
    offset_file.write_text("-20y\n")
    broker.start()
    assert numbers_in(broker.address, "t") == records
