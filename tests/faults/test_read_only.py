"""A folder that nobody may write to: an ordinary start names the way out, and `horolog.read.only` serves all that is in it."""

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic

from tests.faults.test_data_folders import PARTITIONS, numbers_of, over, send
from tests.faults.test_injected_errors import ALONE
from tests.faults.test_reads_go_on import a_free_port, commit, committed, consumer_of, offset_at, warnings_of
from tests.support.broker_process import BrokerNotReadyError, BrokerProcess
from tests.support.disks import Disk, run
from tests.support.witness import Witness, create, numbers_in

Brokers = Callable[..., BrokerProcess]


def state_of(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Every file with its size, its time and its content."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(one): (one.stat().st_size, one.stat().st_mtime_ns, one.read_bytes()) for one in files}


@pytest.fixture
def data(tmp_path: Path, request: pytest.FixtureRequest, brokers: Brokers) -> tuple[Path, Witness, int]:
    """What a broker has left: killed in the middle of its work, with records, groups, offsets and producers."""
    broker = brokers(tmp_path / "source" / "data").start()
    create(broker.address, "t", 2, segment_bytes="1000000")
    witness = Witness(
        broker.address, "t", partitions=2, value_bytes=5000, **{**ALONE, "enable.idempotence": True, "retries": 5}
    )
    for _ in range(4):
        witness.send(100)
    time.sleep(0.01)
    middle_ms = time.time_ns() // 1_000_000
    time.sleep(0.01)
    for _ in range(4):
        witness.send(100)
    commit(broker, 7)
    assert len(witness.acknowledged) == 800
    if getattr(request, "param", "kill") == "kill":
        broker.kill()
    else:
        assert broker.stop() == 0
    return broker.data, witness, middle_ms


def check_reads(broker: BrokerProcess, witness: Witness, middle_ms: int) -> None:
    witness.check(numbers_in(broker.address, "t", 2))
    boundary = min(at for number, (partition, at) in witness.acknowledged.items() if partition == 0 and number >= 400)
    assert (offset_at(broker, 0), offset_at(broker, middle_ms)) == (0, boundary)
    assert committed(broker) == 7


@pytest.mark.parametrize("data", ["kill", "stop"], indirect=True)
def test_a_mount_that_is_only_read(
    disk_of: Callable[..., Disk], data: tuple[Path, Witness, int], brokers: Brokers, tmp_path: Path
) -> None:
    folder, witness, middle_ms = data
    disk = disk_of("tmpfs", 64 << 20)
    run("cp", "-a", str(folder), str(disk.root / "data"))
    run("mount", "-o", "remount,ro", str(disk.root))
    before = state_of(disk.root)
    link, port = tmp_path / "link", a_free_port()
    link.symlink_to(disk.root / "data")
    ordinary = brokers(link)
    with pytest.raises(
        BrokerNotReadyError, match=r"Read-only file system; horolog\.read\.only=true serves its partitions"
    ):
        ordinary.start()
    broker = brokers(link, horolog_read_only="true", horolog_http_listen=f"127.0.0.1:{port}").start()
    check_reads(broker, witness, middle_ms)
    every_write_is_refused(broker)
    assert "the broker is read-only (horolog.read.only)" in warnings_of(port)
    second = brokers(link, horolog_read_only="true").start()
    check_reads(second, witness, middle_ms)
    assert broker.stop() == 0
    assert second.stop() == 0
    assert state_of(disk.root) == before


def every_write_is_refused(broker: BrokerProcess) -> None:
    """At once, by an error that clients do not try again."""
    began = time.monotonic()
    admin = AdminClient({"bootstrap.servers": broker.address, "log_level": 0})
    entry = ConfigEntry("retention.ms", "1", incremental_operation=AlterConfigOpType.SET)
    changed = ConfigResource(ConfigResource.Type.TOPIC, "t", incremental_configs=[entry])
    refused = [
        *admin.create_topics([NewTopic("new", 1)]).values(),
        *admin.delete_topics(["t"]).values(),
        *admin.incremental_alter_configs([changed]).values(),
        *admin.delete_records([TopicPartition("t", 0, 3)]).values(),
        *admin.delete_consumer_groups(["readers"]).values(),
    ]
    for future in refused:
        with pytest.raises(KafkaException) as refusal:
            future.result(60)
        assert refusal.value.args[0].code() == KafkaError.POLICY_VIOLATION
    with pytest.raises(KafkaException) as refusal:
        commit(broker, 8)
    assert refusal.value.args[0].code() == KafkaError.POLICY_VIOLATION
    assert error_of(broker, {"enable.idempotence": False}) == KafkaError.POLICY_VIOLATION
    assert error_of(broker, {"enable.idempotence": True}) in {
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError._PURGE_QUEUE,
    }
    transactional = Producer({"bootstrap.servers": broker.address, "transactional.id": "x", "log_level": 0})
    with pytest.raises(KafkaException) as refusal:
        transactional.init_transactions(60)
    assert refusal.value.args[0].code() == KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert "new" not in admin.list_topics(timeout=60).topics
    assert time.monotonic() - began < 45, "nobody is left to try again"


def error_of(broker: BrokerProcess, config: dict[str, object]) -> int:
    told: list[KafkaError] = []
    producer = Producer({"bootstrap.servers": broker.address, "message.timeout.ms": 60_000, "log_level": 0, **config})
    producer.produce("t", b"x", on_delivery=lambda error, _: told.extend([error] if error else []))
    with suppress(SystemError, KafkaException):  # the library raises a fatal error in whatever is called next
        producer.flush(65)
    (error,) = told
    return error.code()


def test_groups_share_partitions_and_only_their_commits_fail(data: tuple[Path, Witness, int], brokers: Brokers) -> None:
    folder, witness, _ = data
    broker = brokers(folder, horolog_read_only="true").start()
    seen: set[bytes] = set()
    consumers = [
        Consumer(
            {
                "bootstrap.servers": broker.address,
                "group.id": "new",
                "auto.offset.reset": "earliest",
                "auto.commit.interval.ms": 200,
                "session.timeout.ms": 6000,
                "log_level": 0,
            }
        )
        for _ in range(2)
    ]
    for consumer in consumers:
        consumer.subscribe(["t"])
    deadline = time.monotonic() + 100
    assigned: list[int] = []
    while time.monotonic() < deadline and (len(seen) < len(witness.acknowledged) or assigned != [1, 1]):
        for consumer in consumers:
            message = consumer.poll(0.01)
            if message is not None and message.error() is None:
                seen.add(bytes(message.value() or b""))
        assigned = [len(consumer.assignment()) for consumer in consumers]
    assert assigned == [1, 1], "each has a partition"
    assert len(seen) == len(witness.acknowledged)
    for consumer in consumers:
        consumer.close()


def test_a_writer_and_readers_keep_out_of_each_other(data: tuple[Path, Witness, int], brokers: Brokers) -> None:
    folder, witness, middle_ms = data
    reader = brokers(folder, horolog_read_only="true").start()
    writer = brokers(folder)
    with pytest.raises(BrokerNotReadyError, match="in use by another broker"):
        writer.start()
    assert reader.stop() == 0
    writer.start()
    with pytest.raises(BrokerNotReadyError, match="in use by another broker"):
        brokers(folder, horolog_read_only="true").start()
    check_reads(writer, witness, middle_ms)


def test_a_folder_that_is_not_there_is_not_made(tmp_path: Path, brokers: Brokers) -> None:
    with pytest.raises(
        BrokerNotReadyError, match=r"does not exist, and with horolog\.read\.only the broker creates no folder"
    ):
        brokers(tmp_path / "missing", horolog_read_only="true").start()
    assert not (tmp_path / "missing").exists()


@pytest.fixture
def two(tmp_path: Path, brokers: Brokers) -> tuple[BrokerProcess, Path, Path]:
    """A broker, stopped, over two folders of which the second has the newer `horolog-cluster`: what was made last is in that one alone."""
    a, b = tmp_path / "a", tmp_path / "b"
    broker = over(brokers, a, b).start()
    create(broker.address, "t", PARTITIONS)
    old = (a / "horolog-cluster").read_bytes()
    create(broker.address, "new", 2, retention_ms="-1")
    assert [send(broker, index) for index in range(PARTITIONS)] == [None] * PARTITIONS
    broker.kill()
    (a / "horolog-cluster").write_bytes(old)
    broker.settings["horolog.read.only"] = "true"
    return broker, a, b


@pytest.mark.parametrize("order", [1, -1])
def test_two_folders_are_read_together_and_the_newer_record_counts(
    two: tuple[BrokerProcess, Path, Path], order: int
) -> None:
    broker, a, b = two
    broker.settings["log.dirs"] = ",".join(map(str, (a, b)[::order]))
    before = state_of(a) | state_of(b)
    broker.start()
    assert numbers_of(broker) == dict.fromkeys(range(PARTITIONS), 1)
    resource = ConfigResource(ConfigResource.Type.TOPIC, "new")
    admin = AdminClient({"bootstrap.servers": broker.address, "log_level": 0})
    assert len(admin.list_topics("new", timeout=60).topics["new"].partitions) == 2
    assert admin.describe_configs([resource])[resource].result(60)["retention.ms"].value == "-1"
    assert send(broker, 0, seconds=2.0) is not None
    assert broker.stop() == 0
    assert state_of(a) | state_of(b) == before


def served(broker: BrokerProcess) -> list[int]:
    """The partitions that are not offline."""
    admin = AdminClient({"bootstrap.servers": broker.address, "log_level": 0})
    found = admin.list_topics("t", timeout=60).topics["t"].partitions
    return sorted(index for index, one in found.items() if one.leader >= 0)


def test_of_two_folders_one_that_is_missing_is_not_made_and_the_other_is_read(
    two: tuple[BrokerProcess, Path, Path],
) -> None:
    broker, a, b = two
    lost = b.rename(b.with_name("elsewhere"))
    before = state_of(a)
    broker.start()
    mine = sorted(int(one.name.removeprefix("t-")) for one in a.glob("t-*"))
    assert served(broker) == mine
    assert "does not exist, and with horolog.read.only the broker creates no folder" in broker.log()
    assert broker.stop() == 0
    lost.rename(b)
    broker.start()
    assert numbers_of(broker) == dict.fromkeys(range(PARTITIONS), 1)
    assert broker.stop() == 0
    assert state_of(a) == before


def test_a_consumer_without_a_group_needs_nothing_else(data: tuple[Path, Witness, int], brokers: Brokers) -> None:
    folder, _, _ = data
    broker = brokers(folder, horolog_read_only="true").start()
    consumer = consumer_of(broker, "never joined")
    consumer.assign([TopicPartition("t", 1, 5)])
    found = consumer.consume(10, 20)
    assert [message.offset() for message in found] == list(range(5, 15))
    consumer.close()
