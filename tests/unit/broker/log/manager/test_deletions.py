"""What a data folder does with the folders of deleted partitions."""

import pytest

from horolog.broker.log.storage import StorageFault
from tests.support.log_model import NOW_MS, small_config
from tests.unit.broker.log.manager.test_data_folder import CONFIG, TOPIC_ID, Machine, append


@pytest.fixture
def machine():
    return Machine()


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
