"""What the checkpoints of a data folder say after crashes, damage and faults of the disk."""

from horolog.broker.log.files import checkpoints, log_starts
from horolog.broker.log.partition import log_start
from horolog.broker.log.storage.memory_disk import ALL
from tests.support.log_machine import CONFIG, TOPIC_ID, append


def test_a_start_inside_a_segment_is_durable_once_it_is_written(machine):
    logs = machine.start()
    partition = logs.create("t", 0, CONFIG, TOPIC_ID)
    for _ in range(5):
        append(partition)
    partition.sync()
    log_start.delete_records_before(partition, 3)
    logs.write_log_starts()
    machine.storage.crash()
    assert machine.start().partitions["t", 0].log_start_offset == 3


def test_a_start_that_only_one_file_could_tell_is_not_written(machine):
    """Otherwise a digit that flips in Kafka's file, which has no checksum, hides records."""
    logs = machine.start()
    partition = logs.create("t", 0, CONFIG, TOPIC_ID)
    for _ in range(5):
        append(partition)
    log_start.delete_records_before(partition, 3)
    machine.storage.fail("rename", log_starts.LOG_STARTS, times=ALL)
    assert logs.write_log_starts() == {("t", 0)}
    assert not machine.storage.exists(f"/srv/data/{checkpoints.LOG_START_OFFSETS}")


def test_checkpoints_are_written_when_something_has_changed(machine):
    logs = machine.start()
    partition = logs.create("t", 0, CONFIG, TOPIC_ID)
    append(partition)
    partition.sync()
    logs.checkpoint_job()()

    def offsets(name):
        return checkpoints.load_offsets(machine.storage, f"/srv/data/{name}").offsets

    assert offsets(checkpoints.RECOVERY_POINTS) == {("t", 0): 1}
    assert offsets(checkpoints.HIGH_WATERMARKS) == {("t", 0): 1}
    assert offsets(checkpoints.LOG_START_OFFSETS) == {}
    before = machine.storage.operations["rename"]
    logs.checkpoint_job()()
    assert machine.storage.operations["rename"] == before
    append(partition)
    job = logs.checkpoint_job()
    append(partition)
    job()
    assert offsets(checkpoints.HIGH_WATERMARKS) == {("t", 0): 2}, "as things were when the job was made"
