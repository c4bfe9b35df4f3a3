"""The checkpoints of a data folder: they say where partitions start and end, and never go back."""

from types import SimpleNamespace

import pytest

from horolog.broker.log.files import checkpoints, log_starts
from horolog.broker.log.manager.folder_checkpoints import FolderCheckpoints
from horolog.broker.log.partition import Condition
from horolog.broker.log.storage import MemoryStorage, StorageFault
from horolog.broker.log.storage.memory_disk import ALL

T0, T1 = ("t", 0), ("t", 1)


class Log:
    """What checkpoints ask of a partition."""

    def __init__(self, end=10, *, start=0, synced=None, fault=None):
        self.topic, self.index = T0
        self.high_watermark = end
        self.log_start_offset = start
        self.sync_state = SimpleNamespace(recovery_point=end if synced is None else synced, names_are_unsynced=False)
        self.segments = [SimpleNamespace(base_offset=0, progress=None, note_progress=self._note)]
        self.condition = Condition("t-0")
        if fault is not None:
            self.condition.go_offline(fault)
        self.noted = 0

    def _note(self):
        self.noted += 1
        return False

    def sync(self):
        self.sync_state.recovery_point = self.high_watermark


@pytest.fixture
def storage():
    storage = MemoryStorage()
    storage.make_dir("/data")
    storage.sync_dir("/")
    return storage


@pytest.fixture
def partitions():
    return {}


@pytest.fixture
def files(storage, partitions):
    return FolderCheckpoints("/data", storage, partitions)


def offsets(storage, name):
    return checkpoints.load_offsets(storage, f"/data/{name}").offsets


class TestWriting:
    def test_each_file_says_its_own(self, storage, partitions, files):
        partitions.update({T0: Log(10, start=3, synced=7), T1: Log(5)})
        files.write_all()
        storage.crash()
        assert offsets(storage, checkpoints.RECOVERY_POINTS) == {T0: 7, T1: 5}
        assert offsets(storage, checkpoints.HIGH_WATERMARKS) == {T0: 10, T1: 5}
        assert offsets(storage, checkpoints.LOG_START_OFFSETS) == {T0: 3}
        assert log_starts.load(storage, "/data").offsets == {T0: 3}
        assert partitions[T0].noted == 1

    def test_of_an_offline_partition_only_the_start_is_known(self, storage, partitions, files):
        partitions[T0] = Log(10, start=3, fault="no disk")
        files.write_all()
        assert offsets(storage, checkpoints.RECOVERY_POINTS) == {}
        assert offsets(storage, checkpoints.LOG_START_OFFSETS) == {T0: 3}

    def test_what_has_not_changed_is_not_written(self, storage, partitions, files):
        partitions[T0] = Log()
        files.write_all()
        storage.fail("create", times=ALL)
        files.write_all()
        assert repr(files) == "<FolderCheckpoints of /data: written 2 times>"

    def test_a_late_worker_does_not_undo_what_is_newer(self, storage, partitions, files):
        partitions[T0] = Log(10)
        late = files.job()
        partitions[T0].high_watermark = 20
        files.write_all()
        late()
        assert offsets(storage, checkpoints.HIGH_WATERMARKS) == {T0: 20}

    def test_what_could_not_be_written_is_written_the_next_time(self, storage, partitions, files):
        partitions[T0] = Log(10)
        storage.fail("create", checkpoints.HIGH_WATERMARKS)
        with pytest.raises(StorageFault):
            files.write_all()
        files.write_all()
        assert offsets(storage, checkpoints.HIGH_WATERMARKS) == {T0: 10}


class TestStarts:
    def test_a_log_never_ends_before_its_start(self, storage, partitions, files):
        """It is synced first: after a power cut the start is not above the end."""
        partitions.update({T0: Log(10, start=8, synced=5), T1: Log(10, start=4, synced=6)})
        files.write_starts()
        assert tuple(one.sync_state.recovery_point for one in partitions.values()) == (10, 6)
        assert offsets(storage, checkpoints.LOG_START_OFFSETS) == {T0: 8, T1: 4}

    def test_an_offline_partition_is_not_asked_to_sync(self, partitions, files):
        partitions[T0] = Log(10, start=8, synced=5, fault="no disk")
        files.write_starts()
        assert partitions[T0].sync_state.recovery_point == 5

    def test_a_new_partition_does_not_start_where_the_last_of_its_name_did(self, storage, partitions, files):
        partitions[T0] = Log(10, start=3)
        files.write_starts()
        del partitions[T0]
        files.make_room_for(T0)
        assert files.load_starts().offsets == {}

    def test_room_is_made_only_where_a_start_was_named(self, storage, partitions, files):
        storage.fail("create", times=ALL)
        files.make_room_for(T0)

    def test_a_start_that_was_read_is_as_one_that_was_written(self, storage, partitions, files):
        partitions[T0] = Log(10, start=3)
        files.write_starts()
        again = FolderCheckpoints("/data", storage, {})
        assert again.load_starts().offsets == {T0: 3}
        again.make_room_for(T0)
        assert again.load_starts().offsets == {}

    def test_a_damaged_one_is_written_again_where_that_can_be(self, storage, partitions, files, caplog):
        partitions[T0] = Log(10, start=3)
        storage.fail("create", times=ALL)
        files.correct_starts()
        assert "trying again" in caplog.text
        storage.heal()
        files.correct_starts()
        assert offsets(storage, checkpoints.LOG_START_OFFSETS) == {T0: 3}


class TestReading:
    def test_a_file_that_cannot_be_read_is_a_fault_and_no_offset(self, storage, partitions, files):
        partitions[T0] = Log(10)
        files.write_all()
        assert files.load(checkpoints.HIGH_WATERMARKS).offsets == {T0: 10}
        storage.fail("read", checkpoints.HIGH_WATERMARKS)
        found = files.load(checkpoints.HIGH_WATERMARKS)
        assert (found.offsets, bool(found.fault)) == ({}, True)

    def test_a_clean_stop_is_believed_once(self, storage, files):
        checkpoints.mark_clean_shutdown(storage, "/data")
        assert files.take_clean_shutdown()
        assert not files.take_clean_shutdown()

    def test_a_mark_that_cannot_be_removed_is_not_believed(self, storage, files, caplog):
        checkpoints.mark_clean_shutdown(storage, "/data")
        storage.fail("remove", checkpoints.CLEAN_SHUTDOWN)
        assert not files.take_clean_shutdown()
        assert "is treated as a crash" in caplog.text


class TestHowFarAPartitionWasCompacted:
    GONE = ("t", 0)

    def test_is_forgotten_with_it(self, storage, files):
        path = f"/data/{checkpoints.CLEANER_OFFSETS}"
        checkpoints.save_offsets(storage, path, {T0: 5, T1: 6})
        files.forget_cleaned(self.GONE)
        assert offsets(storage, checkpoints.CLEANER_OFFSETS) == {T1: 6}

    def test_is_not_written_where_it_was_not_named(self, storage, files):
        storage.fail("create", times=ALL)
        files.forget_cleaned(self.GONE)
        assert not storage.exists(f"/data/{checkpoints.CLEANER_OFFSETS}")

    def test_is_told_where_it_cannot_be_forgotten(self, storage, files, caplog):
        checkpoints.save_offsets(storage, f"/data/{checkpoints.CLEANER_OFFSETS}", {T0: 5})
        storage.fail("create", checkpoints.CLEANER_OFFSETS)
        files.forget_cleaned(self.GONE)
        assert "could not be removed from" in caplog.text
