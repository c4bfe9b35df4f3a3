"""The checkpoints of a folder that several workers serve: each writes its own, and reads all of them."""

import pytest

from horolog.base.clock import ManualClock
from horolog.broker.cluster import worker_checkpoints
from horolog.broker.cluster.worker_checkpoints import NO_ID, UNKNOWN, PartitionRow, WorkerCheckpoint
from horolog.broker.cluster.worker_folder_checkpoints import share_of
from horolog.broker.config.settings import Settings
from horolog.broker.log.files import checkpoints, log_starts
from horolog.broker.log.manager import LogManager, Mine
from horolog.broker.log.partition import log_start
from horolog.broker.log.storage import DataFolderError, MemoryStorage, StorageFault
from tests.support.log_model import NEW, NOW_MS, encode, small_config

T = b"t" * 16


class Worker:
    def __init__(self, storage, node, mine):
        self.storage = storage
        self.logs = LogManager(
            ["/data"], storage, ManualClock(NOW_MS), Settings(), share_of(node, 1, is_first=node == 1)
        )
        self.logs.share.find = lambda *key: mine.get(key)

    @property
    def checkpoints(self):
        return self.logs.folders[0].checkpoints

    def open(self):
        self.logs.open(lambda _: small_config())
        return self

    def written(self):
        node = self.logs.share.node
        return worker_checkpoints.load(self.storage, f"/data/horolog-checkpoint.{node}")


@pytest.fixture
def storage():
    storage = MemoryStorage()
    storage.make_dir("/data")
    return storage


def mine(*indexes, topic_id=T, is_settled=True):
    return {("t", index): Mine(topic_id, is_settled) for index in indexes}


def append(partition, count=3):
    for _ in range(count):
        partition.append(encode(2, 0, [5], [b"v"]), NOW_MS, produce_version=NEW)
    partition.flush()
    partition.sync()


def begins_at_2(worker):
    """A partition whose first records were deleted, which is on record."""
    partition = worker.logs.create("t", 0, small_config(), T)
    append(partition)
    log_start.delete_records_before(partition, 2)
    assert worker.logs.write_log_starts() == set()
    return partition


def test_each_worker_opens_its_own_partitions_and_writes_its_own_file(storage):
    one, two = Worker(storage, 1, mine(0)).open(), Worker(storage, 2, mine(1)).open()
    for worker, index in ((one, 0), (two, 1)):
        append(worker.logs.create("t", index, small_config(), T))
        worker.logs.checkpoint_job()()
    assert one.written().rows == {("t", 0): PartitionRow(T, 3, 3, 0)}
    assert two.written() == WorkerCheckpoint({("t", 1): PartitionRow(T, 3, 3, 0)}, has_stopped=False)
    one.logs.close()
    assert one.written().has_stopped
    again = Worker(storage, 1, mine(0)).open()
    assert set(again.logs.partitions) == {("t", 0)}
    assert again.logs.partitions["t", 0].leader_epoch == 0
    assert not again.written().has_stopped
    again.logs.abandon()
    crashed = Worker(storage, 1, mine(0)).open()
    assert crashed.logs.partitions["t", 0].leader_epoch == 1


def test_deleted_records_stay_deleted(storage):
    worker = Worker(storage, 1, mine(0)).open()
    begins_at_2(worker)
    worker.logs.abandon()
    assert Worker(storage, 1, mine(0)).open().logs.partitions["t", 0].log_start_offset == 2
    assert Worker(storage, 1, mine(0, topic_id=b"x" * 16)).open().logs.partitions["t", 0].log_start_offset == 0


def test_deleted_records_stay_deleted_where_one_worker_has_stopped_by_itself(storage):
    worker = Worker(storage, 1, mine(0)).open()
    partition = worker.logs.create("t", 0, small_config(), T)
    append(partition)
    log_start.delete_records_before(partition, 2)
    worker.logs.close()
    for _ in range(2):
        again = Worker(storage, 1, mine(0)).open()
        assert again.logs.partitions["t", 0].log_start_offset == 2
        again.logs.abandon()


def test_a_successor_goes_on_saying_what_was_handed_over(storage):
    one, two = Worker(storage, 1, mine(0)).open(), Worker(storage, 2, mine(0)).open()
    one.logs.forget(begins_at_2(one))
    one.logs.abandon()
    assert two.logs.take_over("t", 0, small_config(), T, None, was_clean=True).log_start_offset == 2
    successor = Worker(storage, 1, {}).open()
    successor.logs.checkpoint_job()()
    two.logs.abandon()
    assert Worker(storage, 2, mine(0)).open().logs.partitions["t", 0].log_start_offset == 2


@pytest.mark.parametrize("is_settled", [False, True])
def test_kafkas_files_speak_of_what_was_there_when_they_were_written(storage, is_settled):
    checkpoints.save_offsets(storage, "/data/log-start-offset-checkpoint", {("t", 0): 2, ("t", 1): 5})
    checkpoints.save_offsets(storage, "/data/recovery-point-offset-checkpoint", {("t", 0): 3})
    found = Worker(storage, 1, mine(0, is_settled=is_settled)).checkpoints
    assert found.load_starts().offsets == ({("t", 0): 2} if is_settled else {})
    assert found.load_ends().offsets == ({("t", 0): 3} if is_settled else {})


def test_what_the_others_say_counts_as_well(storage, caplog):
    checkpoints.save_offsets(storage, "/data/log-start-offset-checkpoint", {("t", 0): 2})
    checkpoints.save_offsets(storage, "/data/recovery-point-offset-checkpoint", {("t", 0): 3})
    rows = {("t", 0): PartitionRow(T, 9, 9, 4), ("t", 1): PartitionRow(NO_ID, UNKNOWN, 0, 7)}
    data = worker_checkpoints.encode(WorkerCheckpoint(rows, has_stopped=False))
    storage.write_atomically("/data/horolog-checkpoint.2", data)
    storage.write_atomically("/data/horolog-checkpoint.3", b"damaged")
    found = Worker(storage, 1, mine(0, 1)).checkpoints
    assert found.load_starts().offsets == {("t", 0): 4, ("t", 1): 7}
    assert found.load_ends().offsets == {("t", 0): 9}
    assert "horolog-checkpoint.3: the checksum does not match; its content is ignored" in caplog.text


def test_a_damaged_file_of_kafka_is_for_the_next_merge(storage):
    storage.write_atomically("/data/log-start-offset-checkpoint", b"damaged")
    assert Worker(storage, 1, mine(0)).checkpoints.load_starts() == log_starts.LoadedStarts({})


@pytest.mark.parametrize(("operation", "path"), [("list", "/data"), ("read", "horolog-checkpoint.1")])
def test_what_cannot_be_read_is_not_taken_for_nothing(storage, operation, path):
    worker = Worker(storage, 1, mine(0)).open()
    begins_at_2(worker)
    worker.logs.abandon()
    storage.fail(operation, path)
    with pytest.raises(DataFolderError, match="/data cannot be used"):
        Worker(storage, 1, mine(0)).open()
    assert Worker(storage, 1, mine(0)).open().logs.partitions["t", 0].log_start_offset == 2


def test_what_others_lead_is_not_forgotten_when_a_file_cannot_be_read(storage):
    worker = Worker(storage, 1, mine(0)).open()
    append(worker.logs.create("t", 0, small_config(), T))
    worker.logs.checkpoint_job()()
    worker.logs.abandon()
    storage.fail("read", "horolog-checkpoint.1")
    with pytest.raises(StorageFault):
        Worker(storage, 1, {}).checkpoints.take_clean_shutdown()


def test_a_partition_is_offline_while_its_start_cannot_be_read(storage, caplog):
    one, two = Worker(storage, 1, mine(0)).open(), Worker(storage, 2, mine(0)).open()
    one.logs.forget(begins_at_2(one))
    for worker in (two, one):
        storage.fail("read", "horolog-checkpoint.1")
        taken = worker.logs.take_over("t", 0, small_config(), T, None, was_clean=True)
        assert taken.condition.fault is not None
        assert "t-0 is offline: where it starts cannot be read" in caplog.text
        worker.logs.checkpoint_job()()
    assert one.written().rows["t", 0].log_start == 2
    assert one.logs.open_again(taken)
    assert (taken.log_start_offset, taken.log_end_offset) == (2, 3)
    one.logs.checkpoint_job()()
    assert one.written().rows["t", 0].log_start == 2


def test_settling_leaves_a_mark_for_each(storage):
    storage.create("/data/.kafka_cleanshutdown.2")
    assert Worker(storage, 2, mine()).checkpoints.take_clean_shutdown()
    assert not Worker(storage, 2, mine()).checkpoints.take_clean_shutdown()
    assert not Worker(storage, 1, mine()).checkpoints.take_clean_shutdown()


def test_a_mark_that_cannot_be_removed_is_not_believed(storage, caplog):
    storage.create("/data/.kafka_cleanshutdown.2")
    storage.fail("remove", ".kafka_cleanshutdown.2")
    assert not Worker(storage, 2, mine()).checkpoints.take_clean_shutdown()
    assert "is treated as a crash" in caplog.text


def test_what_was_handed_over_is_said_until_it_comes_back(storage):
    one, two = Worker(storage, 1, mine(0)).open(), Worker(storage, 2, mine(0)).open()
    partition = one.logs.create("t", 0, small_config(), T)
    append(partition)
    log_start.delete_records_before(partition, 1)
    one.logs.forget(partition)
    one.logs.checkpoint_job()()
    assert one.written().rows == {("t", 0): PartitionRow(T, 3, 3, 1)}
    taken = two.logs.take_over("t", 0, small_config(), T, None, was_clean=True)
    assert (taken.log_start_offset, taken.log_end_offset) == (1, 3)
    two.logs.forget(taken)
    one.logs.take_over("t", 0, small_config(), T, None, was_clean=True)
    one.logs.checkpoint_job()()
    assert set(one.written().rows) == {("t", 0)}
    assert one.logs.take_over("t", 5, small_config(), T, None, was_clean=True).log_end_offset == 0


def test_a_new_topic_asks_nothing_of_the_file_of_the_old_one(storage):
    worker = Worker(storage, 1, mine(0)).open()
    partition = worker.logs.create("t", 0, small_config(), T)
    append(partition)
    log_start.delete_records_before(partition, 2)
    worker.logs.write_log_starts()
    worker.logs.delete(partition)
    worker.logs.create("t", 0, small_config(), b"x" * 16)
    assert worker.written().rows["t", 0].topic_id == T


def test_compaction_has_a_file_of_its_own(storage):
    worker = Worker(storage, 2, mine(0)).open()
    partition = worker.logs.create("t", 0, small_config(compact=True), T)
    checkpoints.save_offsets(storage, "/data/cleaner-offset-checkpoint.2", {("t", 0): 2})
    worker.logs.delete(partition)
    assert checkpoints.load_offsets(storage, "/data/cleaner-offset-checkpoint.2").offsets == {}


def test_an_offline_partition_is_said_to_start_where_it_did(storage):
    worker = Worker(storage, 1, mine(0)).open()
    partition = worker.logs.create("t", 0, small_config(), T)
    partition.log_start_offset = 4
    partition.condition.go_offline("bad sector")
    worker.logs.checkpoint_job()()
    assert worker.written().rows == {("t", 0): PartitionRow(T, UNKNOWN, 0, 4)}


def test_only_the_first_removes_what_was_deleted_before(storage):
    storage.make_dir("/data/t-0.aaaa-delete")
    assert Worker(storage, 2, {}).open().logs.removal_jobs(NOW_MS) == []
    assert len(Worker(storage, 1, {}).open().logs.removal_jobs(NOW_MS)) == 1


def test_workers_look_whether_a_folder_can_be_written_without_meeting(storage):
    worker = Worker(storage, 2, {}).open()
    worker.logs.folders[0].check()
    assert worker.logs.folders[0].fault is None
    storage.fail("write", ".horolog-probe.2")
    worker.logs.folders[0].check()
    assert worker.logs.folders[0].fault is not None


def test_a_workers_own_damaged_file_is_kept_for_the_owner(storage):
    storage.write_atomically("/data/horolog-checkpoint.1", b"damaged")
    worker = Worker(storage, 1, mine(0)).open()
    worker.logs.checkpoint_job()()
    assert storage.read_all("/data/horolog-checkpoint.damaged") == b"damaged"
    assert worker_checkpoints.load(storage, "/data/horolog-checkpoint.1") is not None
    worker.logs.abandon()
