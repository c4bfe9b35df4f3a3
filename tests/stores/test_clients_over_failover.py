"""A broker of three dies under a program that copies a topic in transactions: each record is copied once, and times are found as before."""

import threading
import time
from contextlib import ExitStack

import pytest

pytest.importorskip("obstore")
pytest.importorskip("confluent_kafka")

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from tests.stores.test_three_brokers import QUIET, WITHIN_S, three_brokers
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

GIVES_UP_S = 10.0
"""librdkafka sometimes waits to its limit after the answer to AddOffsetsToTxn: the transaction is aborted and made again."""
PARTITIONS = 3
RECORDS = 600
START_MS = 1_700_000_000_000
STEP_MS = 1_000
GROUPS = {
    "classic": {"group.protocol": "classic", "session.timeout.ms": 10_000, "group.instance.id": "copier"},
    "consumer": {"group.protocol": "consumer"},
}


class Copier:
    """Reads `in` as a member of a group, and writes `out` with the positions in one transaction, twenty records each."""

    def __init__(self, servers, protocol):
        self.settings = {"bootstrap.servers": servers, **QUIET}
        self.group = {
            **self.settings,
            **GROUPS[protocol],
            "group.id": "copy",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
        self.copied, self.faults, self.is_over = 0, [], threading.Event()

    def run(self):
        consumer = Consumer(self.group)
        producer = Producer({**self.settings, "transactional.id": "copier", "transaction.timeout.ms": 30_000})
        try:
            producer.init_transactions(WITHIN_S)
            consumer.subscribe(["in"])
            while not self.is_over.is_set():
                found = [one for one in consumer.consume(20, 0.2) if one.error() is None]
                if found and not self._copy(consumer, producer, found):
                    self._go_back(consumer, found)
        except KafkaException as error:
            self.faults.append(str(error))
        finally:
            consumer.close()

    def _copy(self, consumer, producer, found):
        """Whether the transaction is committed; else it is aborted."""
        producer.begin_transaction()
        try:
            for one in found:
                producer.produce("out", one.value(), partition=one.partition())
            ends = {one.partition(): one.offset() + 1 for one in found}
            positions = [TopicPartition("in", *each) for each in ends.items()]
            producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), GIVES_UP_S)
            producer.commit_transaction(WITHIN_S)
        except KafkaException as error:
            if error.args[0].fatal():
                raise
            producer.abort_transaction(WITHIN_S)
            return False
        self.copied += len(found)
        return True

    def _go_back(self, consumer, found):
        """Read again what was aborted."""
        first = {}
        for one in found:
            first.setdefault(one.partition(), one.offset())
        mine = {one.partition for one in consumer.assignment()}
        for partition, offset in first.items():
            if partition in mine:
                consumer.seek(TopicPartition("in", partition, offset))


def fill(servers):
    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True, **QUIET})
    for number in range(RECORDS):
        producer.produce("in", b"%d" % number, partition=number % PARTITIONS, timestamp=START_MS + number * STEP_MS)
    assert producer.flush(WITHIN_S) == 0


def look_up(settings):
    """The first offsets from the middle of all times on, as soon as every leader answers.

    Each attempt has a consumer of its own: one that has asked a broker before goes on asking it.
    """
    asked = [TopicPartition("in", index, START_MS + RECORDS // 2 * STEP_MS) for index in range(PARTITIONS)]
    latest = time.monotonic() + WITHIN_S
    while True:
        consumer = Consumer({**settings, "group.id": "looking"})
        try:
            found = consumer.offsets_for_times(asked, 5)
        except KafkaException:
            found = []
        finally:
            consumer.close()
        if found and all(one.error is None for one in found):
            return {one.partition: one.offset for one in found}
        assert time.monotonic() < latest, found
        time.sleep(0.05)


def read_committed(settings):
    consumer = Consumer({**settings, "group.id": "check", "isolation.level": "read_committed"})
    places = [TopicPartition("out", index, 0) for index in range(PARTITIONS)]
    ends = {one.partition: consumer.get_watermark_offsets(one, WITHIN_S)[1] for one in places}
    consumer.assign(places)
    values, latest = [], time.monotonic() + WITHIN_S
    while any(one.offset < ends[one.partition] for one in consumer.position(places)):
        assert time.monotonic() < latest
        message = consumer.poll(0.5)
        if message is not None and message.error() is None:
            values.append(int(message.value()))
    consumer.close()
    return values


def leader_beside_coordinator(admin):
    """A leader of partitions that does not coordinate the group.

    If the group's coordinator dies with a TxnOffsetCommit under way, send_offsets_to_transaction of librdkafka 2.16.0 does not return.
    """
    leaders = {one.leader for one in admin.list_topics("in", timeout=WITHIN_S).topics["in"].partitions.values()}
    coordinator = admin.describe_consumer_groups(["copy"])["copy"].result(WITHIN_S).coordinator.id
    return min(leaders - {coordinator})


@pytest.mark.parametrize("protocol", sorted(GROUPS))
def test_each_record_is_copied_once_and_found_by_time_when_a_broker_dies(tmp_path, protocol):
    topics = dict.fromkeys(("in", "out"), PARTITIONS)
    with three_brokers(tmp_path, topics) as (cluster, admin), ExitStack() as stack:
        fill(cluster.servers)
        copier = Copier(cluster.servers, protocol)
        before = look_up(copier.settings)
        assert before == dict.fromkeys(range(PARTITIONS), RECORDS // 2 // PARTITIONS)
        copying = threading.Thread(target=copier.run)
        copying.start()
        stack.callback(copying.join)
        stack.callback(copier.is_over.set)
        wait_until(lambda: copier.copied >= RECORDS // 6 or copier.faults)
        cluster.kill(leader_beside_coordinator(admin))
        assert look_up(copier.settings) == before
        wait_until(lambda: copier.copied >= RECORDS or copier.faults)
        copier.is_over.set()
        copying.join(WITHIN_S)
        assert copier.faults == []
        values = read_committed(copier.settings)
        assert sorted(values) == list(range(RECORDS))
