"""A data folder: whose it is, which logs are opened in it, what comes and goes, and how it is left."""

import errno

import pytest

from horolog.broker.log.files import MetaProperties, checkpoints, meta_properties
from horolog.broker.log.manager import partition_of, whole
from horolog.broker.log.manager.data_folder import DataFolder
from horolog.broker.log.manager.identity import FolderUnusable
from horolog.broker.log.partition import Resources, log_start
from horolog.broker.log.storage import DataFolderError, StorageFault
from horolog.broker.log.storage.memory_disk import ALL
from tests.support.log_machine import CONFIG, TOPIC_ID, append
from tests.support.log_model import NOW_MS, small_config

# Whose folder it is


def test_a_new_folder_gets_a_name_of_its_own_that_stays(machine):
    first = machine.start()
    cluster_id = first.cluster_id
    assert len(cluster_id) == 22
    first.close()
    machine.storage.crash()
    assert machine.start().cluster_id == cluster_id


def test_a_folder_is_opened_once(machine):
    first = machine.start()
    with pytest.raises(DataFolderError, match="in use by another broker"):
        machine.manager()
    first.close()
    machine.start()


def test_a_folder_of_another_node_is_refused_and_left_unlocked(machine):
    machine.start().close()
    with pytest.raises(DataFolderError, match=r"node\.id=1.*node\.id=7"):
        machine.manager(**{"node.id": "7"})
    machine.start()


def test_what_a_broker_before_the_cluster_id_left_is_completed(machine):
    machine.start().close()
    meta_properties.save(machine.storage, "/srv/data", MetaProperties(0, 1), NOW_MS)
    cluster_id = machine.start().cluster_id
    again = meta_properties.load(machine.storage, "/srv/data")
    assert (again.version, again.node_id, again.cluster_id) == (0, 1, cluster_id)


def test_a_damaged_meta_file_is_told_with_its_name(machine):
    machine.start().close()
    machine.storage.create("/srv/data/meta.properties").pwritev([b"version=9\n"], 0)
    with pytest.raises(DataFolderError, match=r"meta\.properties"):
        machine.manager()


# Opened partitions


@pytest.mark.parametrize(
    ("name", "partition"),
    [
        ("a-0", ("a", 0)),
        ("a-b-12", ("a-b", 12)),
        ("__consumer_offsets-49", ("__consumer_offsets", 49)),
        ("__cluster_metadata-0", None),
        ("a-01", None),
        ("a-", None),
        ("-0", None),
        ("a", None),
        ("a-0.b71c-delete", None),
        ("a-0.b71c-future", None),
        ("ä-0", None),
        (".-0", None),
        ("a" * 250 + "-0", None),
    ],
)
def test_which_folders_are_partitions(name, partition):
    assert partition_of(name) == partition


def test_everything_comes_back_after_a_clean_stop(machine):
    logs = machine.start()
    for index in range(3):
        append(logs.create("t", index, CONFIG, TOPIC_ID))
    logs.close()
    machine.storage.crash()
    again = machine.start()
    assert sorted(again.partitions) == [("t", 0), ("t", 1), ("t", 2)]
    assert {one.topic_id for one in again.partitions.values()} == {TOPIC_ID}
    assert {(one.high_watermark, one.leader_epoch) for one in again.partitions.values()} == {(1, 0)}
    assert not machine.storage.exists(f"/srv/data/{checkpoints.CLEAN_SHUTDOWN}"), "it is no longer stopped"


def test_without_a_clean_stop_the_epoch_goes_up(machine):
    logs = machine.start()
    append(logs.create("t", 0, CONFIG, TOPIC_ID))
    logs.abandon()
    assert machine.start().partitions["t", 0].leader_epoch == 1


def test_a_new_partition_survives_a_power_cut_from_its_first_sync_on(machine):
    logs = machine.start()
    logs.create("t", 0, CONFIG, TOPIC_ID).sync()
    machine.storage.crash()
    again = machine.start()
    assert again.partitions["t", 0].topic_id == TOPIC_ID


@pytest.mark.parametrize("operation", ["make", "create", "write", "truncate"])
def test_a_partition_that_cannot_be_made_leaves_nothing_behind(machine, operation):
    logs = machine.start()
    machine.storage.fail(operation, "t-0")
    with pytest.raises(StorageFault):
        logs.create("t", 0, CONFIG, TOPIC_ID)
    assert ("t", 0) not in logs.partitions
    assert not machine.storage.exists("/srv/data/t-0")
    append(logs.create("t", 0, CONFIG, TOPIC_ID))


def test_a_partition_that_cannot_be_opened_is_offline_alone(machine):
    logs = machine.start()
    for index in range(2):
        append(logs.create("t", index, CONFIG, TOPIC_ID))
    logs.abandon()
    machine.storage.fail("read", "t-1/", times=ALL)
    again = machine.start()
    broken, good = again.partitions["t", 1], again.partitions["t", 0]
    assert "read" in broken.condition.fault
    with pytest.raises(StorageFault, match="offline"):
        append(broken)
    append(good)
    again.apply_retention(NOW_MS)
    again.close()
    machine.storage.heal()
    healed = machine.start()
    assert healed.partitions["t", 1].condition.fault is None
    assert healed.partitions["t", 1].high_watermark == 1


def wait_for_disks(machine, logs, seconds=700):
    """Let time pass, and have done what comes up; the partitions that were opened again."""
    reopened = []
    for _ in range(seconds):
        back, jobs = logs.retry_stopped()
        reopened += back
        for job in jobs:
            job()
        machine.clock.advance(1_000)
    return reopened


def test_an_offline_partition_is_back_when_its_disk_is(machine):
    logs = machine.start()
    for index in range(2):
        logs.create("t", index, CONFIG, TOPIC_ID)
        for _ in range(3):
            append(logs.partitions["t", index])
    logs.partitions["t", 1].sync()
    log_start.delete_records_before(logs.partitions["t", 1], 2)
    logs.checkpoint_job()()
    epoch = logs.partitions["t", 1].leader_epoch
    logs.abandon()
    machine.storage.fail("read", "t-1/", times=ALL)
    again = machine.start()
    partition = again.partitions["t", 1]
    assert wait_for_disks(machine, again) == []
    again.checkpoint_job()()
    assert partition.condition.fault
    machine.storage.heal()
    assert wait_for_disks(machine, again) == [partition]
    assert partition.condition.takes_appends
    assert (partition.log_start_offset, partition.high_watermark) == (2, 3)
    assert partition.leader_epoch > epoch, "clients can tell that something has happened"
    append(partition)
    partition.sync()
    machine.storage.crash()
    assert machine.start().partitions["t", 1].high_watermark == 4


def test_where_an_offline_partition_starts_is_not_forgotten(machine):
    logs = machine.start()
    partition = logs.create("t", 0, CONFIG, TOPIC_ID)
    for _ in range(3):
        append(partition)
    partition.sync()
    log_start.delete_records_before(partition, 2)
    logs.checkpoint_job()()
    logs.abandon()
    machine.storage.fail("read", "t-0/", times=ALL)
    again = machine.start()
    append(again.create("other", 0, CONFIG, None))
    again.checkpoint_job()()
    again.close()
    machine.storage.heal()
    assert machine.start().partitions["t", 0].log_start_offset == 2


def test_records_that_nothing_has_any_more_are_gone_and_the_rest_goes_on(machine):
    """The cache has given up what a sync failed to write: opened again, the log ends where it was synced."""
    logs = machine.start()
    partition = logs.create("t", 0, CONFIG, TOPIC_ID)
    for _ in range(3):
        append(partition)
    partition.sync()
    for _ in range(2):
        append(partition)
    machine.storage.fail("sync", ".log", evicting=True)
    with pytest.raises(StorageFault):
        partition.sync()
    assert wait_for_disks(machine, logs) == [partition]
    assert (partition.condition.takes_appends, partition.high_watermark) == (True, 3)
    append(partition)
    partition.sync()
    machine.storage.crash()
    assert machine.start().partitions["t", 0].high_watermark == 4


def test_foreign_names_are_left_alone(machine):
    machine.start().close()
    for name in ("notes", "t-x", "lost+found"):
        machine.storage.make_dir(f"/srv/data/{name}")
    machine.storage.create("/srv/data/file-0")
    logs = machine.start()
    assert logs.partitions == {}
    for job in logs.removal_jobs(NOW_MS):
        job()
    assert {"notes", "t-x", "lost+found", "file-0"} <= set(machine.storage.list_dir("/srv/data"))


# Deletion and retention


def test_a_deleted_partition_is_gone_at_once_and_its_files_later(machine):
    logs = machine.start()
    config = small_config(file_delete_delay_ms=5000)
    append(logs.create("t", 0, config, TOPIC_ID))
    logs.delete(logs.partitions["t", 0])
    assert logs.partitions == {}
    (aside,) = [name for name in machine.storage.list_dir("/srv/data") if name.startswith("t-0.")]
    assert aside.endswith("-delete")
    machine.storage.crash()
    assert machine.storage.is_dir(f"/srv/data/{aside}")
    assert not machine.storage.exists("/srv/data/t-0")
    assert logs.removal_jobs(NOW_MS + 4999) == []
    for job in logs.removal_jobs(NOW_MS + 5000):
        job()
    assert not machine.storage.exists(f"/srv/data/{aside}")


def test_a_partition_that_was_renamed_is_gone_although_the_folder_cannot_be_synced(machine):
    logs = machine.start()
    append(logs.create("t", 0, small_config(file_delete_delay_ms=5000), TOPIC_ID))
    machine.storage.fail("sync_dir", "/srv/data")
    with pytest.raises(StorageFault):
        logs.delete(logs.partitions["t", 0])
    assert logs.partitions == {}
    for job in logs.removal_jobs(NOW_MS + 5000):
        job()
    assert not [name for name in machine.storage.list_dir("/srv/data") if name.startswith("t-0")]
    assert logs.create("t", 0, CONFIG, TOPIC_ID).log_end_offset == 0


def test_a_deleted_partition_that_could_not_be_renamed_makes_room_for_the_next_of_its_name(machine):
    logs = machine.start()
    append(logs.create("t", 0, CONFIG, TOPIC_ID))
    machine.storage.fail("rename", "t-0", times=2)
    with pytest.raises(StorageFault):
        logs.delete(logs.partitions["t", 0])
    with pytest.raises(StorageFault):
        logs.create("t", 0, CONFIG, TOPIC_ID)
    assert logs.create("t", 0, CONFIG, TOPIC_ID).log_end_offset == 0


def test_a_new_partition_does_not_replace_a_folder_that_is_already_there(machine):
    logs = machine.start()
    machine.storage.make_dir("/srv/data/t-0")
    machine.storage.write_atomically("/srv/data/t-0/00000000000000000000.log", b"precious")
    with pytest.raises(StorageFault, match="/srv/data/t-0 already exists"):
        logs.create("t", 0, CONFIG, TOPIC_ID)
    assert machine.storage.read_all("/srv/data/t-0/00000000000000000000.log") == b"precious"
    assert logs.folders[0].fault is None
    assert logs.create("t", 1, CONFIG, TOPIC_ID).log_end_offset == 0


def test_what_a_deletion_left_is_removed_after_a_restart(machine):
    logs = machine.start()
    append(logs.create("t", 0, CONFIG, TOPIC_ID))
    logs.delete(logs.partitions["t", 0])
    logs.abandon()
    again = machine.start()
    assert again.partitions == {}
    for job in again.removal_jobs(NOW_MS):
        job()
    assert not [name for name in machine.storage.list_dir("/srv/data") if name.endswith("-delete")]


def test_retention_says_whose_start_has_moved(machine):
    logs = machine.start()
    config = small_config(retention_ms=1000)
    old, fresh = (logs.create("t", index, config, TOPIC_ID) for index in range(2))
    append(old, 5)
    append(fresh, NOW_MS)
    assert logs.apply_retention(NOW_MS) == [old]
    assert old.log_start_offset == 1


# Checkpoints and periodic work


def test_a_damaged_start_that_cannot_be_written_again_is_still_told(machine):
    logs = machine.start()
    partition = logs.create("t", 0, CONFIG, TOPIC_ID)
    for _ in range(5):
        append(partition)
    log_start.delete_records_before(partition, 3)
    logs.write_log_starts()
    logs.abandon()
    path = f"/srv/data/{checkpoints.LOG_START_OFFSETS}"
    machine.storage.corrupt(path, machine.storage.read_all(path).index(b"t"), 1)
    machine.storage.fail("rename", checkpoints.LOG_START_OFFSETS, times=ALL)
    logs = machine.start()
    assert logs.partitions["t", 0].log_start_offset == 3
    log_start.delete_records_before(logs.partitions["t", 0], 4)
    assert logs.write_log_starts() == {("t", 0)}
    machine.storage.crash()
    assert machine.start().partitions["t", 0].log_start_offset == 3


@pytest.mark.parametrize("name", [checkpoints.RECOVERY_POINTS, checkpoints.HIGH_WATERMARKS])
@pytest.mark.parametrize("is_damaged", [False, True])
def test_an_end_that_one_file_alone_tells_is_not_believed(machine, name, is_damaged):
    folder = opened(machine)
    folder.create("t", 0, CONFIG, TOPIC_ID, Resources(machine.storage))
    folder.close(cleanly=True)
    written = b"nonsense" if is_damaged else checkpoints.encode_offsets({("t", 0): 4})
    machine.storage.write_atomically(f"/data/{name}", written)
    partition = opened(machine).partitions["t", 0]
    assert (partition.log_start_offset, partition.high_watermark) == (0, 0)


def test_partitions_are_synced_when_it_is_time(machine):
    logs = machine.start()
    config = small_config(flush_ms=100)
    partitions = [logs.create("t", index, config, TOPIC_ID) for index in range(2)]
    append(partitions[1])
    assert logs.partitions_to_sync(NOW_MS + 99) == []
    assert logs.partitions_to_sync(NOW_MS + 100) == [partitions[1]]


# The end


def test_a_stop_that_fails_is_not_on_record_as_clean(machine):
    logs = machine.start()
    append(logs.create("t", 0, CONFIG, TOPIC_ID))
    machine.storage.fail("sync", "t-0/")
    logs.close()
    assert not machine.storage.exists(f"/srv/data/{checkpoints.CLEAN_SHUTDOWN}")
    machine.start()


def test_the_mark_of_a_clean_stop_is_the_last_thing_written(machine):
    logs = machine.start()
    append(logs.create("t", 0, CONFIG, TOPIC_ID))
    written = []
    real, real_create = machine.storage.write_atomically, machine.storage.create

    def watched(path, data, **more):
        written.append(path.rpartition("/")[2])
        real(path, data, **more)

    def created(path):
        written.append(path.rpartition("/")[2])
        return real_create(path)

    machine.storage.write_atomically, machine.storage.create = watched, created
    logs.close()
    assert [*dict.fromkeys(name.removesuffix(".tmp") for name in written)][-1] == checkpoints.CLEAN_SHUTDOWN
    assert "horolog-seals" in written[:-1]
    assert checkpoints.RECOVERY_POINTS in written[:-1]


def test_room_on_the_disk_is_told(machine):
    total, usable = machine.start().folders[0].disk_space()
    assert 0 < usable <= total


@pytest.mark.parametrize("restarts", [False, True])
def test_the_start_of_a_deleted_partition_is_not_that_of_the_next_of_its_name(machine, restarts):
    logs = machine.start()
    partition = logs.create("t", 0, CONFIG, TOPIC_ID)
    for _ in range(3):
        append(partition)
    log_start.delete_records_before(partition, 2)
    logs.write_log_starts()
    if restarts:
        logs.close()
        logs = machine.start()
    logs.delete(logs.partitions["t", 0])
    again = logs.create("t", 0, CONFIG, bytes(16))
    for _ in range(3):
        append(again)
    again.sync()
    machine.storage.crash()
    assert machine.start().partitions["t", 0].log_start_offset == 0


def test_a_partition_whose_maker_was_killed_survives_a_power_cut_once_it_has_been_synced(machine):
    """Its folder is there for all who look, and not on the disk."""
    append(machine.start().create("t", 0, CONFIG, TOPIC_ID))
    machine.storage.die()
    partition = machine.start().partitions["t", 0]
    append(partition)
    partition.sync()
    machine.storage.crash()
    assert machine.start().partitions["t", 0].high_watermark == 2


def test_a_log_whose_start_was_moved_never_ends_before_it(machine):
    logs = machine.start()
    partition = logs.create("t", 0, CONFIG, TOPIC_ID)
    for _ in range(3):
        append(partition)
    log_start.delete_records_before(partition, 3)
    logs.write_log_starts()
    machine.storage.crash()
    partition = machine.start().partitions["t", 0]
    assert (partition.log_start_offset, partition.high_watermark) == (3, 3)


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_start_is_not_forgotten_before_the_segments_behind_it_are_gone_for_good(machine, is_killed):
    """Retention has taken them out; until the folder is synced a power cut brings them back."""
    logs = machine.start()
    partition = logs.create("t", 0, CONFIG, TOPIC_ID)
    while len(partition.segments) < 3:
        append(partition)
    partition.sync()
    start_offset = partition.segments[1].base_offset
    log_start.delete_records_before(partition, start_offset)
    logs.write_log_starts()
    log_start.apply_retention(partition, NOW_MS)
    assert partition.segments[0].base_offset == start_offset
    if is_killed:
        machine.storage.die()
        logs = machine.start()
    logs.checkpoint_job()()
    machine.storage.crash()
    partition = machine.start().partitions["t", 0]
    assert partition.log_start_offset == start_offset


def test_checkpoints_that_a_worker_writes_late_do_not_undo_newer_ones(machine):
    logs = machine.start()
    partition = logs.create("t", 0, CONFIG, TOPIC_ID)
    for _ in range(3):
        append(partition)
    late = logs.checkpoint_job()
    log_start.delete_records_before(partition, 2)
    logs.write_log_starts()
    late()
    machine.storage.crash()
    assert machine.start().partitions["t", 0].log_start_offset == 2


def test_the_first_records_of_a_partition_that_was_left_empty_survive_a_power_cut(machine):
    """A clean stop leaves an empty partition's folder to the page cache."""
    logs = machine.start()
    logs.create("t", 0, CONFIG, TOPIC_ID)
    logs.close()
    partition = machine.start().partitions["t", 0]
    append(partition)
    partition.sync()
    machine.storage.crash()
    assert machine.start().partitions["t", 0].high_watermark == 1


@pytest.mark.parametrize("was_left_empty", [False, True])
def test_the_id_of_a_partition_whose_maker_was_killed_after_a_roll_survives_a_power_cut(machine, was_left_empty):
    """More than one segment says nothing about a sync: only a seal of data does."""
    logs = machine.start()
    partition = logs.create("t", 0, CONFIG, TOPIC_ID)
    if was_left_empty:
        logs.close()
        partition = machine.start().partitions["t", 0]
    while len(partition.segments) < 2:
        append(partition)
    machine.storage.die()
    machine.start().partitions["t", 0].sync()
    machine.storage.crash()
    again = machine.start().partitions["t", 0]
    assert (again.topic_id, again.high_watermark) == (TOPIC_ID, partition.high_watermark)


# One folder by itself


class TestClaiming:
    def test_the_folder_is_made_with_those_above_it_and_stays(self, machine):
        folder = claimed(machine, "/new/one/data")
        assert folder.is_claimed
        machine.storage.crash()
        assert machine.storage.is_dir("/new/one/data")

    def test_nothing_is_made_where_nothing_may_be_written(self, machine):
        with pytest.raises(FolderUnusable, match=r"horolog\.read\.only"):
            DataFolder("/new", machine.storage, machine.clock, whole(1), may_make=False).claim(1)

    @pytest.mark.parametrize("operation", ["make", "sync_dir"])
    def test_one_that_cannot_be_made_is_unusable(self, machine, operation):
        machine.storage.fail(operation)
        with pytest.raises(FolderUnusable, match="cannot be created"):
            claimed(machine)

    def test_one_that_cannot_be_written_says_how_it_can_be_served(self, machine):
        machine.storage.make_dir("/data")
        machine.storage.unwritable["/data"] = errno.EROFS
        with pytest.raises(FolderUnusable, match=r"horolog\.read\.only=true"):
            claimed(machine)

    def test_one_whose_owner_cannot_be_read_is_left_unlocked(self, machine):
        claimed(machine).release()
        machine.storage.fail("read", "meta.properties")
        with pytest.raises(FolderUnusable, match="cannot be used"):
            claimed(machine)
        assert claimed(machine).is_claimed


class TestLeaving:
    def test_its_partitions_are_let_go_of_and_others_may_have_it(self, machine):
        folder = opened(machine)
        folder.create("t", 0, CONFIG, TOPIC_ID, Resources(machine.storage))
        folder.leave("no disk")
        assert (folder.partitions, folder.is_claimed, folder.fault) == ({}, False, "no disk")
        assert repr(folder) == "<DataFolder /data: 0 partitions, not usable: no disk>"
        folder.leave("still no disk")
        assert opened(machine).partitions["t", 0].topic_id == TOPIC_ID

    def test_one_that_was_never_opened_has_nothing_to_write(self, machine):
        folder = claimed(machine)
        machine.storage.fail("create", times=ALL)
        folder.close(cleanly=True)
        assert not folder.is_claimed

    def test_checkpoints_that_cannot_be_written_make_the_stop_a_crash(self, machine, caplog):
        folder = opened(machine)
        folder.create("t", 0, CONFIG, TOPIC_ID, Resources(machine.storage))
        machine.storage.fail("create", "checkpoint")
        folder.close(cleanly=True)
        assert "could not record that the stop was clean" in caplog.text
        assert not machine.storage.exists(f"/data/{checkpoints.CLEAN_SHUTDOWN}")


class TestComingBack:
    def test_it_says_where_logs_start_and_removes_what_was_deleted(self, machine):
        folder = opened(machine)
        partition = folder.create("t", 0, CONFIG, TOPIC_ID, Resources(machine.storage))
        for _ in range(3):
            append(partition)
        log_start.delete_records_before(partition, 2)
        folder.checkpoints.write_starts()
        folder.leave("no disk")
        machine.storage.make_dir("/data/u-0.0-delete")
        folder.claim(1)
        assert folder.come_back() == {("t", 0): 2}
        assert folder.fault is None
        for job in folder.removal_jobs(NOW_MS):
            job()
        assert not machine.storage.exists("/data/u-0.0-delete")
        assert folder.holds(("t", 0))
        assert not folder.holds(("u", 0))


class TestLookingWhetherItWorks:
    def test_a_folder_that_cannot_be_written_has_a_fault_until_it_can(self, machine, caplog):
        folder = opened(machine)
        folder.create("t", 0, CONFIG, TOPIC_ID, Resources(machine.storage))
        machine.storage.fail("write", times=ALL)
        folder.check()
        folder.check()
        assert folder.fault
        assert caplog.text.count("cannot be used") == 1
        machine.storage.heal()
        folder.check()
        assert folder.fault is None
        folder.check()
        assert checkpoints.load_offsets(machine.storage, f"/data/{checkpoints.RECOVERY_POINTS}").offsets == {
            ("t", 0): 0
        }

    def test_partitions_that_take_no_appends_wait_for_it(self, machine):
        folder = opened(machine)
        folder.create("t", 0, CONFIG, TOPIC_ID, Resources(machine.storage))
        assert not folder.has_waiting_partitions()
        offline = folder.unmade("t", 1, CONFIG, TOPIC_ID, "none can be made", Resources(machine.storage))
        assert folder.partitions["t", 1] is offline
        assert "none can be made" in offline.condition.fault
        assert folder.has_waiting_partitions()


def test_a_partition_that_could_not_be_made_has_its_folder_once_it_can(machine):
    folder, resources = opened(machine), Resources(machine.storage)
    partition = folder.unmade("t", 0, CONFIG, TOPIC_ID, "none can be made", resources)
    machine.storage.fail("make", "t-0")
    with pytest.raises(StorageFault):
        folder.make_at_last(partition, resources)
    folder.make_at_last(partition, resources)
    folder.make_at_last(partition, resources)
    assert checkpoints.load_topic_id(machine.storage, partition.directory) == TOPIC_ID
    assert folder.partitions == {("t", 0): partition}


def test_what_a_failed_attempt_has_left_may_be_there_still(machine, caplog):
    """It is out of the way of the next attempt, or the next attempt fails, too; nothing else is harmed."""
    folder = opened(machine)
    machine.storage.fail("create", "t-0/", times=ALL)
    machine.storage.fail("remove", "t-0", times=ALL)
    with pytest.raises(StorageFault):
        folder.create("t", 0, CONFIG, TOPIC_ID, Resources(machine.storage))
    assert "cannot be removed" in caplog.text
    assert folder.partitions == {}


def test_a_compacted_partition_that_is_deleted_takes_its_checkpoint_along(machine):
    folder = opened(machine)
    config = small_config(compact=True, delete=False)
    partition = folder.create("t", 0, config, TOPIC_ID, Resources(machine.storage))
    path = f"/data/{checkpoints.CLEANER_OFFSETS}"
    checkpoints.save_offsets(machine.storage, path, {("t", 0): 5, ("u", 0): 6})
    folder.delete(partition)
    assert checkpoints.load_offsets(machine.storage, path).offsets == {("u", 0): 6}


def test_a_damaged_checkpoint_costs_a_warning_and_no_record(machine, caplog):
    folder = opened(machine)
    partition = folder.create("t", 0, CONFIG, TOPIC_ID, Resources(machine.storage))
    append(partition)
    partition.sync()
    folder.close(cleanly=True)
    machine.storage.write_atomically(f"/data/{checkpoints.RECOVERY_POINTS}", b"nonsense")
    assert opened(machine).partitions["t", 0].high_watermark == 1
    assert "the ends of its partitions are unknown" in caplog.text


def claimed(machine, path="/data"):
    folder = DataFolder(path, machine.storage, machine.clock, whole(1))
    folder.claim(1)
    return folder


def opened(machine):
    folder = claimed(machine)
    folder.open(lambda _: CONFIG, Resources(machine.storage))
    return folder
