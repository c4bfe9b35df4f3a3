"""DescribeLogDirs: the folders, the room of each, and the partitions in it; one that cannot be used is told as such."""

import pytest

from horolog.broker.cluster.new_topics import NewTopic
from horolog.broker.log.manager.data_folders import FOLDER_LOOK_S
from horolog.broker.log.storage import MemoryStorage
from horolog.broker.log.storage.memory_disk import ALL
from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
)
from tests.support.at_once import at_once
from tests.support.memory_broker import MemoryBroker
from tests.unit.broker.cluster.cluster_stand_ins import fill
from tests.unit.broker.handlers.stand_ins import StandIn

VERSIONS = range(6)


@pytest.fixture
def broker():
    broker = StandIn()
    fill(broker.cluster.create_topic("t", 2).find(0), 1, 2)
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
    filled_bytes = broker.cluster.topics["t"].find(0).size_bytes
    assert sizes(folder) == {"t": {0: filled_bytes, 1: 0}, "u": {0: 0}}
    assert filled_bytes > 0
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


# Of several folders, on the wire

A, B = "/disks/a", "/disks/b"
FAILED = ErrorCode.KAFKA_STORAGE_ERROR


async def folders_of(broker, version):
    answer = await broker.connect().ask(DescribeLogDirsRequest(topics=None), version)
    assert answer.error_code == ErrorCode.NONE
    return {
        one.log_dir: (one.error_code, {name: list(each) for name, each in sizes(one).items()}) for one in answer.results
    }


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_folder_that_is_away_at_the_start_is_told_as_failed(version):
    storage = MemoryStorage()
    async with MemoryBroker(storage, (A, B)) as broker:
        broker.topic("t", 3)
        assert await folders_of(broker, version) == {A: (0, {"t": [0, 2]}), B: (0, {"t": [1]})}
    for operation in ("list", "read", "open", "create", "write", "make", "rename"):
        storage.fail(operation, B, times=ALL)
    async with MemoryBroker(storage, (A, B)) as broker:
        assert await folders_of(broker, version) == {A: (0, {"t": [0, 2]}), B: (FAILED, {})}
        storage.heal()
        broker.clock.advance(int(FOLDER_LOOK_S * 1000) + 1)
        broker.broker.logs.retry_stopped()
        assert await folders_of(broker, version) == {A: (0, {"t": [0, 2]}), B: (0, {"t": [1]})}


async def test_a_folder_that_fails_while_running_is_told_as_failed():
    storage = MemoryStorage()
    async with MemoryBroker(storage, (A, B)) as broker:
        broker.topic("t", 2)
        storage.fail("make", f"{A}/new", times=ALL)
        at_once(broker.broker.cluster.create_topics, [NewTopic("new", 1)])
        assert await folders_of(broker, 4) == {A: (FAILED, {}), B: (0, {"t": [1]})}


# Moving a partition to another folder


@pytest.mark.parametrize(
    ("path", "name", "index", "code"),
    [
        (A, "t", 0, ErrorCode.NONE),
        (B, "t", 0, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (A, "t", 9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("/elsewhere", "t", 0, ErrorCode.LOG_DIR_NOT_FOUND),
    ],
)
@pytest.mark.parametrize("version", range(3))
async def test_a_partition_stays_where_it_is(version, path, name, index, code):
    async with MemoryBroker(folders=(A, B)) as broker:
        broker.topic("t", 2)
        wanted = AlterReplicaLogDir(path=path, topics=[AlterReplicaLogDirTopic(name=name, partitions=[index])])
        (topic,) = (await broker.connect().ask(AlterReplicaLogDirsRequest(dirs=[wanted]), version)).results
        assert [(one.partition_index, one.error_code) for one in topic.partitions] == [(index, code)]


async def test_nothing_is_moved_into_a_folder_that_has_failed():
    storage = MemoryStorage()
    async with MemoryBroker(storage, (A, B)) as broker:
        broker.topic("t", 2)
        storage.fail("make", f"{A}/new", times=ALL)
        at_once(broker.broker.cluster.create_topics, [NewTopic("new", 1)])
        wanted = AlterReplicaLogDir(path=A, topics=[AlterReplicaLogDirTopic(name="t", partitions=[1])])
        (topic,) = (await broker.connect().ask(AlterReplicaLogDirsRequest(dirs=[wanted]), 2)).results
        assert topic.partitions[0].error_code == FAILED
