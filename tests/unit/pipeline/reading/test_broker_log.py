"""What a read asks a broker about topics, over one connection and without a loop of its own."""

import asyncio
from dataclasses import replace
from types import SimpleNamespace

import pytest

from horolog.client.admin.admin import Admin
from horolog.client.producing.producer import Producer
from horolog.client.values.types import EARLIEST, LATEST, TopicPartition
from horolog.pipeline.base.positions import OptionError
from horolog.pipeline.options.options import Selection, parse_read
from horolog.pipeline.reading.broker_log import BrokerLog
from horolog.protocol.errors import ErrorCode
from tests.support.names import unique

BASE_MS = 1_700_000_000_000


@pytest.fixture(scope="module")
def topic(session_broker):
    """Two partitions, the first of which has five records a second apart."""
    name = unique("asked")

    async def make():
        async with Admin(session_broker.address) as admin:
            await admin.create_topic(name, 2, configs={"retention.ms": "-1"})
            async with Producer(admin.client) as producer:
                for second in range(5):
                    await producer.send(name, b"v", partition=0, timestamp_ms=BASE_MS + 1000 * second)

    asyncio.run(make())
    return name


@pytest.fixture
def log(session_broker, topic):
    with BrokerLog(parse_read({"kafka.bootstrap.servers": session_broker.address, "subscribe": topic}, 0)) as found:
        yield found


def test_partitions_are_selected_by_name_pattern_or_one_by_one(log, topic):
    both = [TopicPartition(topic, 0), TopicPartition(topic, 1)]
    assert log.partitions(Selection(topics=(topic,))) == both
    assert log.partitions(Selection(pattern=f"{topic[:-1]}.")) == both
    assert log.partitions(Selection(pattern="no-such-.*")) == []
    assert log.partitions(Selection(partitions=(both[1],))) == [both[1]]


def test_what_is_not_there_is_told(log, topic):
    with pytest.raises(OptionError, match="the cluster has no topic no-such-topic"):
        log.partitions(Selection(topics=(topic, "no-such-topic")))
    with pytest.raises(OptionError, match=f"assign: the cluster has no {topic}-7"):
        log.partitions(Selection(partitions=(TopicPartition(topic, 0), TopicPartition(topic, 7))))


def test_a_topic_that_may_not_be_read_is_told(log, topic, monkeypatch):
    async def metadata(names):
        found = SimpleNamespace(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, numbers=[])
        return SimpleNamespace(topics={topic: found})

    assert log.partitions(Selection(topics=(topic,)))
    monkeypatch.setattr(log.client, "metadata", metadata)
    with pytest.raises(OptionError, match=rf"not authorized for topic {topic} \(TOPIC_AUTHORIZATION_FAILED\)"):
        log.partitions(Selection(topics=(topic,)))


def test_ends_and_times_of_partitions(log, topic):
    full, empty = log.partitions(Selection(topics=(topic,)))
    assert log.ends([full, empty], EARLIEST) == {full: 0, empty: 0}
    assert log.ends([full, empty], LATEST) == {full: 5, empty: 0}
    assert log.at_times({full: BASE_MS + 1500, empty: BASE_MS}) == {full: 2, empty: None}
    assert (log.at_times({}), log.ends([], LATEST)) == ({}, {})


def test_topics_have_ids_and_may_be_gone(log, topic):
    log.partitions(Selection(topics=(topic,)))
    known = log.topic_id(topic)
    assert known
    assert log.topic_ids([topic, topic]) == {topic: known}
    assert log.are_there([topic, "no-such-topic"]) == {topic}
    assert log.are_there([]) == set()


def test_a_broker_without_ids_has_none(log, topic, monkeypatch):
    monkeypatch.setattr(log, "topic_id", lambda name: None)
    assert log.topic_ids([topic]) == {}


def test_samples_are_asked_for_at_positions(log, topic):
    full, empty = log.partitions(Selection(topics=(topic,)))
    found = log.samples({full: 2, empty: 0})
    assert found[full].first_time_ms == BASE_MS + 2000
    assert empty not in found
    assert log.samples({}) == {}


def test_requests_are_under_way_while_something_else_is_done(log):
    async def answer():
        await asyncio.sleep(0)
        return 7

    assert log.finish(log.start(answer())) == 7

    async def never():
        await asyncio.Event().wait()

    log.forget(log.start(never()))


def test_a_connection_is_that_of_the_options(session_broker, topic):
    options = parse_read({"kafka.bootstrap.servers": session_broker.address, "subscribe": topic}, 0)
    log = BrokerLog(replace(options, client_id="mine"))
    assert log.partitions(options.selection)
    log.close()
