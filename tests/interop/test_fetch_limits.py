"""Fetch over many partitions: the same requests to our broker and to real Kafkas, each held against one model of Kafka's rule.

And consumers with the settings that they come with, over more than one answer holds: they end with an error where a partition begins
with a cut batch.
"""

from __future__ import annotations

import gc
import random
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

with warnings.catch_warnings():  # it reads its schemas in a way that Python deprecates
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaConsumer, TopicPartition

import confluent_kafka

from benchmarks import kafka
from horolog.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from horolog.protocol.records.compression import Codec
from horolog.protocol.records.convert import encode
from horolog.protocol.records.record import Record
from horolog.protocol.records.timestamps import TimestampType
from tests.support.broker_process import BrokerProcess
from tests.support.fetch_rule import (
    BASE_MS,
    EVERYTHING_BYTES,
    FIRST_V2_VERSION,
    Part,
    expected,
    fetch,
    limit_of,
    places,
    produce,
    records_of,
    some_batches,
)
from tests.support.raw_wire import RawWire
from tests.vendor.wire_prober.core import Case, Ctx, Target

PARTITIONS = 9
LARGEST_BYTES = 300_000
REQUESTS = 150
MANY_PARTITIONS, BATCHES_EACH, VALUE_BYTES = 60, 9, 105_800
"""50 MiB, which consumers ask for, end inside the first batch of the 56th partition."""
READING_SECONDS = 60
CODECS = (Codec.NONE, Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4)
NATIVE = {"0.10.2.2": range(2, 4), "3.9.2": range(4, 18), "4.3.1": range(4, 19)}
"""The versions of Fetch in which a release gives what it stores."""


@contextmanager
def ours(data: Path) -> Iterator[str]:
    broker = BrokerProcess(data).start()
    try:
        yield broker.address
    finally:
        assert broker.stop() == 0
        assert "Traceback" not in broker.log()


@contextmanager
def theirs(release: str) -> Iterator[str]:
    try:
        kafka.libs(release)
    except kafka.MissingJarsError as error:
        pytest.skip(f"no jars of Kafka {release}: {error}")
    with kafka.running(release) as node:
        yield node.address


@contextmanager
def with_topic(address: str, partitions: int) -> Iterator[tuple[RawWire, str, bool]]:
    """A connection to the broker that leads all of a new topic, its name, and whether topics have ids."""
    host, _, port = address.rpartition(":")
    context = Ctx(Target(host, int(port)), Case("limits", "", None, {}, "", False))
    topic = context.topic(partitions)
    has_ids = context.t.has("Metadata", 10)
    context.close()
    with RawWire(f"{context.t.host}:{context.t.port}") as wire:
        yield wire, topic, has_ids


def append(wire: RawWire, topic: str, index: int, batch: bytes, version: int = 8) -> None:
    answer = wire.ask(produce(topic, index, batch), version)
    assert answer.responses[0].partition_responses[0].error_code == 0


def follows_the_rule(address: str, rng: random.Random, versions: Sequence[int]) -> None:
    magic = 2 if versions[0] >= FIRST_V2_VERSION else 1
    with with_topic(address, PARTITIONS) as (wire, topic, has_ids):
        for index in range(PARTITIONS):
            for one in some_batches(rng, magic, LARGEST_BYTES, CODECS):
                append(wire, topic, index, one, 8 if magic == 2 else 2)
        topic_id = bytes(16)
        if has_ids:
            topic_id = wire.ask(MetadataRequest(topics=[MetadataRequestTopic(name=topic)]), 10).topics[0].topic_id

        def ask(parts: Sequence[Part], version: int, limit: int) -> dict[int, bytes]:
            isolation = {"isolation_level": rng.choice((0, 1))} if version >= FIRST_V2_VERSION else {}
            return records_of(wire.ask(fetch(topic, topic_id, parts, version, limit, **isolation), version))

        every = [Part(index, 0, EVERYTHING_BYTES) for index in range(PARTITIONS)]
        held = list(ask(every, versions[-1], EVERYTHING_BYTES).values())
        for _ in range(REQUESTS):
            version, parts, limit = rng.choice(versions), places(rng, held), limit_of(rng, held)
            found = ask(parts, version, limit)
            most = limit if version >= 3 else EVERYTHING_BYTES
            wanted = dict(zip([one.index for one in parts], expected(held, parts, version, most), strict=True))
            assert found == wanted, (version, parts, limit, {index: len(data) for index, data in found.items()})


@pytest.mark.parametrize("release", NATIVE)
@pytest.mark.parametrize("seed", range(3))
def test_our_broker_follows_the_rule(release: str, seed: int, tmp_path: Path) -> None:
    with ours(tmp_path) as address:
        follows_the_rule(address, random.Random(seed), NATIVE[release])


@pytest.mark.long
@pytest.mark.kafka_jars
@pytest.mark.java
@pytest.mark.timeout(300)
@pytest.mark.parametrize("release", NATIVE)
def test_a_real_broker_follows_the_rule(release: str) -> None:
    with theirs(release) as address:
        for seed in range(3):
            follows_the_rule(address, random.Random(seed), NATIVE[release])


@pytest.fixture(scope="module")
def behind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The address of a broker, and a topic that its readers have to catch up with."""
    folder = tmp_path_factory.mktemp("behind")
    with ours(folder) as address, with_topic(address, MANY_PARTITIONS) as (wire, topic, _):
        record = Record(0, BASE_MS, TimestampType.CREATE_TIME, None, random.Random(1).randbytes(VALUE_BYTES))
        batch = bytes(encode([record], 2, Codec.NONE))
        for index in range(MANY_PARTITIONS):
            for _ in range(BATCHES_EACH):
                append(wire, topic, index, batch)
        yield address, topic


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.one_broker("frames go to one broker")
def test_kafka_python_catches_up_with_its_own_settings(behind: tuple[str, str]) -> None:
    address, topic = behind
    consumer = KafkaConsumer(bootstrap_servers=address, auto_offset_reset="earliest")
    try:
        consumer.assign([TopicPartition(topic, index) for index in range(MANY_PARTITIONS)])
        count, deadline = 0, time.monotonic() + READING_SECONDS
        while count < MANY_PARTITIONS * BATCHES_EACH and time.monotonic() < deadline:
            count += sum(len(records) for records in consumer.poll(timeout_ms=500).values())
    finally:
        consumer.close()
        gc.collect()  # what the client leaves open is told here and not at a later test
    assert count == MANY_PARTITIONS * BATCHES_EACH


@pytest.mark.one_broker("frames go to one broker")
def test_librdkafka_catches_up_with_its_own_settings(behind: tuple[str, str]) -> None:
    address, topic = behind
    consumer = confluent_kafka.Consumer({"bootstrap.servers": address, "group.id": "behind"})
    try:
        consumer.assign([confluent_kafka.TopicPartition(topic, index, 0) for index in range(MANY_PARTITIONS)])
        count, deadline = 0, time.monotonic() + READING_SECONDS
        while count < MANY_PARTITIONS * BATCHES_EACH and time.monotonic() < deadline:
            for message in consumer.consume(100, timeout=0.5):
                assert message.error() is None, message.error()
                count += 1
    finally:
        consumer.close()
    assert count == MANY_PARTITIONS * BATCHES_EACH
