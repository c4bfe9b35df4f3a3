"""Producers and transactions that a start knows again: from snapshots, from the batches, and from the markers."""

import pytest

from horolog.broker.log.indexes import transaction_index
from horolog.broker.log.partition import Resources, append_marker, closing
from horolog.broker.log.producers import producers_file, snapshot_file
from horolog.broker.log.recovery import Circumstances, PartitionFolder, open_partition
from horolog.broker.log.storage.memory_disk import ALL
from horolog.protocol.records.control import Marker
from horolog.protocol.records.head import LENGTH_ENDS_AT, MAGIC_AT
from tests.support.log_model import DIRECTORY, NEW, NOW_MS, Model, send, small_config
from tests.support.transactional import aborted_in, batch


@pytest.fixture
def model():
    return Model(small_config(segment_bytes=300))


def again(model, *, was_clean=False, **known):
    """The process was killed; this is the next one."""
    model.storage.die()
    known = Circumstances(was_clean, 0, NOW_MS, **known)
    model.partition = open_partition(PartitionFolder("t", 0, DIRECTORY), model.config, Resources(model.storage), known)
    return model.partition


def transact(model, sequence, *, committed, producer_id=7):
    data = batch([b"v"], producer_id, 0, sequence)
    model.partition.append(data, NOW_MS, produce_version=NEW)
    append_marker(model.partition, producer_id, 0, Marker(committed, 0), NOW_MS)
    model.partition.flush()


def files(model, suffix):
    return sorted(name for name in model.storage.list_dir(DIRECTORY) if name.endswith(suffix))


def forget_producers(model):
    """Only the batches tell of them."""
    for name in [*files(model, snapshot_file.SUFFIX), *files(model, producers_file.FILE_NAME)]:
        model.storage.remove(f"{DIRECTORY}/{name}")


def retried(model, count):
    """Where batches are that are sent again."""
    return [send(model, 2 * number) for number in range(count)]


class TestProducers:
    def test_are_known_from_their_batches_alone(self, model):
        places = [send(model, 2 * number) for number in range(4)]
        for name in files(model, snapshot_file.SUFFIX):
            model.storage.remove(f"{DIRECTORY}/{name}")
        again(model)
        assert retried(model, 4) == places

    def test_are_known_from_a_snapshot_where_the_batches_before_it_are_not_read(self, model):
        for number in range(12):
            send(model, 2 * number)
        model.partition.sync()
        newest = files(model, snapshot_file.SUFFIX)[-1]
        partition = again(model)
        assert partition.log_end_offset == 24
        assert newest in files(model, snapshot_file.SUFFIX)
        assert send(model, 22) == 22

    @pytest.mark.parametrize("was_clean", [True, False])
    @pytest.mark.parametrize("at", [LENGTH_ENDS_AT - 1, MAGIC_AT], ids=["length", "magic"])
    def test_are_known_though_a_bit_of_a_sealed_batch_has_flipped_since(self, at, was_clean, caplog):
        """The scan corrects the head; until then the batch would be there, and its retry appended once more."""
        model = Model()
        place = send(model, 0)
        model.partition.sync()
        closing.close(model.partition)
        forget_producers(model)
        model.storage.corrupt(f"{DIRECTORY}/{files(model, '.log')[0]}", at, 0x04)
        again(model, was_clean=was_clean)
        assert send(model, 0) == place
        assert model.partition.log_end_offset == 2

    def test_what_cannot_be_corrected_is_passed_over(self, model, caplog):
        model = Model()
        places = [send(model, 2 * number) for number in range(3)]
        model.partition.sync()
        closing.close(model.partition)
        size_bytes = model.partition.size_bytes
        for at in range(size_bytes // 3, size_bytes // 3 + 70):
            model.storage.corrupt(f"{DIRECTORY}/{files(model, '.log')[0]}", at, 0x55)
        for is_on_record in (False, True):
            caplog.clear()
            forget_producers(model)
            again(model, was_clean=True)
            assert model.partition.log_end_offset == 6
            assert send(model, 4) == places[2]
            closing.close(model.partition)
            assert ("is not what was sealed" in caplog.text) != is_on_record

    def test_are_known_though_the_newest_snapshot_is_damaged(self, model, caplog):
        for number in range(12):
            send(model, 2 * number)
        model.partition.sync()
        newest = f"{DIRECTORY}/{files(model, snapshot_file.SUFFIX)[-1]}"
        model.storage.corrupt(newest, 20, 0xFF)
        again(model)
        assert newest.rpartition("/")[2] in caplog.text
        assert send(model, 22) == 22

    def test_are_not_believed_of_offsets_that_are_not_there(self, model):
        """A snapshot behind the end was made of batches that are gone."""
        send(model, 0)
        model.partition.sync()
        stale = f"{DIRECTORY}/{50:020}{snapshot_file.SUFFIX}"
        model.storage.write_atomically(stale, b"anything")
        again(model)
        assert not model.storage.exists(stale)

    def test_remember_their_last_batches_where_a_file_says_so(self, model):
        places = [send(model, 2 * number) for number in range(3)]
        closing.close(model.partition)
        assert model.storage.exists(f"{DIRECTORY}/{producers_file.FILE_NAME}")
        again(model, was_clean=True)
        assert retried(model, 3) == places

    def test_go_on_without_that_file_where_it_is_damaged(self, model):
        for number in range(3):
            send(model, 2 * number)
        closing.close(model.partition)
        path = f"{DIRECTORY}/{producers_file.FILE_NAME}"
        model.storage.write_atomically(path, b"nonsense")
        again(model, was_clean=True)
        assert not model.storage.exists(path)
        assert send(model, 4) == 4

    def test_a_snapshot_whose_name_may_be_lost_is_not_counted_on(self, model):
        for number in range(12):
            send(model, 2 * number)
        model.partition.sync()
        model.storage.die()
        model.storage.fail("sync_dir", DIRECTORY, times=ALL)
        known = Circumstances(False, 0, NOW_MS, may_be_unsynced=True)
        partition = open_partition(PartitionFolder("t", 0, DIRECTORY), model.config, Resources(model.storage), known)
        assert partition.log_end_offset == 24

    @pytest.mark.parametrize("was_clean", [True, False])
    def test_may_begin_with_a_sequence_that_was_aborted(self, model, was_clean):
        model = Model()
        transact(model, 0, committed=True)
        transact(model, 1, committed=False)
        model.partition.sync()
        if was_clean:
            closing.close(model.partition)
        again(model, was_clean=was_clean)
        transact(model, 1, committed=True)
        assert model.partition.log_end_offset == 6


class TestAbortedTransactions:
    @pytest.fixture
    def aborted(self, model):
        """One committed, two aborted."""
        for sequence, committed in enumerate((False, True, False)):
            transact(model, sequence, committed=committed)
        return aborted_in(model.partition, 0, 100)

    def test_are_as_their_index_says(self, model, aborted):
        assert len(aborted) == 2
        closing.close(model.partition)
        assert aborted_in(again(model, was_clean=True), 0, 100) == aborted

    def test_are_found_again_by_their_markers(self, model, aborted):
        assert aborted_in(again(model), 0, 100) == aborted

    def test_are_found_again_where_an_index_is_gone(self, model, aborted):
        closing.close(model.partition)
        for name in files(model, transaction_index.SUFFIX):
            model.storage.remove(f"{DIRECTORY}/{name}")
        assert aborted_in(again(model), 0, 100) == aborted

    def test_are_found_without_a_warning_where_the_folder_was_written_without_indexes(self, model, aborted, caplog):
        closing.close(model.partition)
        for name in files(model, transaction_index.SUFFIX):
            model.storage.remove(f"{DIRECTORY}/{name}")
        partition = again(model, was_clean=True, has_logs_only=True)
        assert aborted_in(partition, 0, 100) == aborted
        assert "rebuilding it" not in caplog.text
        assert partition.folder.counters.indexes_rebuilt.value == 0

    def test_of_a_folder_that_was_just_made_are_found_in_its_batches(self, model, aborted):
        closing.close(model.partition)
        for name in files(model, transaction_index.SUFFIX):
            model.storage.remove(f"{DIRECTORY}/{name}")
        forget_producers(model)
        assert aborted_in(again(model, is_made=True), 0, 100) == aborted

    def test_are_found_again_where_an_index_is_not_the_one_that_was_sealed(self, model, aborted, caplog):
        closing.close(model.partition)
        (name, *_) = files(model, transaction_index.SUFFIX)
        model.storage.corrupt(f"{DIRECTORY}/{name}", 10, 0x01)
        partition = again(model, was_clean=True)
        assert aborted_in(partition, 0, 100) == aborted
        assert "rebuilding it" in caplog.text
        assert partition.folder.counters.indexes_rebuilt.value >= 1

    def test_are_found_again_where_an_index_says_more_than_the_markers(self, model, aborted, caplog):
        (name, *_) = files(model, transaction_index.SUFFIX)
        path = f"{DIRECTORY}/{name}"
        data = model.storage.read_all(path)
        model.storage.write_atomically(path, data + data)
        assert aborted_in(again(model), 0, 100) == aborted
        assert "abort markers" in caplog.text or "rebuilding it" in caplog.text

    def test_do_not_cost_producers_their_state(self, model, aborted):
        """Transactions are found in the batches, producers whose records are gone in the snapshot."""
        closing.close(model.partition)
        (name, *_) = files(model, transaction_index.SUFFIX)
        model.storage.corrupt(f"{DIRECTORY}/{name}", 10, 0x01)
        again(model, was_clean=True)
        transact(model, 3, committed=True)
        assert len(aborted_in(model.partition, 0, 100)) == 2
