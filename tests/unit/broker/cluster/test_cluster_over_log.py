"""The registry of topics over the real log, in memory: what the stand-ins of the other tests promise is so."""

import contextlib
import random

import pytest

from horolog.base.clock import ManualClock
from horolog.broker.base.own_thread import AtOnce
from horolog.broker.cluster.cluster import Cluster
from horolog.broker.cluster.membership import SoleMember
from horolog.broker.cluster.new_topics import NewPartitions, NewTopic
from horolog.broker.config.settings import Settings
from horolog.broker.log.files.checkpoints import encode_partition_metadata
from horolog.broker.log.manager import LogManager
from horolog.broker.log.manager.data_folder import remove_folder
from horolog.broker.log.partition import rewrite
from horolog.broker.log.storage import MemoryStorage, StorageFault
from horolog.broker.log.storage.memory_disk import ALL, PowerCut
from horolog.broker.on_record.cluster_errors import ClusterError
from horolog.broker.on_record.cluster_file import FILE_NAME, ClusterFile
from horolog.protocol.errors import ErrorCode
from tests.support.at_once import at_once, delete_topic
from tests.support.log_model import NEW, NOW_MS, encode


class Machine:
    def __init__(self):
        self.clock = ManualClock()
        self.storage = MemoryStorage(lambda: self.clock.wall_ms() * 1_000_000)
        self.logs = None

    def start(self):
        """As after a power cut: only what was synced is there."""
        self.storage.crash()
        return self.start_as_it_is()

    def start_as_it_is(self):
        if self.logs is not None:
            self.logs.abandon()
        self.logs = LogManager(["/data"], self.storage, self.clock, Settings())
        file = ClusterFile(self.storage, "/data")
        cluster = Cluster(self.logs.cluster_id, Settings(), self.logs, file, SoleMember(1, self.logs, file, AtOnce()))
        cluster.open(self.clock.wall_ms())
        return cluster


@pytest.fixture
def machine():
    return Machine()


def seen(cluster):
    return {
        name: (topic.id, [(p.topic_id, p.config.retention_ms, p.condition.fault) for p in topic.led_here])
        for name, topic in cluster.topics.items()
    }


def test_every_change_outlives_a_power_cut(machine):
    cluster = machine.start()
    at_once(
        cluster.create_topics, [NewTopic("a", 2, overrides={"retention.ms": "5"}), NewTopic("b", 1), NewTopic("c", 3)]
    )
    at_once(cluster.add_partitions, [NewPartitions("b", 4)])
    delete_topic(cluster, "c")
    at_once(cluster.alter_topic_configs, {"b": {"retention.ms": "7"}})
    again = machine.start()
    assert seen(again) == seen(cluster)
    assert {name: topic.partition_count for name, topic in again.topics.items()} == {"a": 2, "b": 4}
    assert again.cluster_id == cluster.cluster_id


def test_a_power_cut_at_any_step_of_creating_gives_the_whole_topic_or_none(machine):
    machine.start().create_topic("before", 1)
    outcomes = set()
    for step in range(60):
        cluster = machine.start()
        at_once(cluster.delete_topics, {name: topic.id for name, topic in cluster.topics.items() if name == "new"})
        machine.storage.power_off_after(step)
        with contextlib.suppress(PowerCut):
            cluster.create_topic("new", 2)
        found = {name: topic.partition_count for name, topic in machine.start().topics.items()}
        assert found in ({"before": 1}, {"before": 1, "new": 2})
        outcomes.add(len(found))
    assert outcomes == {1, 2}


def test_a_full_disk_refuses_and_leaves_nothing(machine):
    cluster = machine.start()
    machine.storage.fail("create", "/data/t-1")
    (result,) = at_once(cluster.create_topics, [NewTopic("t", 3)])
    assert result.code == ErrorCode.KAFKA_STORAGE_ERROR
    machine.storage.heal()
    assert not machine.start().topics
    assert machine.start().create_topic("t", 3)


@pytest.mark.parametrize("fault", [("write", "t-0/"), ("create", "t-1/"), ("make", "t-1"), ("sync_dir", "/data")])
def test_a_power_cut_brings_back_nothing_of_a_topic_that_could_not_be_made(fault):
    """The removal of a folder is not durable at once; some of its files may be, and say whose it is."""
    for seed in range(12):
        machine = Machine()
        cluster = machine.start()
        cluster.create_topic("before", 1)
        machine.storage.fail(*fault)
        if fault[0] == "sync_dir":
            machine.storage.fail("make", "t-1")
        (result,) = at_once(cluster.create_topics, [NewTopic("t", 2)])
        assert result.code == ErrorCode.KAFKA_STORAGE_ERROR
        machine.storage.crash(random.Random(seed))
        assert set(machine.start().topics) == {"before"}


@pytest.mark.parametrize("fault", [("write", "t-2/"), ("create", "t-2/"), ("make", "t-1")])
def test_a_power_cut_leaves_a_topic_that_could_not_grow_whole_with_some_of_the_partitions(fault):
    """Those that were made stay, as the error leaves open; one whose folder comes back empty is one of them."""
    for seed in range(12):
        machine = Machine()
        cluster = machine.start()
        topic_id = cluster.create_topic("t", 1).id
        append(cluster.topics["t"].find(0))
        machine.storage.fail(*fault)
        assert at_once(cluster.add_partitions, [NewPartitions("t", 4)])["t"].code == ErrorCode.KAFKA_STORAGE_ERROR
        machine.storage.crash(random.Random(seed))
        topic = machine.start().topics["t"]
        assert (topic.id, topic.find(0).high_watermark) == (topic_id, 1)
        assert 1 <= topic.partition_count <= 4
        assert {(one.topic_id, one.condition.fault) for one in topic.led_here} == {(topic_id, None)}
        assert len(topic.led_here) == topic.partition_count


@pytest.mark.parametrize("fault", [("rename", "/data/t-0"), ("list", "/data")])
def test_what_cannot_be_removed_of_a_topic_that_could_not_be_made_is_removed_by_the_next_start(machine, fault):
    cluster = machine.start()
    machine.storage.fail("make", "t-1")
    machine.storage.fail(*fault)
    (result,) = at_once(cluster.create_topics, [NewTopic("t", 2)])
    assert result.code == ErrorCode.KAFKA_STORAGE_ERROR
    again = machine.start_as_it_is()
    assert not again.topics
    assert not again.state.deleting
    assert "t-0" not in machine.storage.list_dir("/data")
    assert again.create_topic("t", 2)


def test_folders_without_the_file_keep_their_ids(machine):
    cluster = machine.start()
    for partition in cluster.create_topic("t", 2).led_here:
        partition.sync()
    machine.storage.remove("/data/horolog-cluster")
    machine.storage.sync_dir("/data")
    again = machine.start()
    assert seen(again) == {"t": (cluster.topics["t"].id, seen(again)["t"][1])}


def test_a_deleted_topic_may_be_made_again_at_once(machine):
    cluster = machine.start()
    first = cluster.create_topic("t", 2)
    delete_topic(cluster, "t")
    second = cluster.create_topic("t", 1)
    assert second.id != first.id
    assert all(partition.condition.fault for partition in first.led_here)
    assert seen(machine.start()) == seen(cluster)
    with pytest.raises(ClusterError):
        cluster.create_topic("t")


def test_a_power_cut_at_any_step_of_deleting_leaves_the_topic_as_it_was_or_nothing(machine):
    """Also of partitions that nobody has written to, whose folders may not say whose they are."""
    outcomes = set()
    for step in range(40):
        cluster = machine.start()
        at_once(cluster.delete_topics, {name: topic.id for name, topic in cluster.topics.items()})
        topic_id = cluster.create_topic("t", 3).id
        append(cluster.topics["t"].find(0))
        machine.storage.power_off_after(step)
        with contextlib.suppress(PowerCut):
            delete_topic(cluster, "t")
        for _ in range(2):
            found = {name: (topic.id, topic.partition_count) for name, topic in machine.start().topics.items()}
            assert found in ({}, {"t": (topic_id, 3)})
        outcomes.add(len(found))
    assert outcomes == {0, 1}


@pytest.mark.parametrize("metadata", [b"version: 0\ntopic_id: vx2MuACs", b"", None])
def test_a_deleted_topic_whose_folder_does_not_say_whose_it_is_stays_deleted(machine, metadata):
    """The power may fail before the folder's small files are on the disk, and after records are."""
    cluster = machine.start()
    append(cluster.create_topic("t", 1).find(0))
    machine.storage.fail("rename", "/data/t-0")
    delete_topic(cluster, "t")
    lose_id_of(machine, "t-0", metadata)
    assert not machine.start().topics
    assert not machine.start().topics
    assert machine.storage.list_dir("/data").count("t-0") == 0


def test_a_deleted_topic_stays_deleted_though_its_folder_cannot_be_identified_at_first(machine):
    cluster = machine.start()
    cluster.create_topic("other", 1)
    append(cluster.create_topic("t", 1).find(0))
    machine.storage.fail("rename", "/data/t-0")
    delete_topic(cluster, "t")
    cluster.changes.close()
    lose_line_of(machine, "other")
    machine.storage.fail("read", "t-0/partition.metadata")
    assert "t" not in machine.start_as_it_is().topics
    assert "t" not in machine.start().topics


def test_records_without_an_id_are_kept_where_the_record_of_topics_is_damaged(machine):
    """Then nobody knows whether the topic was made anew."""
    cluster = machine.start()
    cluster.create_topic("other", 1)
    append(cluster.create_topic("t", 1).find(0))
    machine.storage.fail("rename", "/data/t-0")
    delete_topic(cluster, "t")
    cluster.changes.close()
    lose_line_of(machine, "other")
    lose_id_of(machine, "t-0", None)
    (partition,) = machine.start().topics["t"].led_here
    assert partition.high_watermark == 1


def append(partition):
    partition.append(encode(2, 0, [NOW_MS], [b"v"]), NOW_MS, produce_version=NEW)
    partition.flush()
    partition.sync()


def lose_line_of(machine, name):
    """A bit of a topic's line in the cluster file flips."""
    path = f"/data/{FILE_NAME}"
    machine.storage.corrupt(path, machine.storage.read_all(path).index(b'{"name": "%s"' % name.encode()), 1)


def lose_id_of(machine, folder, left):
    """Of `partition.metadata` this is left on the disk; None: nothing."""
    path = f"/data/{folder}/partition.metadata"
    machine.storage.remove(path)
    if left is not None:
        file = machine.storage.create(path)
        file.pwritev([left], 0)
        file.datasync()
    machine.storage.sync_dir(f"/data/{folder}")


@pytest.mark.parametrize("fault", ["create", "read"])
def test_a_topic_keeps_its_id_though_its_line_is_lost_and_its_folder_cannot_be_opened(machine, fault):
    cluster = machine.start()
    topic_id = cluster.create_topic("t", 1).id
    append(cluster.topics["t"].find(0))
    machine.start()
    cluster.changes.close()
    lose_line_of(machine, "t")
    machine.storage.fail(fault, "t-0/", times=ALL)
    failing = machine.start_as_it_is()
    (partition,) = failing.topics["t"].led_here
    assert partition.condition.fault
    failing.create_topic("other", 1)
    assert machine.start().topics["t"].id == topic_id


def test_a_topic_keeps_its_id_though_its_line_is_lost_and_one_look_at_its_folder_fails(machine):
    cluster = machine.start()
    topic_id = cluster.create_topic("t", 1).id
    append(cluster.topics["t"].find(0))
    machine.start()
    cluster.changes.close()
    lose_line_of(machine, "t")
    machine.storage.fail("read", "t-0/partition.metadata")
    found = machine.start_as_it_is().topics["t"]
    assert found.find(0).condition.fault is None
    assert (found.id, machine.start().topics["t"].id) == (topic_id, topic_id)


@pytest.mark.parametrize("is_rewritten", [False, True])
def test_a_folder_that_could_not_be_given_its_id_has_it_before_its_first_record_is_safe(machine, is_rewritten):
    """Else the record is kept, and a start that finds only the folder makes another topic of it."""
    cluster = machine.start()
    topic_id = cluster.create_topic("t", 1).id
    append(cluster.topics["t"].find(0))
    lose_id_of(machine, "t-0", None)
    machine.storage.fail("rename", "t-0/partition.metadata", times=ALL)
    partition = machine.start_as_it_is().topics["t"].find(0)
    assert (partition.topic_id, partition.condition.fault) == (None, None)
    if is_rewritten:
        with pytest.raises(StorageFault):
            append(partition)
        machine.storage.heal()
        rewrite.job(partition)()
        partition.condition.resume()
    else:
        machine.storage.heal()
        append(partition)
    cluster.changes.close()
    lose_line_of(machine, "t")
    assert machine.start().topics["t"].id == topic_id


@pytest.mark.parametrize("identified", [True, False])
def test_a_topic_has_its_id_again_when_its_folder_is_back(machine, identified):
    cluster = machine.start()
    topic_id = cluster.create_topic("t", 1).id
    append(cluster.topics["t"].find(0))
    machine.start()
    cluster.changes.close()
    lose_line_of(machine, "t")
    if not identified:
        machine.storage.remove("/data/t-0/partition.metadata")
    machine.storage.fail("read", "t-0/", times=ALL)
    cluster = machine.start_as_it_is()
    topic = cluster.topics["t"]
    machine.storage.heal()
    assert machine.logs.open_again(topic.find(0))
    cluster.reopened(topic.find(0))
    assert (topic.id == topic_id) == identified
    assert cluster.by_id == {topic.id: topic}
    assert topic.find(0).topic_id == topic.id
    again = machine.start()
    assert again.topics["t"].id == topic.id


def test_no_folder_gets_an_id_that_was_made_up_while_another_could_not_be_read(machine):
    """Else that folder alone would make another topic of it, the next time the others cannot be read."""
    cluster = machine.start()
    topic_id = cluster.create_topic("t", 2).id
    append(cluster.topics["t"].find(0))
    machine.start()
    cluster.changes.close()
    lose_line_of(machine, "t")
    remove_folder(machine.storage, "/data/t-1")
    machine.storage.fail("read", "t-0/", times=ALL)
    cluster = machine.start_as_it_is()
    at_once(cluster.add_partitions, [NewPartitions("t", 3)])
    topic = cluster.topics["t"]
    assert [one.topic_id for one in topic.led_here] == [None] * 3
    machine.storage.heal()
    assert machine.logs.open_again(topic.find(0))
    cluster.reopened(topic.find(0))
    assert [one.topic_id for one in topic.led_here] == [topic_id] * 3
    cluster.changes.close()
    lose_line_of(machine, "t")
    machine.storage.fail("read", "t-0/", times=ALL)
    assert machine.start_as_it_is().topics["t"].id == topic_id


@pytest.mark.parametrize("first", [0, 1])
def test_a_folder_without_an_id_decides_nothing_while_another_is_unread(machine, first):
    cluster = machine.start()
    topic_id = cluster.create_topic("t", 2).id
    for partition in cluster.topics["t"].led_here:
        append(partition)
    machine.start()
    cluster.changes.close()
    lose_line_of(machine, "t")
    machine.storage.remove("/data/t-0/partition.metadata")
    machine.storage.fail("read", "/t-", times=ALL)
    cluster = machine.start_as_it_is()
    topic = cluster.topics["t"]
    machine.storage.heal()
    for index in (first, 1 - first):
        assert machine.logs.open_again(topic.find(index))
        cluster.reopened(topic.find(index))
    assert topic.id == topic_id
    assert [one.topic_id for one in topic.led_here] == [topic_id] * 2


def test_a_folder_with_another_id_gets_that_of_its_topic(machine, caplog):
    cluster = machine.start()
    topic_id = cluster.create_topic("t", 1).id
    append(cluster.topics["t"].find(0))
    lose_id_of(machine, "t-0", encode_partition_metadata(b"x" * 16))
    assert machine.start().topics["t"].find(0).topic_id == topic_id
    assert "another topic's id" in caplog.text
    machine.storage.remove("/data/horolog-cluster")
    assert machine.start().topics["t"].id == topic_id
