"""The end of a partition: what closing writes and waits for, what it leaves, and what deleting takes along."""

from collections import Counter
from random import Random

import pytest

from horolog.broker.log.integrity import seals
from horolog.broker.log.partition import Resources, closing, durability, log_start
from horolog.broker.log.recovery import PartitionFolder, create_partition
from horolog.broker.log.storage import StorageFault
from horolog.broker.log.storage.memory_disk import ALL
from tests.support.log_model import DIRECTORY, NEW, NOW_MS, Model, encode, new_storage, small_config

DAY_MS = 86_400_000


@pytest.fixture
def model():
    return Model()


def append(model, timestamp):
    model.partition.append(encode(2, 0, [timestamp], [b"v" * 1100]), NOW_MS, produce_version=NEW)


def deleted(model):
    return [name for name in model.storage.list_dir(DIRECTORY) if name.endswith(".deleted")]


def test_closing_a_partition_that_nothing_has_happened_to_writes_nothing(model):
    append(model, 1)
    model.close_and_open()
    before = dict(model.storage.operations)
    closing.close(model.partition)
    assert {kind: count for kind, count in model.storage.operations.items() if count != before.get(kind)} == {}


def test_an_empty_partition_is_sealed_without_a_sync(model):
    before = model.storage.operations.get("sync", 0)
    closing.close(model.partition)
    assert model.storage.exists(f"{DIRECTORY}/{seals.SEALS}")
    assert model.storage.operations.get("sync", 0) == before


def test_what_is_queued_is_written_synced_and_sealed(model):
    append(model, 1)
    partition = model.partition
    closing.complete(partition)
    assert partition.high_watermark == 1
    assert partition.segments[-1].seal is not None
    assert partition.sync_state.has_work
    assert partition.sync_state.recovery_point == 0
    closing.settle(partition)
    assert not partition.sync_state.has_work
    assert partition.sync_state.recovery_point == 1


def test_a_partition_that_takes_no_appends_is_left_as_it_is(model):
    append(model, 1)
    model.flush()
    model.partition.condition.stop("no room")
    before = dict(model.storage.operations)
    closing.close(model.partition)
    assert model.storage.operations == before
    assert model.partition.segments[-1].seal is None


def test_seals_that_cannot_be_written_are_no_clean_end(model):
    append(model, 1)
    closing.complete(model.partition)
    model.storage.fail("create", seals.SEALS, times=ALL)
    with pytest.raises(StorageFault, match="its seals could not be written"):
        closing.settle(model.partition)


def test_files_out_of_use_go_with_the_end():
    model = Model(small_config(retention_ms=DAY_MS, segment_ms=1 << 60, file_delete_delay_ms=5000))
    append(model, 1)
    append(model, NOW_MS)
    model.flush()
    log_start.apply_retention(model.partition, NOW_MS)
    assert deleted(model)
    closing.close(model.partition)
    assert not deleted(model)


def test_a_deleted_partition_is_renamed_away(model):
    append(model, 1)
    model.flush()
    closing.end(model.partition)
    model.storage.rename(DIRECTORY, "/data/t-0.x-delete")
    assert model.storage.list_dir("/data") == ["t-0.x-delete"]
    assert model.partition.condition.is_deleted
    assert all(one.removed for one in model.partition.segments)
    with pytest.raises(StorageFault):
        append(model, 1)
    model.partition.sync()


def test_each_file_and_folder_is_synced_once(model):
    append(model, 1)
    before = Counter(model.storage.operations)
    closing.close(model.partition)
    spent = Counter(model.storage.operations) - before
    assert spent["sync"] == 2, "log, epochs"
    assert spent["sync_dir"] == 2, "the folder, the one above"


@pytest.mark.parametrize(("most_bytes", "syncs"), [(ALL, (1, 0)), (0, (2, 1))])
def test_of_a_short_log_nothing_is_waited_for_but_its_records(model, monkeypatch, most_bytes, syncs):
    monkeypatch.setattr(durability, "REBUILD_AT_ONCE_BYTES", most_bytes)
    model.append(2, 0, [1], [b"v"])
    model.flush()
    model.close_and_open()
    model.append(2, 0, [2], [b"v"])
    before = Counter(model.storage.operations)
    closing.close(model.partition)
    spent = Counter(model.storage.operations) - before
    assert (spent["sync"], spent["sync_dir"]) == syncs, "the log; of a long one the seals and the folder, too"


@pytest.mark.parametrize("seed", range(20))
def test_whatever_a_power_cut_leaves_of_small_indexes_after_a_clean_end_look_ups_are_right(seed):
    model, chance = Model(), Random(seed)
    for time in chance.choices(range(40), k=30):
        model.append(2, 0, [time], [b"v" * 100])
    model.flush()
    closing.close(model.partition)
    model.storage.crash(chance)
    model.reopen(was_clean=True)
    model.check()


def test_the_folder_above_is_synced_once_for_many_partitions():
    storage, config = new_storage(), small_config()
    resources = Resources(storage)
    made = [
        create_partition(PartitionFolder("t", index, f"/data/t-{index}"), None, config, resources, NOW_MS)
        for index in range(9)
    ]
    above, real = [], storage.sync_dir
    storage.sync_dir = lambda path: real(path) if path != "/data" else above.append(real(path))
    for partition in made:
        partition.append(encode(2, 0, [1], [b"v"]), NOW_MS, produce_version=NEW)
        closing.close(partition)
    assert len(above) == 1
    storage.crash()
    for index in range(9):
        assert storage.file_node(f"/data/t-{index}/{0:020}.log").size
