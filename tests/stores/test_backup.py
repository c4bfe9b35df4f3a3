"""A broker with a backup is killed under load, and a restore has all that the backup says: by itself, with workers, over S3."""

import itertools
import json
import threading
from contextlib import suppress

import pytest

pytest.importorskip("obstore")
pytest.importorskip("confluent_kafka")

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from horolog.broker.backup.rounds import moments_in
from horolog.stores.opening import open_store
from tests.support import s3_server
from tests.support.broker_process import BrokerProcess
from tests.support.command import run_typed
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(200)]

QUIET = {"log_level": 0}
PARTITIONS = 3
WITHIN_S = 30
GUARDED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


class Load:
    """A thread that produces numbers: for each a transaction with a record in each partition, and the positions of a group behind them."""

    def __init__(self, address):
        self._address = address
        self._is_over = threading.Event()
        self.last = -1
        self._thread = threading.Thread(target=self._run_until_killed, daemon=True)
        self._thread.start()

    def _run_until_killed(self):
        with suppress(KafkaException):
            self._run()

    def _run(self):
        producer = Producer({"bootstrap.servers": self._address, "transactional.id": "load", **QUIET})
        producer.init_transactions(WITHIN_S)
        group = Consumer({"bootstrap.servers": self._address, "group.id": "followers", **QUIET})
        follower = group.consumer_group_metadata()
        for number in itertools.count():
            if self._is_over.is_set():
                return
            producer.begin_transaction()
            for partition in range(PARTITIONS):
                producer.produce("t", b"%d" % number, partition=partition)
            behind = [TopicPartition("t", partition, position_behind(number)) for partition in range(PARTITIONS)]
            producer.send_offsets_to_transaction(behind, follower, WITHIN_S)
            producer.commit_transaction(WITHIN_S)
            self.last = number

    def stop(self):
        self._is_over.set()
        self._thread.join(WITHIN_S)


def position_behind(number):
    """A transaction writes a record and a marker to each partition."""
    return 2 * number + 1


def numbers(address, partition, level="read_committed"):
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "g",
            "isolation.level": level,
            "enable.partition.eof": False,
            **QUIET,
        }
    )
    at = TopicPartition("t", partition, 0)
    end = consumer.get_watermark_offsets(at, timeout=WITHIN_S)[1]
    consumer.assign([at])
    found = []
    while consumer.position([at])[0].offset < end:
        for message in consumer.consume(500, 1.0):
            assert message.error() is None
            found.append(int(message.value()))
    consumer.close()
    return found


def set_access(capsys, address, folder):
    """A user, a rule and a quota."""
    (folder / "password").write_text("secret-of-alice")
    for words in (
        ("users", "add", "alice", "--password-file", folder / "password"),
        ("acls", "add", "alice", "read", "topic:t"),
        ("quotas", "set", "--user", "alice", "producer_byte_rate=10MiB"),
    ):
        done = run_typed(capsys, *words, "-b", address)
        assert done.code == 0, done


def access_of(capsys, address):
    """What the broker knows of users, rules and quotas."""
    listed = [run_typed(capsys, what, "list", "-b", address, "-o", "json") for what in ("users", "acls", "quotas")]
    assert all(one.code == 0 and "alice" in one.out for one in listed), listed
    return [one.out for one in listed]


def killed_under_load(folder, url, endpoint, workers, capsys):
    """A broker that was killed while it was loaded.

    Returns how many numbers were committed at least before the newest moment, and the users, rules and quotas.
    """
    settings = {
        **GUARDED,
        "horolog.backup.store": url,
        "horolog.backup.store.endpoint": endpoint,
        "horolog.backup.ms": "1000",
        "horolog.workers": str(workers),
        "offsets.topic.num.partitions": "2",
        "transaction.state.log.num.partitions": "2",
        "log.segment.bytes": "20000",
    }
    broker = BrokerProcess(folder, settings)
    broker.start()
    try:
        admin = AdminClient({"bootstrap.servers": broker.address, **QUIET})
        for future in admin.create_topics([NewTopic("t", PARTITIONS, config={"retention.ms": "-1"})]).values():
            future.result(WITHIN_S)
        set_access(capsys, broker.address, folder.parent)
        access = access_of(capsys, broker.address)
        load = Load(broker.address)
        store = open_store(url, endpoint)
        wait_until(lambda: load.last > 20, WITHIN_S)
        before = load.last
        began = max((one.number for one in moments_in(store)), default=-1)
        wait_until(lambda: next((one.number for one in moments_in(store)), -1) > began + 1, WITHIN_S)
        consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "readers", **QUIET})
        consumer.commit(offsets=[TopicPartition("t", 0, 7)], asynchronous=False)
        consumer.close()
        committed = next(moments_in(store)).number
        wait_until(lambda: next(moments_in(store)).number > committed + 1, WITHIN_S)
    finally:
        broker.kill()
    load.stop()
    return before, access


def check(folder, url, endpoint, capsys, before, access):
    """Restore the newest moment, open it, and compare. Each transaction is whole, with the positions that it committed, or not there."""
    assert all(one.is_exact for one in moments_in(open_store(url, endpoint)))
    more = ["--endpoint", endpoint] if endpoint else []
    verified = run_typed(capsys, "backup", "verify", url, "--all", *more)
    assert verified.code == 0, verified
    restored = run_typed(capsys, "restore", "--from", url, "--data", folder, "-o", "json", *more)
    assert restored.code == 0, restored
    ends = json.loads(restored.out)["records_end"]
    broker = BrokerProcess(folder, GUARDED | {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "200"})
    broker.start()
    try:
        producer = Producer({"bootstrap.servers": broker.address, "transactional.id": "load", **QUIET})
        producer.init_transactions(WITHIN_S)  # what was open is aborted
        assert access_of(capsys, broker.address) == access
        read = [numbers(broker.address, partition) for partition in range(PARTITIONS)]
        assert all(one[: before + 1] == list(range(before + 1)) for one in read)
        assert all(one == list(range(len(one))) for one in read)
        assert len({len(one) for one in read}) == 1
        follower = Consumer({"bootstrap.servers": broker.address, "group.id": "followers", **QUIET})
        places = [TopicPartition("t", partition) for partition in range(PARTITIONS)]
        behind = [position_behind(one[-1]) for one in read]
        assert [one.offset for one in follower.committed(places, WITHIN_S)] == behind
        follower.close()
        consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "readers", **QUIET})
        assert consumer.committed([TopicPartition("t", 0)], WITHIN_S)[0].offset == 7
        for partition in range(PARTITIONS):
            end = consumer.get_watermark_offsets(TopicPartition("t", partition), timeout=WITHIN_S)[1]
            assert end >= ends[f"t-{partition}"]
        consumer.close()
    finally:
        broker.kill()


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_a_broker_that_is_killed_under_load(tmp_path, capsys, workers):
    url = f"file://{tmp_path}/copy"
    before, access = killed_under_load(tmp_path / "data", url, "", workers, capsys)
    check(tmp_path / "again", url, "", capsys, before, access)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_backup_over_a_real_server(s3_folder, capsys, monkeypatch, workers):
    with s3_server.running(s3_folder) as server:
        server.enter(monkeypatch)
        url, endpoint = server.url("backup"), server.endpoint
        before, access = killed_under_load(s3_folder / "data", url, endpoint, workers, capsys)
        check(s3_folder / "again", url, endpoint, capsys, before, access)
