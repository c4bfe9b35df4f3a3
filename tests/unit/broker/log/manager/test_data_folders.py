"""Several data folders: who they belong to, where partitions go, and what one of them that is away takes along."""

import pytest

from horolog.base.clock import ManualClock
from horolog.broker.base.own_thread import AtOnce
from horolog.broker.cluster.cluster import Cluster
from horolog.broker.cluster.membership import SoleMember
from horolog.broker.cluster.new_topics import NewPartitions, NewTopic
from horolog.broker.config.settings import Settings
from horolog.broker.log.files import MetaProperties, log_starts, meta_properties
from horolog.broker.log.manager import LogManager
from horolog.broker.log.manager.data_folders import FOLDER_LOOK_S
from horolog.broker.log.partition import log_start
from horolog.broker.log.storage import DataFolderError, MemoryStorage
from horolog.broker.log.storage.memory_disk import ALL
from horolog.broker.on_record.cluster_file import FILE_NAME, ClusterFile, parse
from horolog.protocol.uuids import parse_uuid
from tests.support import kraft
from tests.support.at_once import at_once, delete_topic
from tests.support.log_model import NEW, NOW_MS, encode

A, B, C = "/disks/a", "/disks/b", "/disks/c"


class Machine:
    def __init__(self):
        self.storage = MemoryStorage()
        self.clock = ManualClock(NOW_MS)
        self.logs = None

    def start(self, *folders):
        logs = self.logs = LogManager(list(folders), self.storage, self.clock, Settings())
        usable = ClusterFile(self.storage, folders[0], lambda: [one.path for one in logs.folders.usable()])
        self.cluster = Cluster(logs.cluster_id, Settings(), logs, usable, SoleMember(1, logs, usable, AtOnce()))
        self.cluster.open(NOW_MS)
        return self.cluster

    def restart(self, *folders):
        self.logs.close()
        return self.start(*folders)

    def lose(self, folder):
        """Its disk does not work from the next start on."""
        self.logs.close()
        for operation in ("list", "read", "open", "create", "write", "make", "rename"):
            self.storage.fail(operation, folder, times=ALL)

    def wait(self):
        """Let the manager look at its folders, and open again what it can."""
        for _ in range(20):
            self.clock.advance(int(FOLDER_LOOK_S * 1000) + 1)
            for job in self.logs.retry_stopped()[1]:
                job()

    def places(self, topic):
        return [one.directory.rpartition("/")[0] for one in self.cluster.topics[topic].led_here]


@pytest.fixture
def machine():
    return Machine()


def append(partition, value=b"v"):
    partition.append(encode(2, 0, [5], [value]), NOW_MS, produce_version=NEW)
    partition.flush()
    partition.sync()


def id_of(machine, folder):
    return meta_properties.load(machine.storage, folder).directory_id


# Whose they are


def test_the_folders_belong_to_one_cluster_and_have_ids_of_their_own(machine):
    machine.start(A, B, C)
    metas = [meta_properties.load(machine.storage, one) for one in (A, B, C)]
    assert {one.cluster_id for one in metas} == {machine.logs.cluster_id}
    assert len({one.directory_id for one in metas}) == 3


def test_a_new_folder_beside_an_old_one_joins_its_cluster(machine):
    cluster_id = machine.start(B).cluster_id
    assert machine.restart(A, B).cluster_id == cluster_id
    assert meta_properties.load(machine.storage, A).cluster_id == cluster_id


def test_folders_of_old_kafkas_get_ids(machine):
    machine.start(A)
    meta_properties.save(machine.storage, A, MetaProperties(0, 1, machine.logs.cluster_id), NOW_MS)
    machine.restart(A, B)
    assert id_of(machine, A) not in (None, id_of(machine, B))


def test_folders_of_two_clusters_are_refused_and_left_unlocked(machine):
    machine.start(A)
    machine.restart(B)
    machine.logs.close()
    with pytest.raises(
        DataFolderError, match=r"different clusters: /disks/a of cluster\.id=.*, /disks/b of cluster\.id="
    ):
        machine.start(A, B)
    machine.start(A)


def test_a_copy_of_a_folder_is_refused(machine):
    machine.start(A, B)
    machine.logs.close()
    data = machine.storage.read_all(f"{A}/meta.properties")
    machine.storage.write_atomically(f"{B}/meta.properties", data)
    with pytest.raises(DataFolderError, match=r"same directory\.id: one is a copy"):
        machine.start(A, B)


def test_a_folder_of_another_node_is_refused(machine):
    machine.start(A, B)
    machine.logs.close()
    meta_properties.save(machine.storage, B, MetaProperties(1, 7, machine.logs.cluster_id, "x" * 22), NOW_MS)
    with pytest.raises(DataFolderError, match=r"/disks/b/meta\.properties belongs to node\.id=7"):
        machine.start(A, B)


def test_a_partition_in_two_folders_is_refused_and_neither_is_touched(machine):
    append(machine.start(A, B).create_topic("t", 1).find(0))
    machine.logs.close()
    machine.storage.make_dir(f"{B}/t-0")
    with pytest.raises(DataFolderError, match="t-0 is in two data folders: /disks/a/t-0 and /disks/b/t-0"):
        machine.start(A, B)
    machine.storage.remove_dir(f"{B}/t-0")
    assert machine.start(A, B).topics["t"].find(0).log_end_offset == 1


# Where partitions go


def test_new_partitions_go_where_there_are_fewest(machine):
    cluster = machine.start(A, B)
    cluster.create_topic("t", 3)
    assert machine.places("t") == [A, B, A]
    cluster.create_topic("u", 1)
    assert machine.places("u") == [B]
    at_once(cluster.add_partitions, [NewPartitions("t", 6)])
    assert machine.places("t") == [A, B, A, A, B, A]
    machine.restart(C, B, A)
    assert machine.places("t") == [A, B, A, A, B, A]
    machine.cluster.create_topic("w", 3)
    assert machine.places("w") == [C, C, C]


def test_every_folder_has_the_cluster_file_and_the_newest_counts(machine):
    machine.start(A, B).create_topic("t", 2)
    old = machine.storage.read_all(f"{B}/{FILE_NAME}")
    machine.cluster.create_topic("u", 1, {"retention.ms": "-1"})
    machine.logs.close()
    machine.storage.write_atomically(f"{B}/{FILE_NAME}", old)
    cluster = machine.start(B, A)
    assert cluster.topics["u"].overrides == {"retention.ms": "-1"}


def test_one_folder_says_nothing_of_places(machine):
    machine.start(A).create_topic("t", 2)
    assert parse(machine.storage.read_all(f"{A}/{FILE_NAME}")).topics["t"].folders == {}


def test_a_deleted_partition_goes_from_its_own_folder(machine):
    cluster = machine.start(A, B)
    cluster.create_topic("t", 2)
    delete_topic(cluster, "t")
    for folder in (A, B):
        (left,) = [one for one in machine.storage.list_dir(folder) if one.endswith("-delete")]
        assert left.startswith("t-")
    machine.restart(A, B)
    for job in machine.logs.removal_jobs(NOW_MS):
        job()
    assert not any("-delete" in one for folder in (A, B) for one in machine.storage.list_dir(folder))


def test_offsets_that_are_on_record_stay_with_their_folder(machine):
    partitions = machine.start(A, B).create_topic("t", 2).led_here
    for one in partitions:
        append(one)
        append(one)
        log_start.delete_records_before(one, 1)
    assert machine.logs.write_log_starts() == set()
    machine.logs.abandon()
    partitions = machine.start(A, B).topics["t"].led_here
    assert [(one.log_start_offset, one.log_end_offset) for one in partitions] == [(1, 2), (1, 2)]


# A folder that is away


def test_a_folder_that_is_away_takes_only_its_partitions_along(machine):
    for one in machine.start(A, B).create_topic("t", 4).led_here:
        append(one)
    machine.lose(B)
    partitions = machine.start(A, B).topics["t"].led_here
    assert [one.condition.fault is None for one in partitions] == [True, False, True, False]
    assert "is unavailable" in partitions[1].condition.fault
    append(partitions[0])
    assert [one.log_end_offset for one in partitions] == [2, 0, 1, 0]
    machine.cluster.create_topic("new", 4)
    assert machine.places("new") == [A] * 4


@pytest.mark.parametrize("again", ["running", "restarted"])
def test_a_folder_that_comes_back_brings_its_partitions(machine, again):
    for one in machine.start(A, B).create_topic("t", 2).led_here:
        append(one, b"kept")
        append(one)
        log_start.delete_records_before(one, 1)
    machine.logs.write_log_starts()
    machine.lose(B)
    machine.start(A, B)
    machine.cluster.create_topic("meanwhile", 1)
    machine.storage.heal()
    if again == "running":
        machine.wait()
    else:
        machine.restart(A, B)
    partitions = machine.cluster.topics["t"].led_here
    assert [one.condition.fault for one in partitions] == [None, None]
    assert [(one.log_start_offset, one.log_end_offset) for one in partitions] == [(1, 2), (1, 2)]
    assert machine.places("t") == [A, B]
    machine.wait()
    append(partitions[1])
    machine.restart(A, B)
    assert machine.cluster.topics["t"].find(1).log_end_offset == 3
    assert "meanwhile" in machine.cluster.topics


def test_a_folder_that_is_not_named_any_more_is_not_made_up_for(machine):
    for one in machine.start(A, B).create_topic("t", 2).led_here:
        append(one)
    machine.restart(A)
    away = machine.cluster.topics["t"].find(1)
    assert "log.dirs does not name it" in away.condition.fault
    assert machine.storage.list_dir(A).count("t-1") == 0
    machine.restart(A)
    machine.restart(B, A)
    assert [one.log_end_offset for one in machine.cluster.topics["t"].led_here] == [1, 1]


def test_a_topic_that_is_deleted_while_a_folder_is_away_does_not_come_back(machine):
    machine.start(A, B).create_topic("t", 2)
    machine.lose(B)
    delete_topic(machine.start(A, B), "t")
    machine.restart(A, B)
    assert "t" not in machine.cluster.topics
    machine.storage.heal()
    machine.restart(A, B)
    assert "t" not in machine.cluster.topics
    assert "t-1" not in machine.storage.list_dir(B)


def test_a_crash_between_the_record_and_the_folders_is_corrected_in_the_same_folder(machine):
    machine.start(A, B).create_topic("t", 2)
    machine.logs.close()
    for name in machine.storage.list_dir(f"{B}/t-1"):
        machine.storage.remove(f"{B}/t-1/{name}")
    machine.storage.remove_dir(f"{B}/t-1")
    assert machine.start(A, B).topics["t"].find(1).condition.fault is None
    assert machine.places("t") == [A, B]


def test_without_any_folder_there_is_no_start(machine):
    machine.start(A, B)
    machine.lose("/disks")
    with pytest.raises(DataFolderError):
        machine.start(A, B)


def test_a_folder_in_which_nothing_can_be_made_is_passed_over_the_next_time(machine):
    cluster = machine.start(A, B)
    machine.storage.fail("make", f"{A}/t", times=ALL)
    assert [one.code.name for one in at_once(cluster.create_topics, [NewTopic("t", 1)])] == ["KAFKA_STORAGE_ERROR"]
    cluster.create_topic("t", 1)
    assert machine.places("t") == [B]
    machine.storage.heal()
    machine.wait()
    assert machine.logs.folders[0].fault is None


# Those of a Kafka


def test_a_partition_of_a_kafka_whose_folder_is_not_named_is_not_made_anew(machine):
    """Kafka's metadata says where it lies: made anew elsewhere, that Kafka would not start on the two folders again."""
    made = [one.topic_id for one in machine.start(A, B).create_topic("t", 2).led_here]
    records = kraft.topic("t", made[0], 2)
    for index, folder in enumerate((A, B)):
        records[-2 + index].directories = [parse_uuid(id_of(machine, folder))]
        append(machine.cluster.topics["t"].find(index))
    machine.logs.close()
    for folder in (A, B):
        machine.storage.remove(f"{folder}/{FILE_NAME}")
        machine.storage.remove(f"{folder}/{log_starts.LOG_STARTS}")
    machine.storage.make_dir(f"{A}/{kraft.FOLDER}")
    framed = kraft.log([kraft.frame(one, 1 if hasattr(one, "directories") else 0) for one in records])
    machine.storage.write_atomically(f"{A}/{kraft.FOLDER}/{0:020}.log", framed)
    for _ in range(2):  # known places are kept
        one, away = machine.start(A).topics["t"].led_here
        assert (one.log_end_offset, one.condition.fault) == (1, None)
        assert "log.dirs does not name it" in away.condition.fault
        assert "t-1" not in machine.storage.list_dir(A)
        machine.logs.close()
    assert [one.log_end_offset for one in machine.start(B, A).topics["t"].led_here] == [1, 1]
