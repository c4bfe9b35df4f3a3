"""Every setting that may change while running does change something while running, without a restart."""

import asyncio
import logging

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

from horolog.broker.base.periodic import Periodic
from horolog.broker.config.settings import SPECS
from horolog.broker.observability.logs import LogSetup
from horolog.protocol.messages.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from horolog.protocol.records.batch import encode_batch
from horolog.protocol.records.record import Record
from horolog.protocol.records.timestamps import TimestampType
from horolog.testing import broker_in_thread
from tests.support.memory_broker import MemoryBroker

BROKER = 4
SET, DELETE = 0, 1
T0 = 1_700_000_000_000

# key: a value that is not the default, for keys that give every topic its configuration
OF_TOPICS = {
    "log.segment.bytes": "1048576",
    "log.roll.ms": "1000",
    "log.roll.jitter.ms": "10",
    "log.index.size.max.bytes": "4096",
    "log.index.interval.bytes": "100",
    "log.preallocate": "true",
    "log.segment.delete.delay.ms": "5",
    "log.flush.interval.messages": "7",
    "log.flush.interval.ms": "70",
    "log.retention.ms": "1234",
    "log.retention.bytes": "12345",
    "log.cleanup.policy": "compact",
    "log.cleaner.delete.retention.ms": "9",
    "log.cleaner.min.cleanable.ratio": "0.25",
    "log.cleaner.min.compaction.lag.ms": "11",
    "log.cleaner.max.compaction.lag.ms": "12",
    "message.max.bytes": "2000",
    "compression.type": "zstd",
    "log.message.timestamp.type": "LogAppendTime",
    "log.message.timestamp.before.max.ms": "13",
    "log.message.timestamp.after.max.ms": "14",
    "log.message.timestamp.difference.max.ms": "15",
    "max.message.time.difference.ms": "16",
    "horolog.log.future.timestamp.max.ms": "17",
}

# Looked up in the settings whenever they are needed, which the tests of what needs them show.
READ_WHEN_NEEDED = {
    "min.insync.replicas",
    "horolog.acks.all.sync",
    "horolog.delegation.tokens.max",
    "horolog.offsets.commit.sync",
    "horolog.replication.factor.accept",
    "log.cleaner.dedupe.buffer.size",
    "horolog.log.message.upconversion.enable",
    "log.message.downconversion.enable",
    "horolog.disk.room.warning.percent",
    *(f"group.{kind}.assignment.interval.ms" for kind in ("consumer", "share", "streams")),
}
TESTED_BELOW = {
    "producer.id.expiration.ms",
    "log.cleaner.backoff.ms",
    "horolog.log.level",
    "horolog.log.levels",
}


def elsewhere(key):
    """Bounds on connections, the scrubber, certificates and stores have tests of their own."""
    kinds = ("max.connection", "horolog.scrub", "horolog.connections", "horolog.requests", "horolog.store", "ssl.")
    return key.startswith(kinds)


def test_no_dynamic_setting_is_forgotten():
    dynamic = {key for key, spec in SPECS.items() if spec.dynamic and not elsewhere(key)}
    assert dynamic == OF_TOPICS.keys() | READ_WHEN_NEEDED | TESTED_BELOW


async def alter(wire, key, value):
    config = IncrementalAlterConfigsRequestAlterableConfig(
        name=key, config_operation=DELETE if value is None else SET, value=value
    )
    resource = IncrementalAlterConfigsRequestAlterConfigsResource(
        resource_type=BROKER, resource_name="1", configs=[config]
    )
    answer = await wire.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    assert answer.responses[0].error_code == 0, answer.responses[0].error_message


@pytest.mark.parametrize("key", sorted(OF_TOPICS))
async def test_a_topic_follows_at_once_and_returns(key):
    async with MemoryBroker() as machine:
        partition = machine.topic("t").find(0)
        wire = machine.connect()
        before = partition.config
        await alter(wire, key, OF_TOPICS[key])
        assert partition.config != before
        await alter(wire, key, None)
        assert partition.config == before


async def test_silent_producers_are_forgotten_after_another_time():
    async with MemoryBroker() as machine:
        old = machine.topic("old").find(0)
        await alter(machine.connect(), "producer.id.expiration.ms", "5000")
        new = machine.topic("new").find(0)
        assert old.producers.expiration_ms == new.producers.expiration_ms == 5000


async def test_compaction_looks_more_often():
    async with MemoryBroker() as machine:
        await alter(machine.connect(), "log.cleaner.backoff.ms", "1234")
        assert "every 1.234 s" in repr(machine.broker.upkeep._compaction_job)


async def test_another_interval_counts_from_now_on():
    ran = asyncio.Event()
    periodic = Periodic(asyncio.get_running_loop(), ran.set, 3_600_000)
    periodic.set_interval(1)
    async with asyncio.timeout(60):
        await ran.wait()
    periodic.stop()


async def test_log_levels_change_while_running(capsys):
    root = logging.getLogger()
    level = root.level
    async with MemoryBroker() as machine:
        logs = LogSetup(machine.settings)
        try:
            machine.broker.settings_watchers.append(logs.apply)
            wire = machine.connect()
            await alter(wire, "horolog.log.level", "ERROR")
            await alter(wire, "horolog.log.levels", "broker.groups:DEBUG")
            assert root.level == logging.ERROR
            assert logging.getLogger("horolog.broker.groups").level == logging.DEBUG
            await alter(wire, "horolog.log.level", None)
            await alter(wire, "horolog.log.levels", None)
            assert root.level == logging.INFO
            assert logging.getLogger("horolog.broker.groups").level == logging.NOTSET
        finally:
            logs.close()
            root.setLevel(level)


def set_by_admin(admin, key, value):
    entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.BROKER, "1", incremental_configs=[entry])
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(20)


def send(producer, value):
    errors = []
    producer.produce("t", value, on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(20) == 0
    return errors[0]


def test_an_operator_changes_a_bound_with_a_real_client():
    with broker_in_thread() as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        producer = Producer({"bootstrap.servers": broker.bootstrap, "compression.type": "none"})
        assert send(producer, b"x" * 5000) is None
        set_by_admin(admin, "message.max.bytes", "2000")
        assert send(producer, b"x" * 5000).code() == KafkaError.MSG_SIZE_TOO_LARGE
        assert send(producer, b"y") is None
        with pytest.raises(KafkaException):
            set_by_admin(admin, "listeners", "PLAINTEXT://:1")


async def test_retention_that_was_shortened_while_running_acts():
    async with MemoryBroker() as machine:
        topic = machine.topic("t", message_timestamp_type="LogAppendTime")
        partition = topic.find(0)
        records = encode_batch([Record(0, T0, TimestampType.CREATE_TIME, b"k", b"v", ())])
        partition.append(bytes(records), T0, produce_version=9)
        wire = machine.connect()
        machine.clock.advance(120_000)
        machine.broker.time_has_moved()
        assert partition.log_start_offset == 0
        await alter(wire, "log.retention.ms", "60000")
        machine.broker.time_has_moved()
        assert partition.log_start_offset == 1
