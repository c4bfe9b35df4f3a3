"""Compaction of a living partition: from appends to replaced segments, with restarts, expiry and failing disks between."""

import pytest

from horolog.base.clock import ManualClock
from horolog.broker.config.settings import load
from horolog.broker.config.topic_settings import resolve
from horolog.broker.log.compaction import Compactor
from horolog.broker.log.files import checkpoints
from horolog.broker.log.manager import LogManager
from horolog.broker.log.partition import log_start, lookups
from horolog.broker.log.producers import ProducerBatch
from horolog.broker.log.storage import MemoryStorage
from horolog.broker.log.validation import Validated
from horolog.protocol.records.batch import encode_batch, iter_batch, read_header
from horolog.protocol.records.control import Marker, encode_marker
from horolog.protocol.records.record import Record

SETTINGS = load(None, {}, {})[0]
OVERRIDES = {
    "cleanup.policy": "compact",
    "segment.bytes": "300",
    "min.cleanable.dirty.ratio": "0.1",
    "segment.index.bytes": "1200",
    "index.interval.bytes": "50",
    "file.delete.delay.ms": "0",
}
MEMORY_BYTES = 1 << 20


class World:
    """A data folder with one compacted partition, and its compactor."""

    def __init__(self, storage=None, **overrides):
        self.storage = storage or MemoryStorage()
        self.clock = ManualClock()
        self.config = resolve(
            {**OVERRIDES, **{key.replace("_", "."): value for key, value in overrides.items()}}, SETTINGS
        )
        self.open()

    def open(self):
        self.logs = LogManager(["/data"], self.storage, self.clock, SETTINGS)
        self.logs.open(lambda topic: self.config)
        if ("t", 0) not in self.logs.partitions:
            self.logs.create("t", 0, self.config, None)
        self.partition = self.logs.partitions["t", 0]
        self.compactor = Compactor(self.storage, self.storage, ["/data"])

    def restart(self):
        self.logs.close()
        self.open()

    def crash(self):
        self.logs.abandon()
        self.storage.crash()
        self.open()

    def send(self, *pairs, **settings):
        now_ms = self.clock.wall_ms()
        records = [
            Record(n, now_ms, 0, key.encode(), None if value is None else value.encode())
            for n, (key, value) in enumerate(pairs)
        ]
        result = self.partition.append(bytes(encode_batch(records, **settings)), now_ms, produce_version=9)
        self.partition.flush()
        return result

    def fill(self, count=40, keys=4):
        for n in range(count):
            self.clock.advance(10)
            self.send((f"key-{n % keys}", f"value-{n}"))
        self.partition.sync()

    def next_pass(self):
        return self.compactor.next_pass(self.logs.partitions.values(), self.clock.wall_ms(), MEMORY_BYTES)

    def compact(self):
        task = self.next_pass()
        cleaned = self.compactor.run(task)
        done = cleaned is not None and self.compactor.finish(task, cleaned, self.clock.wall_ms())
        self.compactor.checkpoint_job(self.logs.partitions.values())()
        return done

    def records(self):
        found, offset = [], self.partition.log_start_offset
        while data := self.partition.read(offset, 1):
            header = read_header(data)
            if not header.is_control:
                found += iter_batch(data)
            offset = header.last_offset + 1
        return found

    def table(self):
        return {one.key.decode(): one.value.decode() for one in self.records()}


@pytest.fixture
def world():
    made = World()
    made.fill()
    return made


def test_every_key_keeps_its_last_value_and_the_log_its_end(world):
    table, end, size = world.table(), world.partition.log_end_offset, world.partition.size_bytes
    assert world.compact()
    assert world.table() == table
    assert world.partition.log_end_offset == end
    assert world.partition.size_bytes < size / 2
    assert world.next_pass() is None, "it is clean now"


def test_emptied_segments_are_merged_by_the_next_pass(world):
    world.compact()
    emptied = len(world.partition.segments)
    world.fill(count=8)
    world.compact()
    assert len(world.partition.segments) < emptied


def test_look_ups_by_time_go_on(world):
    world.compact()
    records = world.records()
    for target in range(records[0].timestamp - 5, records[-1].timestamp + 15, 5):
        expected = next((one for one in records if one.timestamp >= target), None)
        found = lookups.first_at_or_after(world.partition, target)
        assert (found and (found.timestamp, found.offset)) == (expected and (expected.timestamp, expected.offset))


def test_appends_go_on_and_the_next_pass_takes_them_too(world):
    world.compact()
    world.fill(keys=6)
    table = world.table()
    assert world.compact()
    assert world.table() == table


@pytest.mark.parametrize("how", ["restart", "crash"])
def test_what_was_compacted_stays_so_over_a_restart(world, how):
    world.compact()
    world.partition.sync()
    before = world.records()
    names = sorted(world.storage.list_dir("/data/t-0"))
    getattr(world, how)()
    assert world.records() == before
    assert world.next_pass() is None, "the checkpoint says how far it is clean"
    assert not [name for name in names if name.endswith((".cleaned", ".swap"))]


def test_a_damaged_checkpoint_costs_a_pass_and_nothing_else(world):
    world.compact()
    world.storage.write_atomically(f"/data/{checkpoints.CLEANER_OFFSETS}", b"what")
    table = world.table()
    world.restart()
    assert world.compact()
    assert world.table() == table


def test_a_crash_before_the_result_is_in_place_leaves_the_old_segments(world):
    records = world.records()
    task = world.next_pass()
    assert world.compactor.run(task) is not None
    world.crash()
    assert world.records() == records
    assert not [name for name in world.storage.list_dir("/data/t-0") if name.endswith(".cleaned")]


def test_segments_that_expired_meanwhile_void_the_result(world):
    world.config = resolve({**OVERRIDES, "cleanup.policy": "compact,delete", "retention.ms": "200"}, SETTINGS)
    world.partition.configure(world.config)
    task = world.next_pass()
    cleaned = world.compactor.run(task)
    assert log_start.apply_retention(world.partition, world.clock.wall_ms())
    records = world.records()
    assert not world.compactor.finish(task, cleaned, world.clock.wall_ms())
    assert world.records() == records
    assert not [name for name in world.storage.list_dir("/data/t-0") if name.endswith(".cleaned")]
    assert world.compact(), "and the next pass works on the rest"


def test_a_partition_with_damage_is_left_alone_until_the_next_start(world):
    path = world.partition.segments[1].log.path
    data = bytearray(world.storage.read_all(path))
    data[70] ^= 1
    world.storage.open(path).pwritev([bytes(data)], 0)
    assert not world.compact()
    assert world.next_pass() is None


def test_a_failing_disk_is_tried_again(world):
    world.storage.fail("create", ".cleaned", times=1)
    assert not world.compact()
    assert world.compact()


def test_a_partition_that_cannot_be_swapped_goes_offline_and_a_restart_finishes_it(world):
    table = world.table()
    task = world.next_pass()
    cleaned = world.compactor.run(task)
    world.storage.fail("rename", ".swap", times=1)
    assert not world.compactor.finish(task, cleaned, world.clock.wall_ms())
    assert world.partition.condition.fault is not None
    world.crash()
    assert world.table() == table


def test_a_swap_that_failed_is_finished_while_running(world):
    table = world.table()
    task = world.next_pass()
    cleaned = world.compactor.run(task)
    world.storage.fail("rename", ".swap", times=1)
    assert not world.compactor.finish(task, cleaned, world.clock.wall_ms())
    for _ in range(10):
        for job in world.logs.retry_stopped()[1]:
            job()
        world.clock.advance(1_000)
    assert world.partition.condition.takes_appends
    assert world.table() == table
    world.fill(count=4)
    world.crash()
    assert world.partition.condition.takes_appends


def test_the_neediest_partition_comes_first(world):
    other = world.logs.create("u", 0, world.config, None)
    batch = bytes(encode_batch([Record(0, 0, 0, b"k", b"v" * 200)]))
    for _ in range(3):
        other.append(batch, world.clock.wall_ms(), produce_version=9)
        other.flush()
    world.compact()
    assert world.compact()
    world.fill(count=4)
    assert world.next_pass() is not None
    assert world.next_pass().partition is world.partition


def test_only_compacted_topics(world):
    world.partition.configure(resolve({**OVERRIDES, "cleanup.policy": "delete"}, SETTINGS))
    assert world.next_pass() is None


def test_stopping_ends_a_pass(world):
    task = world.next_pass()
    cleaned = world.compactor.run(task)
    world.compactor.stop()
    assert not world.compactor.finish(task, cleaned, world.clock.wall_ms())
    assert world.compactor.run(task) is None


def test_aborted_transactions_are_compacted_away_and_stay_hidden():
    world = World(delete_retention_ms="0")
    sequence = 0
    for n in range(20):
        world.clock.advance(10)
        world.send(
            (f"key-{n % 3}", f"value-{n}"), producer_id=5, producer_epoch=0, base_sequence=sequence, attributes=0x10
        )
        sequence += 1
        end(world, committed=bool(n % 2))
    world.partition.sync()
    before, size = committed(world), world.partition.size_bytes
    for _ in range(3):
        world.clock.advance(10)
        assert world.compact()
        world.partition.sync()
        assert committed(world) == before
        world.crash()
        assert committed(world) == before
        world.storage.remove(f"/data/{checkpoints.CLEANER_OFFSETS}")
        world.restart()
    assert world.partition.size_bytes < size / 2
    state = world.partition.producers.get(5)
    assert state.last_sequence == sequence - 1


def end(world, *, committed):
    """What the transaction coordinator will have written."""
    partition, now_ms = world.partition, world.clock.wall_ms()
    offset = partition.log_end_offset
    data = encode_marker(Marker(committed, 0), offset, now_ms, producer_id=5, producer_epoch=0, leader_epoch=0)
    batch = ProducerBatch(5, 0, -1, -1, offset, offset, now_ms, True, Marker(committed, 0))
    partition.append_checked(
        Validated(data, len(data), offset, offset, 1, -1, -1, -1, -1, (), [batch], 2),
        now_ms,
    )
    partition.flush()


def committed(world):
    hidden = world.partition.aborted.overlapping(0, world.partition.log_end_offset)
    gone = {offset for one in hidden for offset in range(one.first_offset, one.last_offset + 1)}
    return {one.key: one.value for one in world.records() if one.offset not in gone}


def test_an_abort_marker_that_was_lost_with_the_power_hides_nothing():
    world = World()
    world.send(("key", "value"), producer_id=5, producer_epoch=0, base_sequence=0, attributes=0x10)
    world.partition.sync()
    end(world, committed=False)
    world.crash()
    end(world, committed=True)
    assert committed(world) == {b"key": b"value"}
    assert world.partition.last_stable_offset == world.partition.high_watermark


@pytest.mark.parametrize("restarts", [False, True])
def test_how_far_a_deleted_topic_was_compacted_says_nothing_of_the_next_of_its_name(world, restarts):
    world.fill()
    assert world.compact()
    world.compactor.checkpoint_job(world.logs.partitions.values())()
    assert world.next_pass() is None
    world.logs.delete(world.partition)
    if restarts:
        world.crash()
    else:
        world.partition = world.logs.create("t", 0, world.config, bytes(range(16)))
    world.fill()
    assert world.compact()
