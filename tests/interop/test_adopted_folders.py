"""The two data folders of a real Kafka: adopted as they are, whatever their order, and opened by that Kafka again."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import NewTopic, ResourceType

from benchmarks import kafka
from horolog import Admin
from tests.interop.test_adopted_kafka import (
    QUICK,
    WAIT_SECONDS,
    admin,
    committed,
    done,
    own_configs,
    release_or_skip,
    set_config,
    strays,
    within,
)
from tests.support.broker_process import BrokerProcess
from tests.support.command import run_typed

pytestmark = [pytest.mark.kafka_jars, pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(400)]

PARTITIONS = 4
COUNT = 40
OLD_MS = 1_600_000_000_000
OLD = {
    "forever": {"retention.ms": "-1"},
    "table": {"cleanup.policy": "compact"},
    "hour": {"retention.ms": "3600000"},
}
TOPICS = {**OLD, "plain": {}}
WITHOUT_RETENTION = {"log.initial.task.delay.ms": "3600000"}
"""A Kafka that deletes nothing while it runs, so that everything is left for whoever comes next."""

Records = dict[int, list[int]]


def create(address: str, topics: dict[str, dict[str, str]]) -> None:
    done(
        admin(address).create_topics([NewTopic(name, PARTITIONS, 1, config=dict(own)) for name, own in topics.items()])
    )


def produce(address: str, topic: str, values: range, timestamp: int) -> None:
    """The values to each partition, each under a key of its own: compaction keeps them all."""
    producer = Producer({"bootstrap.servers": address, "acks": "all", "enable.idempotence": True, "log_level": 0})
    for partition in range(PARTITIONS):
        for value in values:
            producer.produce(topic, b"%d" % value, b"key %d" % value, partition=partition, timestamp=timestamp + value)
    assert producer.flush(30) == 0


def consume(address: str, topic: str, partition: int) -> list[int]:
    consumer = Consumer({"bootstrap.servers": address, "group.id": "none", "enable.auto.commit": False, "log_level": 0})
    try:
        place = TopicPartition(topic, partition)
        first, end = within(lambda: consumer.get_watermark_offsets(place, timeout=30))
        consumer.assign([TopicPartition(topic, partition, first)])
        found: list[int] = []
        deadline = time.monotonic() + WAIT_SECONDS
        while first < end and consumer.position([place])[0].offset < end and time.monotonic() < deadline:
            for message in consumer.consume(100, 0.5):
                assert message.error() is None, message.error()
                found.append(int(message.value()))
        return found
    finally:
        consumer.close()


def records(address: str, topic: str) -> Records:
    return {partition: consume(address, topic, partition) for partition in range(PARTITIONS)}


def each(*values: int) -> Records:
    return {partition: list(values) for partition in range(PARTITIONS)}


def commit(address: str, group: str, topic: str, offset: int) -> None:
    consumer = Consumer({"bootstrap.servers": address, "group.id": group, "log_level": 0})
    try:
        place = TopicPartition(topic, 0, offset)
        within(lambda: consumer.commit(offsets=[place], asynchronous=False))
    finally:
        consumer.close()


def meta(folder: Path) -> dict[str, str]:
    lines = (folder / "meta.properties").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def placed(folder: Path) -> set[str]:
    """The partitions' folders that lie in a data folder, those of Kafka's metadata aside."""
    names = {one.name for one in folder.iterdir() if (one / "partition.metadata").exists()}
    return {name for name in names if not name.endswith("-stray") and name != "__cluster_metadata-0"}


def described(address: str) -> dict[str, tuple[int, set[str]]]:
    """What DescribeLogDirs says of each data folder: its error, and what lies in it."""

    async def ask() -> dict[str, tuple[int, set[str]]]:
        async with Admin(address) as asked:
            found = await asked.log_dirs()
            return {one.path: (one.error_code, {f"{name}-{index}" for name, index in one.sizes}) for one in found}

    return asyncio.run(ask())


@pytest.fixture(params=[("4.3.1", 1), ("4.3.1", -1), ("3.9.2", -1)], ids=lambda one: f"{one[0]}, order {one[1]}")
def case(request: pytest.FixtureRequest) -> tuple[str, int]:
    """The release, and whether we name the folders in its order or the other way round."""
    release_or_skip(request.param[0])
    return request.param


@pytest.fixture
def folders(tmp_path: Path) -> list[Path]:
    return [tmp_path / "kafka" / "logs", tmp_path / "kafka" / "more"]


@pytest.fixture
def broker(case: tuple[str, int], folders: list[Path]) -> Iterator[BrokerProcess]:
    broker = BrokerProcess(folders[0], QUICK | {"log.dirs": ",".join(map(str, folders[:: case[1]]))})
    yield broker
    broker.kill()


@pytest.mark.long
def test_two_folders_there_and_back(
    case: tuple[str, int],
    folders: list[Path],
    broker: BrokerProcess,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    release, home = case[0], tmp_path / "kafka"
    own = {"log.dirs": ",".join(map(str, folders)), **WITHOUT_RETENTION}
    now_ms = time.time_ns() // 1_000_000
    with kafka.running(release, data=home, **own) as node:
        create(node.address, TOPICS)
        for topic in TOPICS:
            produce(node.address, topic, range(COUNT), OLD_MS if topic in OLD else now_ms)
        set_config(node.address, ResourceType.TOPIC, "plain", "max.message.bytes", "77777")
        commit(node.address, "readers", "forever", 7)
    metas = [meta(one) for one in folders]
    places = [placed(one) for one in folders]
    for lies_there in places:
        assert len(lies_there) >= PARTITIONS, "the partitions are spread"

    looked = run_typed(capsys, "adopt", *folders[:: case[1]], "--dry-run", "-o", "json").json
    told_of = {one["topic"]: (one["partitions"], one["folders"]) for one in looked["topics"]}
    assert told_of == {"__consumer_offsets": (1, 1)} | dict.fromkeys(TOPICS, (PARTITIONS, PARTITIONS))
    assert {one["settings_from"] for one in looked["topics"]} == {"KRaft metadata"}
    assert {one["topic"] for one in looked["topics"] if one["expiring"]} == {"hour"}
    assert not any((one / "horolog-cluster").exists() for one in folders)

    broker.start()
    within(lambda: records(broker.address, "hour"), lambda found: found == each())  # retention has run
    for topic in ("forever", "table", "plain"):
        assert records(broker.address, topic) == each(*range(COUNT)), topic
        produce(broker.address, topic, range(COUNT, 2 * COUNT), now_ms)
    settings = {**TOPICS, "plain": {"max.message.bytes": "77777"}}
    assert {name: own_configs(broker.address, name) for name in settings} == settings
    assert committed(broker.address, "readers", "forever") == 7
    create(broker.address, {"ours": {"retention.ms": "-1"}})
    produce(broker.address, "ours", range(COUNT), OLD_MS)
    assert broker.stop() == 0
    assert "Traceback" not in broker.log()
    assert [meta(one) for one in folders] == metas
    ours = [placed(one) - before for one, before in zip(folders, places, strict=True)]
    assert set.union(*ours) == {f"ours-{index}" for index in range(PARTITIONS)}

    with kafka.running(release, data=home, **own) as node:
        for topic in ("forever", "table", "plain"):
            assert within(lambda: records(node.address, topic), any) == each(*range(2 * COUNT)), topic  # noqa: B023
            produce(node.address, topic, range(2 * COUNT, 3 * COUNT), now_ms)
        assert committed(node.address, "readers", "forever") == 7
        told = described(node.address)
        assert told == {str(one): (0, before) for one, before in zip(folders, places, strict=True)}
    assert [meta(one) for one in folders] == metas
    assert [strays(one) for one in folders] == [sorted(one) for one in ours]

    broker.start()
    for topic in ("forever", "table", "plain"):
        assert records(broker.address, topic) == each(*range(3 * COUNT)), topic
    assert records(broker.address, "ours") == each(*range(COUNT))
    assert own_configs(broker.address, "ours") == {"retention.ms": "-1"}
    assert broker.stop() == 0
    assert [placed(one) - before for one, before in zip(folders, places, strict=True)] == ours
