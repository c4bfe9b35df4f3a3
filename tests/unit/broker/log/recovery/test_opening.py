"""A partition that cannot be written is read all the same, takes no appends, and goes on by itself when it can."""

import errno

import pytest

from horolog.base.clock import ManualClock
from horolog.broker.config.settings import load
from horolog.broker.log.manager import LogManager
from horolog.broker.log.partition import Partition, Resources, lookups
from horolog.broker.log.recovery import Circumstances, PartitionFolder, open_readable, open_writable, storage_below
from horolog.broker.log.recovery.opening import probe_below
from horolog.broker.log.storage import DataFolderError, MemoryStorage, StorageFault
from horolog.broker.log.storage.memory_disk import ALL
from tests.support.log_model import NEW, NOW_MS, encode, read_all, small_config

CONFIG = small_config()
COUNT = 60


class Machine:
    """A disk in memory with a partition on it, whose broker was killed."""

    def __init__(self):
        self.storage = MemoryStorage()
        self.clock = ManualClock(NOW_MS)
        logs = self.start()
        partition = logs.create("t", 0, CONFIG, bytes(range(16)))
        for number in range(COUNT):
            append(partition, NOW_MS + number)
        partition.sync()
        logs.abandon()
        self.storage.die()

    def start(self):
        logs = LogManager(["/srv/data"], self.storage, self.clock, load(None, {}, {})[0])
        logs.open(lambda _topic: CONFIG)
        return logs

    def lose_indexes(self):
        for path in [one for one in self.storage.files() if one.endswith("index")]:
            self.storage.remove(path)

    def logs_of(self):
        return {path: self.storage.read_all(path) for path in self.storage.files() if path.endswith(".log")}

    def wait_for_disks(self, logs, seconds=20):
        for _ in range(seconds * 4):
            _, jobs = logs.retry_stopped()
            for job in jobs:
                job()
            self.clock.advance(250)


def append(partition, timestamp):
    partition.append(encode(2, 0, [timestamp], [b"v" * 40]), NOW_MS, produce_version=NEW)
    partition.flush()


def check_reads(partition):
    assert [(row[0], row[1]) for row in read_all(partition)] == [(n, NOW_MS + n) for n in range(COUNT)]
    for number in (0, COUNT // 2, COUNT - 1):
        assert lookups.first_at_or_after(partition, NOW_MS + number).offset == number
    assert lookups.first_at_or_after(partition, NOW_MS + COUNT) is None
    assert lookups.largest_timestamp(partition).offset == COUNT - 1


@pytest.fixture
def machine():
    return Machine()


def fill(machine):
    machine.lose_indexes()
    machine.storage.capacity_bytes = machine.storage.used_bytes()


def forbid(part, code=errno.EACCES):
    def unwritable(machine):
        machine.storage.unwritable[part] = code

    return unwritable


@pytest.mark.parametrize(
    "broken",
    [fill, forbid("t-0"), forbid("t-0", errno.EROFS), forbid(".log"), forbid("index", errno.EPERM)],
    ids=["full disk", "folder", "read-only folder", "logs", "indexes"],
)
def test_it_is_read_and_goes_on_when_it_can_be_written(machine, broken):
    broken(machine)
    before = machine.logs_of()
    logs = machine.start()
    partition = logs.partitions["t", 0]
    check_reads(partition)
    assert partition.condition.fault is None
    assert "nothing can be written" in partition.condition.stopped
    with pytest.raises(StorageFault, match="accepts no appends"):
        append(partition, NOW_MS)
    machine.wait_for_disks(logs)
    assert "nothing can be written" in partition.condition.stopped
    assert machine.logs_of() == before
    machine.storage.heal()
    machine.wait_for_disks(logs, 600)
    assert partition.condition.stopped is None
    assert storage_below(partition) is None
    append(partition, NOW_MS + COUNT)
    partition.sync()
    logs.close()
    machine.storage.crash()
    found = machine.start().partitions["t", 0]
    assert len(read_all(found)) == COUNT + 1


def test_a_torn_tail_is_cut_in_memory_until_there_is_room(machine):
    path = max(one for one in machine.storage.files() if one.endswith(".log"))
    file = machine.storage.open(path)
    file.pwritev([b"\xff" * 100], file.size())
    fill(machine)
    size_bytes = file.size()
    logs = machine.start()
    check_reads(logs.partitions["t", 0])
    assert file.size() == size_bytes
    machine.storage.heal()
    machine.wait_for_disks(logs)
    assert logs.partitions["t", 0].condition.takes_appends
    assert file.size() == size_bytes - 100
    assert any(name.endswith(".torn") for name in machine.storage.list_dir("/srv/data/t-0"))


def test_retention_frees_a_full_disk_on_which_nothing_can_be_written(machine):
    fill(machine)
    logs = machine.start()
    partition = logs.partitions["t", 0]
    segments = len(partition.segments)
    assert segments > 2
    machine.clock.advance(100_000)
    old = small_config(retention_ms=1)
    partition.configure(old)
    logs.apply_retention(machine.clock.wall_ms())
    assert len(partition.segments) == 1
    assert partition.log_end_offset == COUNT
    machine.clock.advance(old.file_delete_delay_ms + 1)
    for job in logs.removal_jobs(machine.clock.wall_ms()):
        job()
    kept = [name for name in machine.storage.list_dir("/srv/data/t-0") if name.endswith(".log")]
    assert kept == [f"{partition.segments[0].base_offset:020d}.log"]
    machine.wait_for_disks(logs, 30)
    assert partition.condition.takes_appends, "there is room now"
    assert partition.log_end_offset == COUNT


def test_a_file_that_cannot_be_read_leaves_the_partition_offline(machine):
    fill(machine)
    machine.storage.fail("read", ".log", times=1 << 30, code=errno.EACCES)
    assert machine.start().partitions["t", 0].condition.fault is not None


def test_a_folder_that_cannot_be_written_at_all_is_refused_and_the_way_out_is_named(machine):
    machine.storage.unwritable["/srv/data"] = errno.EROFS
    with pytest.raises(DataFolderError, match=r"Read-only file system; horolog\.read\.only=true serves"):
        machine.start()


# One partition, opened by itself


PLACE = PartitionFolder("t", 0, "/srv/data/t-0")
KILLED = Circumstances(was_clean=False, log_start_offset=0, now_ms=NOW_MS, may_be_unsynced=True)


def test_where_it_can_be_written_nothing_is_kept_in_memory(machine):
    opened = open_readable(PLACE, CONFIG, Resources(machine.storage), KILLED)
    assert opened.stopped is None
    assert storage_below(Partition(opened)) is None


def test_a_fault_that_is_no_want_of_room_or_right_is_a_fault(machine):
    machine.storage.fail("read", ".log", times=ALL)
    with pytest.raises(StorageFault):
        open_readable(PLACE, CONFIG, Resources(machine.storage), KILLED)


def test_one_that_is_to_take_appends_is_not_opened_where_it_could_not(machine):
    machine.storage.unwritable["t-0"] = errno.EACCES
    with pytest.raises(StorageFault):
        open_writable(PLACE, CONFIG, Resources(machine.storage), KILLED)


def test_the_disk_below_is_tried_until_it_takes_something(machine):
    machine.storage.unwritable["t-0"] = errno.EACCES
    partition = Partition(open_readable(PLACE, CONFIG, Resources(machine.storage), KILLED))
    below = storage_below(partition)
    assert below is machine.storage
    with pytest.raises(StorageFault):
        probe_below(partition, below)
    machine.storage.heal()
    probe_below(partition, below)


def test_a_log_that_was_left_as_it_should_be_is_not_opened_for_appends_where_none_could_come(machine):
    """Nothing had to be written to open it."""
    logs = machine.start()
    machine.wait_for_disks(logs)
    logs.close()
    machine.storage.unwritable["t-0"] = errno.EROFS
    stopped = Circumstances(was_clean=True, log_start_offset=0, now_ms=NOW_MS, recovery_point=COUNT)
    with pytest.raises(StorageFault, match="Read-only"):
        open_writable(PLACE, CONFIG, Resources(machine.storage), stopped)
    partition = Partition(open_readable(PLACE, CONFIG, Resources(machine.storage), stopped))
    check_reads(partition)
    assert not partition.condition.takes_appends


def test_an_empty_log_is_read_over_a_disk_that_takes_nothing():
    """Its active file may be there in memory alone."""
    storage = MemoryStorage()
    for path in ("/srv", "/srv/data", "/srv/data/t-0"):
        storage.make_dir(path)
    storage.unwritable["t-0"] = errno.ENOSPC
    partition = Partition(open_readable(PLACE, CONFIG, Resources(storage), KILLED))
    assert (partition.log_end_offset, partition.condition.takes_appends) == (0, False)
    storage.heal()
    probe_below(partition, storage)
