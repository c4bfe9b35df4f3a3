"""The machines of `broker.bucket` in a simulated store, under the promises of the model: brokers that lead one partition in turn.

Each broker ships records to its WAL, merges, follows the journal, fences the leader or is given the lead, and takes over from the WALs of
the lineage alone. It may die, or stand still at any moment for any time. After every change in the store, `Observer` checks that a leader
that took over now would find all that clients were told. `bug` names a planted bug.
"""

import json
import random
from functools import lru_cache

from horolog.broker.base.answers import Answer, run
from horolog.broker.bucket import mark as marks
from horolog.broker.bucket import wal_object
from horolog.broker.bucket.fence import Fence
from horolog.broker.bucket.names import LOG, Wal, key, number_of
from horolog.broker.bucket.store_access import StoreAccess
from horolog.broker.bucket.wal_fencing import fence, newest_mark
from horolog.broker.bucket.wal_merging import Merge, merge
from horolog.broker.bucket.wal_numbers import identify
from horolog.broker.bucket.wal_object import NewRun
from horolog.broker.bucket.wal_writer import WalWriter
from tests.model.state import FENCE, Broken, Entry, lineage
from tests.support.simulated_store import Schedule, SimulatedStore, StoreFront

BROKERS = 4
SECONDS = 60
TOPIC = b"t" * 16


def new_run(epoch, number, base, records):
    data = json.dumps(records).encode()
    return NewRun(TOPIC, 0, epoch, number, base, base + len(records), 0, 0, [data])


@lru_cache(10_000)
def runs_of(data):
    """[(number, epoch, records)] of an object of a WAL, in order."""
    return [
        (one.number, one.leader_epoch, [tuple(each) for each in json.loads(data[one.position : one.end])])
        for one in wal_object.decode(data).runs
    ]


@lru_cache(10_000)
def entry_of(data):
    content = json.loads(data)
    return Entry(*content[:4])


class Observer:
    """Sees the whole store at once, and what clients were told."""

    def __init__(self, store, bug):
        self.store, self.bug, self.told = store, bug, {}
        store.effects.append(lambda key: self.verify())

    def tell(self, broker):
        for offset in range(broker.high_watermark):
            was = self.told.setdefault(offset, broker.log[offset])
            if was != broker.log[offset]:
                raise Broken(f"two records at offset {offset}: {was} and {broker.log[offset]}")
        self.verify()

    def journal(self):
        entries = []
        while (data := self.store.objects.get(key(LOG, len(entries) + 1))) is not None:
            entries.append(entry_of(data))
        return entries

    def verify(self):
        log = self.found()
        for offset, record in self.told.items():
            if offset >= len(log) or log[offset] != record:
                there = log[offset] if offset < len(log) else "nothing"
                raise Broken(f"offset {offset}: a client was told {record}, a new leader finds {there}")

    def found(self):
        """What a leader that took over now would find."""
        line, _ = lineage(self.journal(), self.bug)
        log = []
        for epoch, (node, end) in enumerate(line):
            wal, objects = Wal(node, node), self.store.objects
            upto = 0
            newest = max((number_of(one) for one in objects if one.startswith(f"{wal.marks}/")), default=None)
            if newest is not None:
                mark = marks.decode(objects[key(wal.marks, newest)])
                upto = mark.upto
                for nonce in mark.merged:
                    log += records_in(objects[wal.merged(nonce)], epoch, end)
            number = upto
            while end is None or number < end:
                data = objects.get(key(wal.folder, number))
                if data is None or not wal_object.is_object(data):
                    if end is not None:
                        return [*log, None]
                    break
                log += records_in(data, epoch, end)
                number += 1
        return log


def records_in(data, epoch, end, *, any_epoch=False):
    return [
        record
        for number, of, records in runs_of(data)
        if (of == epoch or any_epoch) and (end is None or number < end)
        for record in records
    ]


class Front(StoreFront):
    """With pauses between requests."""

    def pause(self, seconds, done):
        self._store.schedule.later(seconds, lambda: self._process.when_awake(lambda: done(None)))


class Broker:
    """One incarnation."""

    writer_class = WalWriter

    def __init__(self, world, index):
        self.world, self.index, self.wal = world, index, Wal(index, index)
        self.front = Front(self, world.store)
        self.access = StoreAccess(self.front, self.front.pause)
        self.writer = self.writer_class(self.wal, self.access, world.nonce, self)
        self.role, self.is_dead, self.awake_at = "idle", False, 0.0
        self.entries, self.is_following, self.is_busy = [], False, False
        self.log, self.sent, self.high_watermark, self.term, self.since = [], 0, 0, 0, 0
        self.ends, self.shipped = {}, {}
        self.mark, self.is_merging = None, False
        world.schedule.later(0.1 * index, self.tick)

    @property
    def bug(self):
        return self.world.bug

    def when_awake(self, action):
        wait = self.awake_at - self.world.schedule.now
        if self.is_dead:
            return
        if wait > 0:
            self.world.schedule.later(wait, lambda: self.when_awake(action))
        else:
            action()

    # -- acts

    def tick(self):
        self.when_awake(self.act)
        if self.world.schedule.now < SECONDS and not self.is_dead:
            self.world.schedule.later(self.world.chance.uniform(0.1, 0.6), self.tick)

    def act(self):
        chance = self.world.chance
        if not self.is_following:
            self.is_following = True
            run(self.follow())
        if self.role == "leads":
            self.lead(chance)
        if self.role == "idle" and not self.is_busy and chance.random() < self.world.fencing_rate:
            self.is_busy = True
            run(self.fence_leader())
        point = chance.random()
        if point < 0.004 and self.index < BROKERS - 1:
            self.is_dead = True
        elif point < 0.02:
            self.awake_at = self.world.schedule.now + chance.uniform(0.1, 15)

    def lead(self, chance):
        for _ in range(chance.randrange(3)):
            self.log.append((self.index, self.world.record()))
        self.ship()
        if chance.random() < 0.15 and not self.is_merging:
            self.is_merging = True
            run(self.merge())
        if chance.random() < 0.03 and not self.is_busy:
            self.is_busy, self.role = True, "gives"
            run(self.hand_over())

    def ship(self):
        if self.sent < len(self.log) and self.writer.can_ship:
            number, records = self.writer.next_number, self.log[self.sent :]
            run_of_it = new_run(self.term, number, self.sent, records)
            self.shipped[number] = run_of_it
            self.sent = len(self.log)
            self.ends[number] = self.sent
            self.writer.ship([run_of_it])

    def safe(self, upto):
        if self.role in {"leads", "gives"} and upto - 1 >= self.since:
            self.high_watermark = max(self.high_watermark, self.ends[upto - 1])
            self.world.observer.tell(self)

    def fenced(self, fence):
        assert fence is None or isinstance(fence, Fence)
        self.role = "over"

    async def merge(self):
        if self.mark is None:
            self.mark = await newest_mark(self.access, self.wal)
        first, upto = 0 if self.mark is None else self.mark.upto, self.writer.safe_end
        if self.bug == "merge_unsafe":
            upto = self.writer.next_number
        if first < upto:
            runs = [self.shipped[number] for number in range(first, upto)]
            wanted = Merge(upto, runs, first, () if self.mark is None else self.mark.merged)
            self.mark = await self.world.merge(self.access, self.writer, self.mark, wanted, self.world.nonce())
        self.is_merging = False

    # -- the journal

    async def append(self, entry):
        """Whether the entry is the next; the broker has read all before it."""
        number = len(self.entries) + 1
        data = json.dumps([*entry, self.world.nonce().hex()]).encode()
        other = await self.access.create(key(LOG, number), data)
        return other is None

    async def follow(self):
        while (data := await self.access.read(key(LOG, len(self.entries) + 1))) is not None:
            self.entries.append(entry_of(data))
            self.apply()
        self.is_following = False

    def apply(self):
        line, fenced = lineage(self.entries, self.bug)
        leader = line[-1][0]
        if self.index in fenced or self.role == "over":
            self.role = "over"
        elif leader == self.index and self.role == "idle":
            self.role, self.term = "reading", len(line) - 1
            run(self.take_over(line))
        elif leader != self.index and self.role == "gives":
            self.role = "idle"

    async def fence_leader(self):
        line, fenced = lineage(self.entries, self.bug)
        node = line[-1][0]
        wal = Wal(node, node)
        if node != self.index and node not in fenced:
            if self.bug == "entry_without_fence":
                number = len(await self.access.list(wal.folder))
            else:
                number = await self.world.fence(self.access, wal, self.index, self.world.nonce())
            line, fenced = lineage(self.entries, self.bug)
            is_news = node not in fenced and line[-1][0] == node
            if self.role == "idle" and (is_news or self.bug == "entries_taken_blindly"):
                await self.append(Entry(FENCE, node, number, self.index))
        self.is_busy = False

    async def hand_over(self):
        """Ship all, wait until it is safe, then append; only its outcome says who leads."""
        while self.role == "gives" and not self.is_shipped and self.bug != "hand_over_unshipped":
            self.ship()
            await self.pause(0.1)
        heir = self.world.chance.choice([one for one in range(BROKERS) if one != self.index])
        if self.role == "gives":
            entry = Entry("hand", self.index, self.writer.safe_end, heir)
            if self.bug == "resume_while_unknown":
                self.world.schedule.later(0.3, self.resume)
            is_mine = await self.append(entry)
            if not is_mine and self.role == "gives":
                self.resume()  # another entry was first: try again later
        self.is_busy = False

    @property
    def is_shipped(self):
        return self.high_watermark == len(self.log) == self.sent and self.writer.safe_end == self.writer.next_number

    def resume(self):
        if self.role == "gives":
            self.role = "leads"

    async def pause(self, seconds):
        await Answer(lambda done: self.front.pause(seconds, done))

    # -- taking over

    async def take_over(self, line):
        term, log = self.term, None
        while log is None and self.role == "reading":
            log = await self.read_lineage(line[:term])
        if self.role == "reading" and self.term == term and log is not None:
            if self.bug == "local_tail_kept" and self.index == BROKERS - 1:
                old = self.world.brokers[0].log  # whose disk it has
                log = old if old[: len(log)] == log else log
            self.log, self.role, self.since = list(log), "leads", self.writer.next_number
            self.sent = self.high_watermark = len(log)
            self.world.observer.tell(self)

    async def read_lineage(self, line):
        """The log, or None if numbers went while they were read."""
        log = []
        first = max(0, len(line) - 1) if self.bug == "last_wal_only" else 0
        for epoch, (node, end) in enumerate(line):
            if epoch >= first:
                records = await self.read_wal(Wal(node, node), epoch, end)
                if records is None:
                    return None
                log += records
        return log

    async def read_wal(self, wal, epoch, end):
        is_any = self.bug == "runs_of_any_epoch"
        mark, records = await newest_mark(self.access, wal), []
        for nonce in () if mark is None else mark.merged:
            records += records_in(await self.access.read(wal.merged(nonce)), epoch, end, any_epoch=is_any)
        number = 0 if mark is None else mark.upto
        while number < end or self.bug == "strays_replayed":
            data = await self.access.read(key(wal.folder, number))
            if data is None:
                return records if self.bug in {"404_is_end", "strays_replayed"} else None
            if isinstance(identify(data, wal, number), Fence):
                if number < end:
                    return None  # the number was removed since the mark was read, and a late fence came to lie there
            else:
                records += records_in(data, epoch, None if self.bug == "strays_replayed" else end, any_epoch=is_any)
            number += 1
        return records


class World:
    """Everything, from one seed."""

    def __init__(self, seed, bug="", weather=None, *, fence=fence, merge=merge, writer_class=WalWriter):
        self.chance, self.bug = random.Random(seed), bug
        self.fence, self.merge = fence, merge
        self.schedule = Schedule()
        self.store = SimulatedStore(self.schedule, seed + 1, weather)
        self.observer = Observer(self.store, bug)
        self.fencing_rate = self.chance.choice([0.004, 0.02, 0.06])
        self.records, self.nonces = 0, 0
        Broker.writer_class = writer_class
        self.brokers = [Broker(self, index) for index in range(BROKERS)]
        self.brokers[0].role = "leads"

    def record(self):
        self.records += 1
        return self.records

    def nonce(self):
        self.nonces += 1
        return b"%16d" % self.nonces

    def run(self):
        """The broken promise, or nothing."""
        try:
            self.schedule.run(until=2 * SECONDS)
        except Broken as broken:
            return str(broken)
        stuck = [one.index for one in self.brokers if one.role == "reading" and not one.is_dead]
        return f"brokers {stuck} never end their take-over" if stuck else ""
