"""Leaders of one partition, one after the other, that are killed between any two requests to the store, each time with their disk.

Records are appended, rolled, compacted, uploaded, deleted and swept. What was acknowledged is there with every next leader, at its offset; no
offset is used twice. Once all is quiet and three hours have passed, the store has what the newest manifest and the WALs need, and nothing else.
"""

import itertools
import random
from contextlib import ExitStack
from dataclasses import replace
from unittest.mock import patch

from horolog.base.clock import ManualClock
from horolog.broker.bucket import bucket_sweep, led_segments, store_upkeep, wal_fencing, wal_merger
from horolog.broker.bucket.led_segments import SegmentCare
from horolog.broker.bucket.led_tails import LedTails
from horolog.broker.bucket.log_side import Around, BucketLog
from horolog.broker.bucket.manifest import decode, named_by
from horolog.broker.bucket.names import Wal
from horolog.broker.bucket.seams import Opening, Stretch
from horolog.broker.bucket.shipped_partition import ShippedPartition
from horolog.broker.bucket.shipped_safety import ShippedSafety, ShippingLimits
from horolog.broker.bucket.store_access import StoreAccess
from horolog.broker.bucket.store_upkeep import LetGo
from horolog.broker.log.compaction import Compactor
from horolog.broker.log.manager import LogManager
from horolog.broker.log.storage import NotHere
from horolog.protocol.records.batch import encode_batch
from horolog.protocol.records.entries import iter_records
from horolog.protocol.records.record import Record
from tests.support.log_model import NEW, NOW_MS, new_storage, small_config
from tests.support.logs import broker_settings
from tests.support.shipping import TOPIC_ID, ReadyStore, StillLoop, in_full

PLACE = TOPIC_ID, 0
LIMITS = ShippingLimits(flush_ms=20, flush_bytes=600, unsafe_bytes=1 << 20)
PLAIN = small_config(segment_bytes=600)
COMPACTED = replace(PLAIN, compact=True, delete=False, min_cleanable_dirty_ratio=0.0, segment_index_bytes=10_000)
HOURS_S = 3 * 3_600
STEPS = ["append"] * 5 + ["roll", "compact", "look", "look", "look", "delete"]


class Killed(Exception):
    """The process is gone."""


class MortalStore(ReadyStore):
    """Ends its process after so many requests: the last one has arrived, or has not."""

    def __init__(self, chance):
        super().__init__()
        self.chance, self.left = chance, None

    def _ends(self):
        if self.left is None:
            return False
        self.left -= 1
        return self.left < 0

    def create(self, key, data, done):
        if self._ends():
            if self.chance.random() < 0.5:
                self.objects.setdefault(key, data)
            raise Killed
        super().create(key, data, done)

    def delete(self, key, done):
        if self._ends():
            if self.chance.random() < 0.5:
                self.objects.pop(key, None)
            raise Killed
        super().delete(key, done)

    def _read(self, key, done, start, end):
        if self._ends():
            raise Killed
        super()._read(key, done, start, end)

    def list(self, prefix, done, limit=None):
        if self._ends():
            raise Killed
        super().list(prefix, done, limit)


class LoopClock(ManualClock):
    """Goes with a loop."""

    def __init__(self, loop):
        super().__init__(NOW_MS)
        self.monotonic = lambda: loop.now


class Leader:
    """One process, with an empty disk."""

    def __init__(self, world, node):
        self.world, self.loop, self.wal = world, StillLoop(), Wal(node, node)
        self.clock, self.opened = LoopClock(self.loop), []
        storage = new_storage()
        self.logs = LogManager(["/data"], storage, self.clock, broker_settings(), kind=ShippedPartition)
        self.safety = ShippedSafety(self.loop, lambda: LIMITS, lambda _: None, lambda: 0.0)
        let_go = LetGo(self.tails_covered, self.spent)
        around = Around(self.loop, self.clock, world.new_nonce, care=SegmentCare(), let_go=let_go)
        self.access = StoreAccess(world.store, lambda seconds, done: self.loop.call_later(seconds, done, None))
        self.log = BucketLog(around, self.access, self.logs, self.safety, self)
        self.compactor = Compactor(storage, storage, ["/data"])

    def lead(self):
        world = self.world
        self.log.begin(self.wal)
        world.line = [*world.line, Stretch(world.epoch, self.wal)]
        world.epoch += 1
        self.log.open_from(Opening("t", TOPIC_ID, 0, world.config, tuple(world.line)), self.opened.append)
        self.loop.advance(0.1)
        (self.partition,) = self.opened

    def fenced(self, fence):
        raise AssertionError(fence)

    def proof_of_life(self, sent_s):
        """There is no lease."""

    def lineages(self):
        return {PLACE: tuple(self.world.line)}

    def tails_covered(self, epochs):
        assert epochs == {PLACE: self.world.line[-1].epoch}
        self.world.line = self.world.line[-1:]

    def spent(self, wals):
        named = {one.wal for one in self.world.line}
        return [one for one in wals if one not in named]

    def step(self, name, chance):
        if name == "append":
            self.append(chance)
        elif name == "roll" and self.partition.segments[-1].size_bytes:
            self.partition.roll(NOW_MS)
        elif name == "compact" and self.world.config.compact:
            self.partition.configure(replace(COMPACTED, segment_bytes=chance.choice([600, 3_000])))
            task = self.compactor.next_pass([self.partition], self.clock.wall_ms(), 1 << 20)
            cleaned = None if task is None else self.compactor.run(task)
            if cleaned is not None:
                self.compactor.finish(task, cleaned, self.clock.wall_ms())
        elif name == "look":
            self.loop.advance(chance.choice([1, 10, 60, 700, 3_700]))
        elif name == "delete" and not self.world.config.compact:
            offset = chance.randrange(self.partition.log_start_offset, self.partition.high_watermark + 1)
            moved = []
            self.world.may_start = max(self.world.may_start, offset)
            self.log.move_start(self.partition, offset, moved.append)
            self.loop.advance(0.1)
            assert moved == [True]
            self.world.starts_from = max(self.world.starts_from, offset)

    def append(self, chance):
        world = self.world
        key, value = b"%d" % chance.randrange(4), bytes([chance.randrange(256)]) * chance.randrange(1, 80)
        data = bytes(encode_batch([Record(0, NOW_MS - 10_000, 0, key, value)]))
        offset = self.partition.append(data, NOW_MS, produce_version=NEW).base_offset
        assert offset == len(world.told), "no offset is used twice"
        self.partition.flush()
        world.asked = key, value
        shipped = []
        self.log.ship_all([self.partition], shipped.append)
        self.loop.advance(0.1)
        assert self.partition.high_watermark == offset + 1, shipped
        world.told.append(world.asked)
        world.asked = None

    def rows(self):
        """All records, as a consumer reads them."""
        partition, found = self.partition, {}
        offset = partition.log_start_offset
        while offset < partition.high_watermark:
            try:
                records = [one for one in iter_records(partition.read(offset, 1 << 20)) if one.offset >= offset]
            except NotHere:
                self.loop.advance()
                continue
            found |= {one.offset: (one.key, one.value) for one in records}
            if not records:
                break
            offset = records[-1].offset + 1
        return found


class CrashWorld:
    """Everything, from one seed. `told` has the records that were acknowledged, by their offsets."""

    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.store, self.config = MortalStore(self.chance), self.chance.choice([PLAIN, COMPACTED])
        self.line, self.epoch, self.told, self.asked = [], 0, [], None
        self.starts_from = self.may_start = self.crash_count = 0
        nonces, self._nodes = itertools.count(), itertools.count(1)
        self.new_nonce = lambda: b"%16d" % next(nonces)

    def run(self, crashes):
        """Raises AssertionError if a promise is broken."""
        while self.crash_count < crashes:
            self.store.left = self.chance.randrange(60)
            leader = Leader(self, next(self._nodes))
            try:
                leader.lead()
                self.store.left, left = None, self.store.left
                self.verify(leader)
                self.store.left = left
                while True:
                    leader.step(self.chance.choice(STEPS), self.chance)
            except Killed:
                self.crash_count += 1
                self.fence(leader)
        leader = Leader(self, next(self._nodes))
        leader.lead()
        self.verify(leader)
        leader.step("roll", self.chance)
        for _ in range(2):
            leader.loop.advance(HOURS_S)
        self.verify(leader)
        self.verify_store(leader)

    def fence(self, leader):
        """The WAL of a leader that was killed ends."""
        self.store.left = None
        leader.log.stop(is_fenced=False)
        leader.access.close()
        access = StoreAccess(self.store, lambda seconds, done: done(None))
        end = in_full(wal_fencing.fence(access, leader.wal, 999, self.new_nonce()))
        self.line = [one._replace(end=end) if one.wal == leader.wal else one for one in self.line]

    def verify(self, leader):
        """What was acknowledged is there; of what was under way when its leader was killed, either."""
        partition, found = leader.partition, leader.rows()
        if self.asked is not None and partition.log_end_offset == len(self.told) + 1:
            self.told.append(self.asked)
        self.asked = None
        assert partition.log_end_offset == partition.high_watermark == len(self.told)
        assert self.starts_from <= partition.log_start_offset <= self.may_start
        wanted = dict(enumerate(self.told))
        assert all(wanted[offset] == row for offset, row in found.items())
        if self.config.compact:
            last = {key: offset for offset, (key, _) in wanted.items()}
            assert set(last.values()) <= found.keys(), "the last value of each key"
        else:
            assert found.keys() >= set(range(partition.log_start_offset, len(self.told)))

    def verify_store(self, leader):
        kept = leader.log.of_bucket.manifests.newest(leader.partition)
        found = {kind: [] for kind in ("data", "manifest", "wal", "merged", "mark")}
        for key in self.store.objects:
            found[key.partition("/")[0]].append(key)
        assert kept is None or kept.key in found["manifest"]
        assert set(found["data"]) == named_by(kept), "live objects and nothing else"
        epochs = [decode(self.store.objects[key]).epoch for key in sorted(found["manifest"])]
        assert len(epochs) - len(set(epochs)) <= 1, "the first one of each epoch, and the newest"
        fences = [key for key in found["wal"] if b'"kind": "fence"' in self.store.objects[key]]
        alive = [key for key in found["wal"] if key.startswith(leader.wal.folder + "/")]
        assert set(found["wal"]) == {*fences, *alive}, "of WALs that have ended their fences stay"
        assert not [key for key in found["merged"] if not key.startswith(leader.wal.merged_folder + "/")]


SMALL = (
    (wal_merger, "MOST_NUMBERS", 5),
    (wal_merger, "LEAST_NUMBERS", 1),
    (store_upkeep, "TAILS_EVERY_S", 30.0),
)


def outcome_of(seed, crashes, *patches):
    """The broken promise of a seed, or nothing."""
    with ExitStack() as stack:
        for module, name, value in SMALL:
            stack.enter_context(patch.object(module, name, value))
        for one in patches:
            stack.enter_context(one)
        try:
            CrashWorld(seed).run(crashes)
        except (AssertionError, KeyError, IndexError, ValueError) as error:
            return repr(error) or "an error"
    return ""


def all_tails(tails):
    """Tails count as covered as soon as a partition is led."""
    return {place: one.leader_epoch for place, one in tails._led.items()}


BUGS = {
    "the sweep takes what manifests name": lambda: [patch.object(bucket_sweep.Named, "keeps", lambda *_: False)],
    "tails count as covered too early": lambda: [
        patch.object(LedTails, "covered", all_tails),
    ],
    "objects of an upload that died stay": lambda: [patch.object(led_segments, "left_over", lambda *_: [])],
}
