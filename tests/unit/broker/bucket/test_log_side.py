"""The log's half: partitions are opened from the WALs of others, shipped to the own one, and given up; also in a store that misbehaves."""

import contextlib
import itertools
import random

import pytest

from horolog.base.clock import ManualClock
from horolog.broker.base.answers import Answer, run
from horolog.broker.bucket import names, wal_fencing, wal_object
from horolog.broker.bucket.block_files import FOLDER
from horolog.broker.bucket.covered import NOTHING, Covered
from horolog.broker.bucket.fence import Fence
from horolog.broker.bucket.led_segments import HOUR_MS, SegmentCare
from horolog.broker.bucket.log_side import (
    LOOKS_EVERY_S,
    MANIFEST_RETRY_S,
    OPENINGS_AT_ONCE,
    RETRY_S,
    SEGMENTS_EVERY_LOOKS,
    Around,
    BucketLog,
)
from horolog.broker.bucket.lost_objects import ASKED_AGAIN_S
from horolog.broker.bucket.manifest import Manifest
from horolog.broker.bucket.names import Wal, key
from horolog.broker.bucket.seams import Opening, Stretch
from horolog.broker.bucket.shipped_partition import ShippedPartition
from horolog.broker.bucket.shipped_safety import ShippedSafety, ShippingLimits
from horolog.broker.bucket.store_access import StoreAccess
from horolog.broker.bucket.store_upkeep import LetGo
from horolog.broker.log.manager import LogManager
from horolog.broker.log.partition import log_start
from horolog.broker.log.storage import NotHere
from horolog.protocol.records.entries import iter_records
from tests.support.bucket_segments import Manifests, filled, upload
from tests.support.log_model import NOW_MS, new_storage, read_all, small_config
from tests.support.logs import broker_settings
from tests.support.shipping import (
    TOPIC_ID,
    ReadyStore,
    StillLoop,
    access_to,
    append,
    put_merged,
    put_object,
    run_at,
)
from tests.support.simulated_store import Schedule, SimulatedStore, Weather

ONE, TWO = Wal(1, 10), Wal(2, 20)
LIMITS = ShippingLimits(flush_ms=20, flush_bytes=600, unsafe_bytes=1 << 20)


class Cluster:
    def __init__(self):
        self.fences, self.covered = [], []

    def fenced(self, fence):
        self.fences.append(fence)

    def proof_of_life(self, sent_s):
        pass

    def lineages(self):
        return {(TOPIC_ID, 0): tuple(Stretch(epoch, wal) for epoch in range(10) for wal in (ONE, TWO))}


class Clock(ManualClock):
    """Goes with a loop."""

    def __init__(self, loop):
        super().__init__(NOW_MS)
        self.monotonic = lambda: loop.now


class Side:
    """One broker's log over a store."""

    def __init__(self, loop, access, segments=None, care=None):
        self.loop, self.cluster, self.opened, self.shown = loop, Cluster(), [], []

        nonces = itertools.count()
        self.logs = LogManager(["/data"], new_storage(), ManualClock(NOW_MS), broker_settings(), kind=ShippedPartition)
        self.safety = ShippedSafety(loop, lambda: LIMITS, self.shown.extend, lambda: 0.0)
        let_go = LetGo(tails_covered=self.cluster.covered.append)
        around = Around(loop, Clock(loop), lambda: b"%16d" % next(nonces), care=care or SegmentCare(), let_go=let_go)
        self.log = BucketLog(around, access, self.logs, self.safety, self.cluster, segments)

    def open(self, *lineage, partition=0):
        stretches = tuple(Stretch(*one) for one in lineage)
        opening = Opening("t", TOPIC_ID, partition, small_config(), stretches)
        self.log.open_from(opening, self.opened.append)
        return opening.place


@pytest.fixture
def store():
    return ReadyStore()


@pytest.fixture
def side(store):
    return Side(StillLoop(), access_to(store))


def test_partitions_of_one_tick_read_a_wal_once(store, side):
    put_object(store, ONE, 0, run_at(0, 0), run_at(0, 0, partition=1))
    side.open((0, ONE, 1), (1, TWO))
    side.open((0, ONE, 1), (1, TWO), partition=1)
    assert side.opened == []
    side.loop.advance()
    assert [one.high_watermark for one in side.opened] == [1, 1]
    assert [one.leader_epoch for one in side.opened] == [1, 1]
    assert store.asked == [key(ONE.folder, 0)]


def test_others_of_the_loop_get_their_turn_while_many_partitions_are_opened(side):
    """Those of a new topic wait for no answer of the store: a broker that opens thousands has its lease to keep meanwhile."""
    for number in range(100):
        side.open((0, TWO), partition=number)
    counts = [0]

    def note():
        counts.append(len(side.opened))
        if len(side.opened) < 100:
            side.loop.call_soon(note)

    side.loop.call_soon(note)
    side.loop.advance()
    assert counts[-1] == 100
    assert max(after - before for before, after in itertools.pairwise(counts)) <= OPENINGS_AT_ONCE


def test_the_rest_is_merged_before_partitions_move_unless_that_takes_too_long(side, monkeypatch):
    done = []
    side.log.merge_rest(3.0, done.append)
    assert done == [None], "there is no WAL yet"
    side.log.begin(TWO)
    side.log.merge_rest(3.0, done.append)
    assert done == [None] * 2

    class Slow:
        def look(self): ...

        async def merge_rest(self):
            await Answer(waiting.append)

        remove_rest = merge_rest

    waiting = []
    side.log.merger = Slow()
    side.log.merge_rest(3.0, done.append)
    assert done == [None] * 2
    side.loop.advance(3.0)
    assert done == [None] * 3
    waiting.pop()(None)
    assert done == [None] * 3
    side.log.merge_rest(3.0, done.append)
    waiting.pop()(None)
    side.loop.advance(3.0)
    assert done == [None] * 4
    side.log.remove_rest(3.0, done.append)
    assert done == [None] * 4
    waiting.pop()(None)
    assert done == [None] * 5
    side.log.merger = None
    side.log.remove_rest(3.0, done.append)
    assert done == [None] * 6


def test_what_an_opened_partition_takes_is_shipped_in_its_epoch(store, side):
    side.log.begin(TWO)
    put_object(store, ONE, 0, run_at(0, 0))
    side.open((0, ONE, 1), (3, TWO))
    side.loop.advance()
    (partition,) = side.opened
    append(partition, 7)
    ends = []
    side.log.ship_all([partition], ends.append)
    assert ends == [1]
    other = Side(StillLoop(), access_to(store))
    other.open((0, ONE, 1), (3, TWO, 1), (4, Wal(3, 30)))
    other.loop.advance()
    assert [row[0] for row in read_all(other.opened[0])] == [0, 1]


def test_an_object_that_is_merged_while_its_runs_are_read_is_found_again(store, side, monkeypatch):
    monkeypatch.setattr("horolog.broker.bucket.wal_index.WHOLE_BYTES", 10)
    put_object(store, ONE, 0, run_at(0, 0))
    reads = itertools.count()

    def before(name):
        if name == key(ONE.folder, 0) and next(reads) == 1:
            put_merged(store, ONE, 0, 1, run_at(0, 0))

    store.before_read = before
    side.open((0, ONE, 1), (1, TWO))
    side.loop.advance()
    assert [row[0] for row in read_all(side.opened[0])] == [0]


def test_a_fault_of_the_disk_is_tried_again(store, side):
    put_object(store, ONE, 0, run_at(0, 0))
    side.logs.resources.storage.fail("write")
    side.open((0, ONE, 1), (1, TWO))
    side.loop.advance()
    assert side.opened == []
    side.loop.advance(RETRY_S)
    assert [one.high_watermark for one in side.opened] == [1]


def test_an_opening_that_is_given_up_opens_nothing(store, side):
    put_object(store, ONE, 0, run_at(0, 0))
    place = side.open((0, ONE, 1), (1, TWO))
    side.log.give_up(place)
    side.loop.advance()
    assert side.opened == []
    assert store.asked == []
    store.before_read = lambda _: side.log.give_up(place)
    side.open((0, ONE, 1), (1, TWO))
    side.loop.advance()
    assert side.opened == []
    assert ("t", 0) not in side.logs.partitions


def test_an_opening_that_takes_the_place_of_another_is_the_one_that_counts(store, side, monkeypatch):
    monkeypatch.setattr("horolog.broker.bucket.wal_index.WHOLE_BYTES", 10)
    put_object(store, ONE, 0, run_at(0, 0))
    put_object(store, ONE, 1, run_at(1, 1))
    reads = itertools.count()

    def before(_):
        if next(reads) == 1:
            side.open((0, ONE, 2), (5, TWO))

    store.before_read = before
    side.open((0, ONE, 1), (1, TWO))
    side.loop.advance()
    assert [(one.leader_epoch, one.high_watermark) for one in side.opened] == [(5, 2)]


def test_a_partition_that_is_given_up_is_dropped_with_its_files(store, side):
    side.log.begin(TWO)
    place = side.open((1, TWO))
    side.loop.advance()
    (partition,) = side.opened
    append(partition, 7)
    told = []
    side.safety.make_safe([partition], told.append)
    side.log.give_up(place)
    assert list(told[0]) == [partition]
    assert partition.condition.fault is not None
    assert not side.logs.partitions
    storage = side.logs.resources.storage
    assert storage.is_dir(partition.directory), "thousands may go at a time"
    side.loop.advance()
    assert not storage.is_dir(partition.directory)
    side.log.give_up(place)
    side.loop.advance(1)
    assert store.objects == {}


def test_files_that_cannot_be_removed_are_left_to_the_next_opening(store, side, caplog):
    place = side.open((1, TWO))
    side.loop.advance()
    side.logs.resources.storage.fail("rename")
    side.log.give_up(place)
    side.loop.advance()
    assert "the broker removes them when it leads the partition again" in caplog.text
    side.open((3, TWO))
    side.loop.advance()
    assert side.opened[-1].leader_epoch == 3


@pytest.mark.parametrize("is_fenced", [True, False])
def test_after_a_stop_nothing_is_opened_or_shipped(store, side, is_fenced):
    side.log.begin(TWO)
    side.open((1, TWO))
    side.loop.advance()
    side.open((1, TWO), partition=1)
    append(side.opened[0], 7)
    ends = []
    side.log.ship_all([side.opened[0]], ends.append)
    assert ends == [1]
    side.log.stop(is_fenced=is_fenced)
    append(side.opened[0], 7)
    side.log.ship_all([side.opened[0]], ends.append)
    side.loop.advance(1)
    assert ends == [1, None]
    assert len(side.opened) == 1
    assert list(store.objects) == [key(TWO.folder, 0)]


def test_a_fence_reaches_the_cluster(store, side):
    side.log.begin(TWO)
    side.open((1, TWO))
    side.loop.advance()
    fence = Fence(TWO, 0, 3, b"f" * 16)
    store.objects[key(TWO.folder, 0)] = fence.encode()
    append(side.opened[0], 7)
    side.log.ship_all(side.opened, lambda _: None)
    assert side.cluster.fences == [fence]


# A store that misbehaves


class ScheduledLoop:
    """The loop of a broker in virtual time."""

    def __init__(self, schedule):
        self.schedule = schedule

    @property
    def now(self):
        return self.schedule.now

    def call_soon(self, action, *arguments):
        return self.call_later(0, action, *arguments)

    def call_later(self, seconds, action, *arguments):
        handle = Timer()
        self.schedule.later(seconds, lambda: handle.is_cancelled or action(*arguments))
        return handle


class Timer:
    is_cancelled = False

    def cancel(self):
        self.is_cancelled = True


def read_through(partition, schedule):
    """Everything in a partition, as a consumer that waits for the bucket reads it."""
    rows = []
    while (offset := rows[-1][0] + 1 if rows else partition.log_start_offset) < partition.high_watermark:
        try:
            data = partition.read(offset, 1 << 20)
        except NotHere:
            schedule.run(schedule.now + 1)
        else:
            rows += [(one.offset, one.timestamp, one.value) for one in iter_records(data) if one.offset >= offset]
    return rows


@pytest.mark.parametrize("seed", range(25))
def test_whatever_was_safe_is_there_after_a_fence(seed, monkeypatch):
    """Appends go on until the fence, wherever that falls. Their offsets are those that a client has learned, and no client learns one twice."""
    monkeypatch.setattr("horolog.broker.bucket.wal_merger.MOST_NUMBERS", 3)
    monkeypatch.setattr("horolog.broker.bucket.wal_index.WHOLE_BYTES", 900)
    schedule = Schedule()
    store = SimulatedStore(schedule, seed, Weather())
    chance = random.Random(seed)
    access = StoreAccess(store, schedule.pause)
    side = Side(ScheduledLoop(schedule), access)
    side.log.begin(ONE)
    side.open((1, ONE))
    schedule.run(1)
    (partition,) = side.opened
    safe, refused, ends, merged = [], [], [], []
    store.effects.append(lambda name: name.startswith("merged/") and merged.append(name))

    def produce(number):
        end = partition.log_end_offset
        if side.log.writer is not None:
            append(partition, *range(number, number + chance.randint(1, 4)))
            told = partition.log_end_offset
            side.safety.make_safe([partition], lambda failures: (refused if failures else safe).append((end, told)))

    for number in range(60):
        schedule.later(chance.uniform(0, 12), lambda number=number: produce(number))

    async def end_it():
        ends.append(await wal_fencing.fence(access, ONE, 2, b"f" * 16))

    schedule.later(chance.uniform(1, 12), lambda: run(end_it()))
    schedule.run(400)
    assert ends, "the fence was made"
    other = Side(ScheduledLoop(schedule), access)
    other.open((1, ONE, ends[0]), (2, TWO))
    schedule.run(800)
    (taken_over,) = other.opened
    rows = read_through(taken_over, schedule)
    assert [row[0] for row in rows] == list(range(taken_over.written_end))
    assert all(end <= taken_over.written_end for _, end in safe)
    assert merged or partition.high_watermark < 20
    assert partition.high_watermark <= taken_over.written_end
    if side.cluster.fences:
        assert len(safe) + len(refused) == 60, "each is answered"


class InBucket:
    """A partition whose first part lies in the bucket, and whose runs, those of all of it, are in a WAL."""

    def __init__(self, store, loop):
        self.store = store
        self.local = filled(random.Random(5), 20)
        self.end, self.manifests = self.local.written_end, Manifests()
        self.side = Side(loop, access_to(store), self.manifests)
        runs = [run_at(self.end - 1, 0), run_at(self.end, 1, count=2), run_at(self.end + 2, 2)]
        for number, one in enumerate(runs):
            put_object(store, ONE, number, one)

    def covered(self, upto=None, start=0):
        return Covered(start, tuple(upload(self.local, self.store)[:upto]), b"", ((0, 0),))

    def open(self):
        self.side.open((0, ONE, 3), (9, TWO, None))
        self.side.loop.advance()
        (partition,) = self.side.opened
        return partition


def test_segments_stay_in_the_bucket_and_runs_behind_them_are_copied(store):
    bucket = InBucket(store, StillLoop())
    bucket.manifests.covered[0] = bucket.covered(start=3)
    partition = bucket.open()
    assert (partition.log_start_offset, partition.high_watermark) == (3, bucket.end + 3)
    assert not [one for one in store.asked if one.startswith("data/")], "it serves at once"
    with pytest.raises(NotHere):
        partition.read(3, 1 << 20)
    assert partition.read(bucket.end, 1 << 20)
    for _ in range(2):
        bucket.side.loop.advance()
        with contextlib.suppress(NotHere):
            partition.read(3, 1 << 20)
    assert bucket.side.shown == [partition] * 2, "readers are woken"
    assert partition.read(3, 1 << 20) == bucket.local.read(3, 1 << 20)
    assert len(bucket.side.logs.resources.storage.list_dir(f"/data/{FOLDER}")) == 2


def test_objects_that_are_lost_are_asked_for_again(store):
    bucket = InBucket(store, StillLoop())
    bucket.manifests.covered[0] = bucket.covered()
    partition, log = bucket.open(), bucket.side.log
    log.begin(TWO)
    lost = next(one for one in store.objects if one.endswith(".meta"))
    data = store.objects.pop(lost)
    with pytest.raises(NotHere):
        partition.read(0, 1 << 20)
    bucket.side.loop.advance()
    assert list(log.losses.lines()) == [lost]
    store.objects[lost] = data
    bucket.side.loop.advance(ASKED_AGAIN_S + LOOKS_EVERY_S * SEGMENTS_EVERY_LOOKS)
    assert log.losses.lines() == {}, "the broker has asked for it, although no reader has"


def test_a_manifest_that_is_new_at_the_end_of_the_reading_counts(store):
    bucket = InBucket(store, StillLoop())
    bucket.manifests.then[0] = bucket.covered()
    partition = bucket.open()
    assert bucket.manifests.asked == 4
    assert (partition.segments[0].base_offset, partition.high_watermark) == (0, bucket.end + 3)
    assert partition.front.end_offset == bucket.end


def test_an_opening_that_is_given_up_while_manifests_are_read_opens_nothing(store):
    bucket = InBucket(store, StillLoop())
    newest = bucket.manifests.newest

    async def given_up(opening, known=NOTHING):
        if bucket.manifests.asked:
            bucket.side.log.give_up(opening.place)
        return await newest(opening, known)

    bucket.manifests.newest = given_up
    bucket.side.open((0, ONE, 3), (9, TWO, None))
    bucket.side.loop.advance()
    assert bucket.side.opened == []
    assert bucket.side.logs.partitions == {}


def put_manifest(store, number, epoch, start):
    made = Manifest(TOPIC_ID, 0, number, epoch, start, b"n" * 16)
    store.objects[made.key] = made.encode()
    return made.key


def test_a_start_that_was_moved_is_that_of_every_later_leader(store, side):
    side.log.begin(ONE)
    put_object(store, Wal(9, 9), 0, run_at(0, 0, count=4))
    side.open((0, Wal(9, 9), 1), (1, ONE))
    side.loop.advance()
    (partition,) = side.opened
    moved = []
    side.log.move_start(partition, 2, moved.append)
    assert (moved, partition.log_start_offset) == ([True], 2)
    other = Side(StillLoop(), access_to(store))
    other.open((0, Wal(9, 9), 1), (1, ONE, 0), (2, TWO))
    other.loop.advance()
    (later,) = other.opened
    assert (later.log_start_offset, later.log_end_offset) == (2, 4)
    other.log.move_start(later, 4, moved.append)
    side.log.move_start(partition, 3, moved.append)
    assert moved == [True, True, False], "a leader that was is refused"


def test_a_start_that_the_leader_before_has_moved_since_is_learned_before_clients_are_served(store, side):
    put_object(store, ONE, 0, run_at(0, 0, count=5))
    opening = Opening("t", TOPIC_ID, 0, small_config(), (Stretch(0, ONE, 1), Stretch(1, TWO)))
    side.log.open_from(opening, side.opened.append)
    side.loop.advance()
    (partition,), settled = side.opened, []
    side.log.settle_start(opening, lambda: settled.append(partition.log_start_offset))
    put_manifest(store, 0, 0, 3)
    side.log.settle_start(opening, lambda: settled.append(partition.log_start_offset))
    asked = len(store.asked)
    side.log.settle_start(opening, lambda: settled.append(partition.log_start_offset))
    assert settled == [0, 3, 3]
    assert len(store.asked) == asked, "a manifest that is known is not read"


def test_a_manifest_that_is_damaged_before_clients_are_served_holds_that_up(store, side, caplog):
    put_object(store, ONE, 0, run_at(0, 0, count=5))
    opening = Opening("t", TOPIC_ID, 0, small_config(), (Stretch(0, ONE, 1), Stretch(1, TWO)))
    side.log.open_from(opening, side.opened.append)
    side.loop.advance()
    name, settled = put_manifest(store, 0, 0, 3), []
    whole, store.objects[name] = store.objects[name], b"damaged"
    side.log.settle_start(opening, lambda: settled.append("first"))
    side.loop.advance(MANIFEST_RETRY_S)
    assert (settled, len(caplog.messages)) == ([], 2)
    store.objects[name] = whole
    side.loop.advance(MANIFEST_RETRY_S)
    assert settled == ["first"]
    side.log.give_up(opening.place)
    side.log.settle_start(opening, lambda: settled.append("second"))
    assert settled == ["first"]


def test_runs_before_the_start_are_not_read_and_the_log_ends_where_they_end(store, side, monkeypatch):
    monkeypatch.setattr("horolog.broker.bucket.wal_index.WHOLE_BYTES", 10)
    put_manifest(store, 0, 0, 5)
    put_object(store, ONE, 0, run_at(0, 0, count=5))
    side.open((0, ONE, 1), (1, TWO))
    side.loop.advance()
    (partition,) = side.opened
    assert (partition.log_start_offset, partition.log_end_offset) == (5, 5)
    assert store.asked.count(key(ONE.folder, 0)) == 1, "its footer"


def test_what_the_wals_lack_lies_before_the_newest_start(store, side):
    """A leader that lives on moves the start, and its records go, while they are looked for."""
    put_object(store, ONE, 0, run_at(0, 0))
    put_object(store, ONE, 1, run_at(1, 1))

    def before(name):
        if name == key(ONE.folder, 1):
            put_merged(store, ONE, 0, 1)
            put_manifest(store, 0, 0, 1)
            store.before_read = lambda _: None

    store.before_read = before
    side.open((0, ONE, 2), (1, TWO))
    side.loop.advance()
    (partition,) = side.opened
    assert (partition.log_start_offset, [row[0] for row in read_all(partition)]) == (1, [1])


def test_what_has_expired_moves_the_start(store, side):
    side.log.begin(ONE)
    put_object(store, Wal(9, 9), 0, run_at(0, 0, count=20))
    side.open((0, Wal(9, 9), 1), (1, ONE))
    side.loop.advance()
    (partition,) = side.opened
    partition.configure(small_config(retention_ms=1000, delete=True))
    log_start.apply_retention(partition, NOW_MS)
    assert partition.log_start_offset == 20
    log_start.apply_retention(partition, NOW_MS)
    assert [one.base_offset for one in partition.segments] == [20]


@pytest.mark.parametrize("is_open", [True, False])
def test_the_manifests_of_a_deleted_topic_go(store, side, is_open):
    put_manifest(store, 0, 0, 0)
    put_object(store, ONE, 0, run_at(0, 0))
    place = side.open((0, ONE, 1), (1, TWO))
    if is_open:
        side.loop.advance()
    side.log.remove(place)
    assert [one for one in store.objects if one.startswith("manifest/")] == []
    assert not side.logs.partitions


def test_those_of_a_partition_that_is_led_elsewhere_are_its_leaders_matter(store, side):
    kept = put_manifest(store, 0, 0, 0)
    side.log.remove((TOPIC_ID, 0))
    assert kept in store.objects


def test_a_stop_ends_the_moves_of_starts(store, side):
    side.log.begin(ONE)
    side.open((1, ONE))
    side.loop.advance()
    (partition,) = side.opened
    side.log.stop(is_fenced=False)
    moved = []
    side.log.move_start(partition, 0, moved.append)
    assert moved == [False]


def test_what_lies_in_segments_is_not_merged_and_its_successor_has_all_of_it(store, side, monkeypatch):
    monkeypatch.setattr("horolog.broker.bucket.wal_merger.MOST_NUMBERS", 6)
    monkeypatch.setattr("horolog.broker.bucket.log_side.SEGMENTS_EVERY_LOOKS", 1)
    side.log.begin(ONE)
    side.open((1, ONE))
    side.loop.advance()
    (partition,) = side.opened
    for number in range(6):
        append(partition, number)
        if number == 3:
            partition.roll(NOW_MS)
        side.log.ship_all([partition], lambda _: None)
        side.loop.advance(5)
    (merged,) = [data for name, data in store.objects.items() if name.startswith("merged/")]
    assert [one.base_offset for one in wal_object.decode(merged).runs] == [4, 5]
    assert [one for one in store.objects if one.startswith("wal/")] == []
    other = Side(StillLoop(), access_to(store))
    other.open((1, ONE, side.log.writer.safe_end), (2, TWO))
    other.loop.advance()
    (later,) = other.opened
    assert (later.front.end_offset, later.high_watermark, later.log_start_offset) == (4, 6, 0)
    assert other.log.tails.covered() == {}, "WALs have the rest"
    append(later, 7)
    later.roll(NOW_MS)
    other.log.begin(TWO)
    other.log.ship_all([later], lambda _: None)
    other.loop.advance(60)
    assert other.cluster.covered[:1] == [{(TOPIC_ID, 0): 2}]


def test_segments_of_a_deleted_topic_go_after_its_manifests(store):
    loop, clock = StillLoop(), ManualClock(NOW_MS)
    side = Side(loop, access_to(store))
    side.log.of_bucket.removals._now = clock.monotonic
    side.log.begin(ONE)
    place = side.open((1, ONE))
    loop.advance()
    (partition,) = side.opened
    append(partition, 1)
    partition.roll(NOW_MS)
    side.log.ship_all([partition], lambda _: None)
    loop.advance(LOOKS_EVERY_S)
    folders = [one.partition("/")[0] for one in store.objects if not one.startswith("wal/")]
    assert sorted(folders) == ["data", "data", "manifest"]
    side.log.remove(place)
    assert [one.partition("/")[0] for one in store.objects if not one.startswith("wal/")] == ["data", "data"]
    clock.advance(HOUR_MS)
    side.log.of_bucket.look()
    assert [one for one in store.objects if not one.startswith("wal/")] == []


def test_a_manifest_that_cannot_be_read_holds_up_its_partition_alone_until_it_is_back(store, side, caplog):
    for partition in (0, 1):
        put_object(store, ONE, partition, run_at(0, partition, partition=partition))
    known = Manifest(TOPIC_ID, 0, 0, 0, 0, b"n" * 16)
    store.objects[known.key] = b"damage"
    for partition in (0, 1):
        side.open((0, ONE, 2), (1, TWO, None), partition=partition)
    side.loop.advance()
    assert [one.index for one in side.opened] == [1]
    assert "t-0 is not opened, since its newest manifest cannot be read" in caplog.text
    store.objects[known.key] = known.encode()
    side.loop.advance(MANIFEST_RETRY_S)
    assert [one.index for one in side.opened] == [1, 0]


def test_manifests_of_a_deleted_topic_stay_for_a_restore_and_go_before_its_segments(store):
    side = Side(StillLoop(), access_to(store), care=SegmentCare(history_ms=lambda: 86_400_000))
    put_manifest(store, 0, 0, 0)
    name = f"{names.segments(TOPIC_ID, 0)}/a.log"
    store.objects[name] = b""
    place = side.open((0, ONE, 0), (1, TWO))
    side.log.begin(TWO)
    side.loop.advance()
    side.log.remove(place)
    side.loop.advance(86_390)
    assert [one for one in store.objects if one.startswith(("manifest/", "data/"))] == [
        Manifest(TOPIC_ID, 0, 0, 0, 0, b"").key,
        name,
    ]
    side.loop.advance(20)
    assert [one for one in store.objects if one.startswith(("manifest/", "data/"))] == []


def test_a_partition_that_a_later_leader_has_moved_on_with_is_not_opened(store, side, caplog):
    """The entry may not be read here yet when the later leader has uploaded segments."""
    side.log.begin(ONE)
    put_object(store, Wal(9, 9), 0, run_at(0, 0))
    put_manifest(store, 0, 3, 0)
    place = side.open((0, Wal(9, 9), 1), (2, ONE))
    side.loop.advance(2 * MANIFEST_RETRY_S)
    assert side.opened == []
    assert "t-0: another broker leads it, in epoch 3" in caplog.text
    side.log.give_up(place)
    side.loop.advance(2 * MANIFEST_RETRY_S)
    assert side.opened == []
