"""A process of the simulated company with the real log's half: segments on a disk in memory, shipping, merging, and opening from the store."""

import json
from collections.abc import Sequence
from functools import partial

from horolog.base.clock import ManualClock
from horolog.broker.base.metrics import Metrics
from horolog.broker.bucket.bucket_entries import TailsCovered
from horolog.broker.bucket.log_side import Around, BucketLog
from horolog.broker.bucket.seams import Opening
from horolog.broker.bucket.shipped_partition import ShippedPartition
from horolog.broker.bucket.shipped_safety import ShippedSafety, ShippingLimits
from horolog.broker.bucket.store_upkeep import LetGo
from horolog.broker.commit.committer import Committer, InternalCommit
from horolog.broker.log.manager import LogManager
from horolog.broker.log.segments import segment_for
from horolog.broker.log.storage import NotHere
from horolog.protocol.errors import ErrorCode
from horolog.protocol.records.entries import iter_records
from tests.simulation.bucket.processes import Process, waits_for_lease
from tests.support.log_model import NEW, NOW_MS, encode, new_storage, small_config
from tests.support.logs import broker_settings

LIMITS = ShippingLimits(flush_ms=20, flush_bytes=2_000, unsafe_bytes=1 << 20)
CONFIG = small_config(segment_bytes=20_000)
READ_BYTES = 10_000


class RecordsOfLog(Sequence):
    """The records of a partition up to its high watermark, read as clients read them; its length counts all that were appended."""

    def __init__(self, process, partition):
        self.process, self.partition, self._read = process, partition, []

    def append(self, record):
        self.partition.append(
            encode(2, 0, [5], [json.dumps(record).encode()]), self.process.wall_ms(), produce_version=NEW
        )
        end = self.partition.log_end_offset
        answered = partial(self._answered, end, record)
        self.process.log.committer.submit(InternalCommit([self.partition], answered, durable=False))

    def _answered(self, end, record, failures):
        assert failures or self.partition.high_watermark >= end, "a producer is answered before readers see its records"
        if failures and failures[self.partition].error == ErrorCode.NOT_LEADER_OR_FOLLOWER:
            self.process.world.refused.add(record)

    def __len__(self):
        return self.partition.log_end_offset

    def __getitem__(self, which):
        while len(self._read) < self.partition.high_watermark:
            data, before = self._next(), len(self._read)
            for one in iter_records(data[: self._whole(data)]):
                if one.offset >= len(self._read):
                    assert one.offset == len(self._read), "records follow each other"
                    self._read.append(tuple(json.loads(one.value)))
            assert len(self._read) > before, f"a record at {before}"
            assert len(self._read) > before, "all records below the high watermark are there"
        return self._read[which]

    def _next(self):
        """The next records, those of a segment in the bucket as it lies there."""
        try:
            return self.partition.read(len(self._read), READ_BYTES)
        except NotHere:
            segments = self.partition.segments
            segment = segments[segment_for(segments, len(self._read))]
            return self.process.world.store.objects[segment.log.key]

    @staticmethod
    def _whole(data):
        """A slice may be cut inside of a batch."""
        end = 0
        while end + 12 <= len(data) and end + 12 + int.from_bytes(data[end + 8 : end + 12], "big") <= len(data):
            end += 12 + int.from_bytes(data[end + 8 : end + 12], "big")
        return end


class LedLog:
    """A partition that is open in a process."""

    def __init__(self, process, partition):
        self.partition, self.records = partition, RecordsOfLog(process, partition)

    @property
    def high_watermark(self):
        return self.partition.high_watermark


class ProcessLoop:
    """The event loop of a process, in virtual time."""

    def __init__(self, process):
        self._process = process

    def call_soon(self, action, *arguments):
        return self.call_later(0, action, *arguments)

    def call_later(self, seconds, action, *arguments):
        return self._process.later(seconds, partial(action, *arguments))


class MachineClock(ManualClock):
    """The wall clock stands still, the other one goes with the machine."""

    def __init__(self, process):
        super().__init__(NOW_MS)
        self.monotonic = process.now


class RealLog:
    """`seams.LogSide` over a folder in memory; its partitions are `LedLog`s."""

    def __init__(self, process, wal):
        self.process = process
        loop, clock = ProcessLoop(process), MachineClock(process)
        self.logs = LogManager(["/data"], process.disk, clock, broker_settings(), kind=ShippedPartition)
        safety = ShippedSafety(loop, lambda: LIMITS, self.shown, process.now)
        self.committer = Committer(loop, safety, lambda _: None, Metrics(), process.now)
        let_go = LetGo(self.tails_covered, self.spent)
        self.log = BucketLog(
            Around(loop, clock, process.world.nonce, let_go=let_go), process.access, self.logs, safety, self
        )
        self.log.begin(wal)

    def shown(self, partitions):
        self.process.world.verify_acknowledged(self.process)

    # -- what the log's half asks

    def fenced(self, fence):
        self.process.watch.wal_ended()

    def proof_of_life(self, sent_s):
        self.process.watch.lease.proved(sent_s)

    def lineages(self):
        return self.process.changes.state.lineages

    def tails_covered(self, epochs):
        self.process.changes.make(lambda _: TailsCovered(epochs), lambda _: None)

    def spent(self, wals):
        state = self.process.changes.state
        return state.spent(wals) if min(state.members, default=None) == self.process.node else ()

    # -- what the cluster's half asks

    def open_from(self, opening, opened):
        self.log.open_from(opening, lambda partition: opened(LedLog(self.process, partition)))

    def settle_start(self, opening, settled):
        self.log.settle_start(opening, settled)

    def give_up(self, place):
        self.log.give_up(place)

    def ship_all(self, leds, done):
        self.log.ship_all([one.partition for one in leds], done)

    def stop(self, *, is_fenced):
        self.log.stop(is_fenced=is_fenced)

    def ship(self):
        """Appends ship themselves."""


class LogProcess(Process):
    """One run of a broker whose log is real. The folder of its machine outlives it, unless the disk is lost."""

    def __init__(self, machine, known_dead):
        if known_dead is None or not hasattr(machine, "disk"):
            machine.disk = new_storage()
        self.disk = machine.disk
        super().__init__(machine, known_dead)

    def new_log(self):
        return RealLog(self, self.wal)

    def open(self, place):
        state = self.changes.state
        opening = Opening("t", place[0], place[1], CONFIG, state.lineages[place])
        self.leading.open(opening, waits=waits_for_lease(state, opening))

    def wall_ms(self):
        """The time that producers' batches come with."""
        return NOW_MS + int(self.world.schedule.now * 1000)

    def serve(self, opening, led):
        led.partition.served_while(self.watch.lease.holds)
        super().serve(opening, led)

    def serve_again(self, led, place):
        led.partition.served_while(self.watch.lease.holds)
        super().serve_again(led, place)

    def die(self):
        super().die()
        if hasattr(self, "log"):
            self.log.logs.abandon()
