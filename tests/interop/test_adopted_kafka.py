"""Folders that real brokers have just written are taken over a month later: nothing goes that its owner has not let go, and back again."""

import json
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from benchmarks import kafka, process
from tests.support.broker_process import BrokerProcess
from tests.support.command import run_typed
from tests.support.faked_clock import LIBRARY, faked

pytestmark = [pytest.mark.kafka_jars, pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(400)]

OLD, KRAFT = "0.10.2.2", ("3.9.2", "4.3.1")
COUNT = 60
TOPICS = {
    "forever": {"retention.ms": "-1"},
    "year": {"retention.ms": "31536000000"},
    "table": {"cleanup.policy": "compact"},
    "plain": {},
    "gone": {},
}
QUICK = {
    "log.initial.task.delay.ms": "100",
    "log.retention.check.interval.ms": "200",
    "log.cleaner.backoff.ms": "100",
    "log.cleaner.min.cleanable.ratio": "0.01",
    "horolog.clock.jump.wait.ms": "0",
    "offsets.retention.minutes": "1000000",
}
WAIT_SECONDS = 60


def release_or_skip(release: str) -> str:
    try:
        kafka.libs(release)
    except kafka.MissingJarsError as error:
        pytest.skip(f"no jars of Kafka {release}: {error}")
    return release


@pytest.fixture(params=KRAFT)
def release(request: pytest.FixtureRequest) -> str:
    return release_or_skip(request.param)


@pytest.fixture
def month_later(tmp_path: Path) -> Iterator[Callable[..., BrokerProcess]]:
    """Starts brokers whose clock is a month ahead."""
    if LIBRARY is None:
        pytest.skip("libfaketime is not installed")
    clock = tmp_path / "clock"
    clock.write_text("+30d\n")
    started: list[BrokerProcess] = []

    def start(data: Path, **settings: str) -> BrokerProcess:
        chosen = QUICK | {key.replace("__", "."): value for key, value in settings.items()}
        broker = faked(clock)(data, chosen)
        started.append(broker)
        return broker.start()

    yield start
    for broker in started:
        broker.kill()


@cache
def admin(address: str) -> AdminClient:
    """Kept, because what it was asked for ends with it."""
    return AdminClient({"bootstrap.servers": address, "log_level": 0})


def done(futures: dict[Any, Any]) -> None:
    for future in futures.values():
        future.result(30)


def create(address: str, topics: dict[str, dict[str, str]]) -> None:
    done(admin(address).create_topics([NewTopic(name, 1, 1, config=dict(own)) for name, own in topics.items()]))


def set_config(address: str, kind: ResourceType, name: str, key: str, value: str | None) -> None:
    operation = AlterConfigOpType.SET if value is not None else AlterConfigOpType.DELETE
    entry = ConfigEntry(key, value, incremental_operation=operation)
    done(admin(address).incremental_alter_configs([ConfigResource(kind, name, incremental_configs=[entry])]))


def own_configs(address: str, topic: str) -> dict[str, str]:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    found = admin(address).describe_configs([resource])[resource].result(30)
    return {key: entry.value for key, entry in found.items() if entry.source == 1}


def produce(address: str, topic: str, values: range, **settings: object) -> None:
    producer = Producer({"bootstrap.servers": address, "log_level": 0, "acks": "all", **settings})
    for number in values:
        producer.produce(topic, b"%d" % number, b"key %d" % (number % 10), partition=0)
    assert producer.flush(30) == 0


def consume(address: str, topic: str, group: str | None = None) -> list[int]:
    """All values of the topic, in order; with a group its position is kept."""
    settings = {"bootstrap.servers": address, "log_level": 0, "group.id": group or "none", "enable.auto.commit": False}
    consumer = Consumer(settings)
    try:
        place = TopicPartition(topic, 0)
        first, end = within(lambda: consumer.get_watermark_offsets(place, timeout=30))
        consumer.assign([TopicPartition(topic, 0, first)])
        found: list[int] = []
        deadline = time.monotonic() + WAIT_SECONDS
        while consumer.position([place])[0].offset < end and time.monotonic() < deadline and first < end:
            for message in consumer.consume(100, 0.5):
                assert message.error() is None, message.error()
                found.append(int(message.value()))
        if group is not None:
            consumer.commit(offsets=[TopicPartition(topic, 0, end)], asynchronous=False)
        return found
    finally:
        consumer.close()


def within(ask: Callable[[], Any], wanted: Callable[[Any], bool] = lambda _: True) -> Any:
    """The answer, once it is as wanted; a Kafka that has just started refuses for a while."""
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            answer = ask()
            if wanted(answer):
                return answer
        except KafkaException:
            answer = None
        assert time.monotonic() < deadline, answer
        time.sleep(0.2)


def committed(address: str, group: str, topic: str) -> int:
    asked = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0)])
    answer = admin(address).list_consumer_group_offsets([asked])[group].result(30)
    return int(answer.topic_partitions[0].offset)


def fill(address: str, **settings: object) -> None:
    create(address, TOPICS)
    for topic in TOPICS:
        produce(address, topic, range(COUNT), **settings)
    done(admin(address).delete_topics(["gone"]))


def strays(data: Path) -> list[str]:
    return sorted(one.name.partition(".")[0] for one in data.glob("*-stray"))


def test_a_kraft_folder_keeps_what_its_metadata_says(
    release: str, month_later: Callable[..., BrokerProcess], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "kafka"
    with kafka.running(release, data=home) as node:
        fill(node.address)
        assert len(consume(node.address, "forever", "readers")) == COUNT
        set_config(node.address, ResourceType.TOPIC, "year", "max.message.bytes", "77777")
        set_config(node.address, ResourceType.BROKER, "1", "log.retention.ms", "1209600000")
        secret = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
        done(admin(node.address).alter_user_scram_credentials([UserScramCredentialUpsertion("u", secret, b"wonder")]))
    data = home / "logs"

    looked = run_typed(capsys, "adopt", data, "--dry-run", "-o", "json")
    assert looked.code == 0
    assert looked.json["kraft"]["scram_credentials"] == 1
    assert {one["settings_from"] for one in looked.json["topics"]} == {"KRaft metadata"}
    assert not (data / "horolog-cluster").exists()

    broker = month_later(data)
    within(lambda: consume(broker.address, "plain"), lambda values: values == [])  # retention has run
    assert consume(broker.address, "forever") == list(range(COUNT))
    assert consume(broker.address, "year") == list(range(COUNT))
    assert set(consume(broker.address, "table")) >= set(range(COUNT - 10, COUNT))
    assert own_configs(broker.address, "forever") == {"retention.ms": "-1"}
    assert own_configs(broker.address, "year") == {"retention.ms": "31536000000", "max.message.bytes": "77777"}
    assert own_configs(broker.address, "table") == {"cleanup.policy": "compact"}
    assert own_configs(broker.address, "__consumer_offsets")["cleanup.policy"] == "compact"
    assert committed(broker.address, "readers", "forever") == COUNT
    assert broker.stop() == 0
    assert "wonder" not in broker.log()
    assert "applied 1 SCRAM credential from" in broker.log()
    assert "Traceback" not in broker.log()


@pytest.mark.long
def test_there_and_back_again(release: str, tmp_path: Path) -> None:
    """What each direction carries over, as docs/migration.md has it."""
    home = tmp_path / "kafka"
    data = home / "logs"
    with kafka.running(release, data=home) as node:
        fill(node.address)
    broker = BrokerProcess(data).start()
    try:
        create(broker.address, {"ours": {"retention.ms": "-1"}})
        produce(broker.address, "ours", range(COUNT))
        produce(broker.address, "forever", range(COUNT, 2 * COUNT), **{"enable.idempotence": True})
        set_config(broker.address, ResourceType.TOPIC, "plain", "retention.ms", "-1")
        set_config(broker.address, ResourceType.TOPIC, "year", "max.message.bytes", "5555")
        done(admin(broker.address).delete_topics(["table"]))
    finally:
        assert broker.stop() == 0

    with kafka.running(release, data=home) as node:
        assert within(lambda: consume(node.address, "forever"), len) == list(range(2 * COUNT))
        assert within(lambda: consume(node.address, "plain"), len) == list(range(COUNT))
        topics = set(admin(node.address).list_topics(timeout=20).topics)
        assert "ours" not in topics
        assert consume(node.address, "table") == []  # it is back, without records
        assert "retention.ms" not in own_configs(node.address, "plain")
        set_config(node.address, ResourceType.TOPIC, "year", "retention.ms", "999999999999")
        produce(node.address, "forever", range(2 * COUNT, 3 * COUNT))
    assert strays(data) == ["ours-0"]

    broker = BrokerProcess(data).start()
    try:
        assert consume(broker.address, "ours") == list(range(COUNT))
        assert consume(broker.address, "forever") == list(range(3 * COUNT))
        assert own_configs(broker.address, "ours") == {"retention.ms": "-1"}
        assert own_configs(broker.address, "plain") == {"retention.ms": "-1"}
        assert own_configs(broker.address, "year") == {"retention.ms": "999999999999", "max.message.bytes": "5555"}
    finally:
        assert broker.stop() == 0
    assert strays(data) == []


def old_settings(home: Path) -> str:
    """What the tool of that time prints of topics."""
    port = next(
        line.partition("=")[2]
        for line in (home / "zookeeper.cfg").read_text().splitlines()
        if line.startswith("clientPort=")
    )
    java = ["java", "-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", f"{kafka.libs(OLD)}/*", "kafka.admin.ConfigCommand"]
    command = [*java, "--zookeeper", f"127.0.0.1:{port}", "--describe", "--entity-type", "topics"]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


def test_a_folder_of_the_time_of_zookeeper_loses_nothing_until_its_settings_are_given(
    month_later: Callable[..., BrokerProcess], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    release_or_skip(OLD)
    home = tmp_path / "kafka"
    with kafka.running(OLD, data=home) as node:
        fill(node.address)
        given = tmp_path / "settings.txt"
        given.write_text(old_settings(home))
    data = home / "logs"
    assert "Configs for topic 'forever' are retention.ms=-1" in given.read_text()

    (port,) = process.free_ports(1)
    broker = month_later(data, broker__id="0", horolog__http__listen=f"127.0.0.1:{port}")
    time.sleep(2)  # retention and compaction have had ten turns
    for topic in ("forever", "year", "table", "plain"):
        assert consume(broker.address, topic) == list(range(COUNT)), topic
        assert own_configs(broker.address, topic) == {"horolog.settings.unknown": "true"}
    warnings = json.load(urlopen(f"http://127.0.0.1:{port}/ready", timeout=10))["warnings"]
    assert [one for one in warnings if one.startswith("topic forever: its settings are unknown")]
    metrics = urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10).read().decode()
    assert "horolog_topics_with_unknown_settings 4" in metrics
    described = run_typed(capsys, "topics", "describe", "plain", "-b", broker.address)
    assert "settings unknown" in described.out
    assert broker.stop() == 0
    assert broker.log().count("topic forever: its settings are unknown") == 1

    adopted = run_typed(capsys, "adopt", data, "--settings", given, "-o", "json")
    assert adopted.json["summary"]["settings_unknown"] == 0
    broker = month_later(data, broker__id="0")
    within(lambda: consume(broker.address, "plain"), lambda values: values == [])
    assert consume(broker.address, "forever") == list(range(COUNT))
    assert consume(broker.address, "year") == list(range(COUNT))
    assert set(consume(broker.address, "table")) >= set(range(COUNT - 10, COUNT))
    assert own_configs(broker.address, "table") == {"cleanup.policy": "compact"}
    assert broker.stop() == 0


def test_the_way_back_to_the_time_of_zookeeper(tmp_path: Path) -> None:
    """Records written in the old format are read by the old broker; a topic made here is not served by it, and its folder stays."""
    release_or_skip(OLD)
    home = tmp_path / "kafka"
    data = home / "logs"
    with kafka.running(OLD, data=home) as node:
        fill(node.address)
    broker = BrokerProcess(data, {"broker.id": "0", "log.message.format.version": "0.10.2"}).start()
    try:
        produce(broker.address, "forever", range(COUNT, 2 * COUNT))
        create(broker.address, {"ours": {}})
        produce(broker.address, "ours", range(COUNT))
    finally:
        assert broker.stop() == 0
    kept = tmp_path / "kept"
    shutil.copytree(data / "ours-0", kept)
    with kafka.running(OLD, data=home) as node:
        assert within(lambda: consume(node.address, "forever"), len) == list(range(2 * COUNT))
        assert "ours" not in admin(node.address).list_topics(timeout=20).topics
    assert (data / "ours-0" / f"{0:020}.log").read_bytes() == (kept / f"{0:020}.log").read_bytes()
