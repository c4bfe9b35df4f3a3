"""Partitions whose logs are made from elsewhere: what lay there goes, in every folder, and the new log is opened."""

import pytest

from horolog.base.clock import ManualClock
from horolog.broker.log.manager import LogManager
from horolog.broker.log.manager.made_elsewhere import Held, clear, open_made
from horolog.broker.log.partition import log_start
from horolog.broker.log.storage import MemoryStorage
from tests.support.log_model import NEW, NOW_MS, encode, small_config
from tests.support.logs import broker_settings

A, B = "/disks/a", "/disks/b"
CONFIG = small_config()
TOPIC_ID = bytes(range(16))


class Machine:
    def __init__(self):
        self.storage, self.clock = MemoryStorage(), ManualClock(NOW_MS)

    def start(self, *folders):
        logs = LogManager(list(folders or (A, B)), self.storage, self.clock, broker_settings())
        logs.open(lambda _: CONFIG)
        return logs


@pytest.fixture
def machine():
    return Machine()


def append(partition, timestamp=5):
    partition.append(encode(2, 0, [timestamp], [b"v" * 40]), NOW_MS, produce_version=NEW)
    partition.flush()


def id_of(logs, number):
    return logs.folders[number].identity.directory_id


def made_elsewhere(logs, end_offset=2):
    """A folder as another room makes it: a log of two records, which another partition has written."""
    place = clear(logs, "t", 0, CONFIG)
    directory = place.directory
    storage = logs.resources.storage
    other = logs.create("other", 0, CONFIG, TOPIC_ID)
    append(other)
    append(other)
    (segment,) = other.segments
    storage.make_dir(directory)
    file = storage.create(f"{directory}/{0:020d}.log")
    file.pwritev([segment.log.pread(segment.size_bytes, 0)], 0)
    file.close()
    return open_made(logs, place, CONFIG, Held(0, end_offset), NOW_MS)


def test_a_folder_that_was_made_elsewhere_is_opened(machine):
    logs = machine.start()
    partition = made_elsewhere(logs)
    assert (partition.log_start_offset, partition.high_watermark) == (0, 2)
    assert logs.partitions["t", 0] is partition
    assert logs.folders.of(partition).partitions["t", 0] is partition
    append(partition)
    assert partition.high_watermark == 3
    assert made_elsewhere_ends_at(logs, 5) == 5


def made_elsewhere_ends_at(logs, end_offset):
    logs.delete(logs.partitions["other", 0])
    return made_elsewhere(logs, end_offset).log_end_offset


def test_a_partition_is_cleared_wherever_it_lies(machine):
    logs = machine.start()
    known = logs.create("t", 0, CONFIG, TOPIC_ID, id_of(logs, 1))
    append(known)
    machine.storage.make_dir(f"{A}/t-0")
    directory = clear(logs, "t", 0, CONFIG).directory
    assert directory in {f"{A}/t-0", f"{B}/t-0"}
    assert known.condition.is_deleted
    assert not logs.partitions
    assert not any(machine.storage.is_dir(f"{folder}/t-0") for folder in (A, B))
    for job in logs.removal_jobs(NOW_MS):
        job()
    assert not [name for folder in (A, B) for name in machine.storage.list_dir(folder) if name.endswith("-delete")]


def test_nothing_waits_for_the_disk_where_partitions_come_and_go(machine):
    """A broker may open or give up thousands at a time, all in one thread, and a crash leaves nothing that any broker reads."""
    logs = machine.start(A)
    partition = made_elsewhere(logs)
    assert not partition.sync_state.has_work
    assert not partition.sync_state.new_files
    before = dict(machine.storage.operations)
    clear(logs, "t", 0, CONFIG)
    assert [machine.storage.operations.get(one) for one in ("sync", "sync_dir")] == [
        before.get(one) for one in ("sync", "sync_dir")
    ]
    assert machine.storage.operations["rename"] == before.get("rename", 0) + 1


def test_a_start_of_the_log_is_not_kept_over_a_clearing(machine):
    logs = machine.start(A)
    partition = logs.create("t", 0, CONFIG, TOPIC_ID)
    for _ in range(3):
        append(partition)
    log_start.delete_records_before(partition, 2)
    logs.write_log_starts()
    assert made_elsewhere(logs).log_start_offset == 0
    logs.close()
    assert machine.start(A).partitions["t", 0].log_start_offset == 0
