"""What one worker knows of its partitions, and what several files say together."""

import pytest
from crc32c import crc32c

from horolog.broker.cluster import worker_checkpoints
from horolog.broker.cluster.worker_checkpoints import (
    NO_ID,
    NOWHERE,
    UNKNOWN,
    JournalPlace,
    PartitionRow,
    WorkerCheckpoint,
    decode,
    encode,
    united,
)
from horolog.broker.log.files import CheckpointError
from horolog.broker.log.storage import MemoryStorage, StorageFault

OLD, NEW = b"o" * 16, b"n" * 16
ROWS = {("t", 0): PartitionRow(NEW, 5, 9, 2), ("with-dash", 11): PartitionRow(OLD, UNKNOWN, 0, 0)}


@pytest.mark.parametrize("has_stopped", [False, True])
def test_what_is_written_is_read(has_stopped):
    checkpoint = WorkerCheckpoint(ROWS, has_stopped, JournalPlace(7, 41))
    assert decode(encode(checkpoint)) == checkpoint


@pytest.mark.parametrize("state", ["running", "stopped"])
def test_what_the_release_before_has_written_is_read(state):
    body = f"horolog-checkpoint 1 {state}\n".encode()
    found = decode(body + f"checksum {crc32c(body):08x}\n".encode())
    assert found == WorkerCheckpoint({}, state == "stopped", NOWHERE)


def test_every_damage_is_seen():
    data = encode(WorkerCheckpoint(ROWS, has_stopped=True))
    for place in range(len(data)):
        with pytest.raises((CheckpointError, ValueError)):
            decode(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        with pytest.raises((CheckpointError, ValueError)):
            decode(data[:place])


def test_another_head_is_another_file():
    body = b"horolog-checkpoint 2 running\n"
    with pytest.raises(CheckpointError, match="is not"):
        decode(body + f"checksum {crc32c(body):08x}\n".encode())


def test_the_files_of_a_folder_are_read_by_their_nodes():
    storage = MemoryStorage()
    storage.make_dir("/data")
    good = WorkerCheckpoint(ROWS, has_stopped=True)
    for name, data in {"1": encode(good), "12": encode(good), "3": b"damaged", "x": b"", "2.tmp": b""}.items():
        storage.write_atomically(f"/data/horolog-checkpoint.{name}", data)
    loaded = worker_checkpoints.load_all(storage, "/data")
    assert loaded.found == {1: good, 12: good}
    (fault,) = loaded.faults
    assert fault.startswith("/data/horolog-checkpoint.3: ")
    assert worker_checkpoints.load(storage, "/data/horolog-checkpoint.7") is None
    assert worker_checkpoints.nodes_in(storage, "/data") == [1, 3, 12]


def test_one_that_cannot_be_read_is_not_left_out():
    storage = MemoryStorage()
    storage.make_dir("/data")
    storage.write_atomically("/data/horolog-checkpoint.1", encode(WorkerCheckpoint(ROWS, has_stopped=True)))
    storage.fail("read", "/data/horolog-checkpoint.1")
    with pytest.raises(StorageFault):
        worker_checkpoints.load_all(storage, "/data")


def test_of_several_lines_the_highest_start_and_the_lowest_recovery_point_count():
    files = [
        WorkerCheckpoint({("t", 0): PartitionRow(NEW, 50, 60, 10)}, has_stopped=True),
        WorkerCheckpoint({("t", 0): PartitionRow(NEW, 40, 70, 5)}, has_stopped=True),
        WorkerCheckpoint({("t", 0): PartitionRow(NEW, UNKNOWN, 0, 20)}, has_stopped=True),
    ]
    assert united(files, lambda _: NEW) == {("t", 0): PartitionRow(NEW, 40, 70, 20)}
    assert united(files[2:], lambda _: NEW)["t", 0].recovery_point == UNKNOWN


def test_a_line_of_an_older_topic_of_that_name_says_nothing():
    files = [
        WorkerCheckpoint(
            {("t", 0): PartitionRow(OLD, 50, 60, 10), ("t", 1): PartitionRow(NO_ID, 3, 4, 2)}, has_stopped=True
        ),
        WorkerCheckpoint({("gone", 0): PartitionRow(NEW, 1, 1, 1)}, has_stopped=True),
    ]
    assert united(files, {("t", 0): NEW, ("t", 1): NEW}.get) == {("t", 1): PartitionRow(NO_ID, 3, 4, 2)}


def test_damaged_files_are_kept_and_are_no_workers(caplog):
    storage = MemoryStorage()
    storage.make_dir("/data")
    for node in (1, 3):
        storage.write_atomically(f"/data/horolog-checkpoint.{node}", f"damaged {node}\n".encode())
    worker_checkpoints.keep_damaged(storage, "/data", [])
    assert not storage.exists("/data/horolog-checkpoint.damaged")
    worker_checkpoints.keep_damaged(storage, "/data", [1, 3])
    assert storage.read_all("/data/horolog-checkpoint.damaged") == b"damaged 1\ndamaged 3\n"
    assert worker_checkpoints.nodes_in(storage, "/data") == [1, 3]
    storage.fail("write", "/data/horolog-checkpoint.damaged")
    worker_checkpoints.keep_damaged(storage, "/data", [1])
    assert "damaged checkpoints of workers cannot be kept" in caplog.text
