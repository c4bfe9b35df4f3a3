"""DescribeLogDirs: one folder, its room, and the partitions in it."""

import pytest

from protocol.apis import ApiKey
from protocol.messages.log_dirs import DescribableLogDirTopic
from tests.unit.broker.handlers.stand_ins import StandIn

VERSIONS = range(6)


@pytest.fixture
def broker():
    broker = StandIn()
    broker.cluster.create_topic("t", 2).partitions[0].timestamps = [1, 2]
    broker.cluster.create_topic("u", 1)
    return broker


def ask(broker, version, topics):
    answer = broker.ask(ApiKey.DESCRIBE_LOG_DIRS, version, topics=topics)
    (folder,) = answer.results
    assert (answer.error_code, folder.error_code) == (0, 0)
    return folder


def sizes(folder):
    return {t.name: {p.partition_index: p.partition_size for p in t.partitions} for t in folder.topics}


@pytest.mark.parametrize("version", VERSIONS)
def test_all_partitions(broker, version):
    folder = ask(broker, version, None)
    assert sizes(folder) == {"t": {0: 200, 1: 0}, "u": {0: 0}}
    assert not any(p.offset_lag or p.is_future_key for t in folder.topics for p in t.partitions)


@pytest.mark.parametrize("version", VERSIONS)
def test_some_partitions_and_none_that_is_not_here(broker, version):
    asked = [
        DescribableLogDirTopic(topic="t", partitions=[1, 1, 7, -1]),
        DescribableLogDirTopic(topic="x", partitions=[0]),
        DescribableLogDirTopic(topic="u", partitions=[]),
    ]
    assert sizes(ask(broker, version, asked)) == {"t": {1: 0}}
    assert sizes(ask(broker, version, [])) == {}


@pytest.mark.parametrize("version", VERSIONS)
def test_room_on_the_disk(broker, version):
    folder = ask(broker, version, [])
    assert folder.log_dir == "/data"
    if version >= 4:
        assert (folder.total_bytes, folder.usable_bytes) == (1000, 400)
    else:
        assert (folder.total_bytes, folder.usable_bytes) == (-1, -1)


def test_a_disk_that_does_not_say(broker):
    broker.logs.folders[0].space = None
    folder = ask(broker, 4, [])
    assert (folder.total_bytes, folder.usable_bytes) == (-1, -1)
