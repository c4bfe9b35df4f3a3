"""A broker's process over the simulated store: the real watch, journal, registration and WAL writer, over a log that is a list of records.

Everything that reaches a process waits while its machine stands still, and is lost when it has ended.
"""

import json
from functools import partial

from horolog.broker.base.answers import Answer, run
from horolog.broker.bucket import wal_object
from horolog.broker.bucket.bucket_entries import BrokerRegistered
from horolog.broker.bucket.fence import Fence
from horolog.broker.bucket.handing import Handing
from horolog.broker.bucket.leading import Leading, waits_for_lease
from horolog.broker.bucket.lease import Lease
from horolog.broker.bucket.members_watch import MembersWatch, StoreSurroundings
from horolog.broker.bucket.names import key
from horolog.broker.bucket.passing import Passing
from horolog.broker.bucket.registration import Registration
from horolog.broker.bucket.seams import Opening
from horolog.broker.bucket.store_access import StoreAccess
from horolog.broker.bucket.store_journal import StoreJournal
from horolog.broker.bucket.wal_numbers import identify
from horolog.broker.bucket.wal_object import NewRun
from horolog.broker.bucket.wal_writer import WalWriter
from horolog.broker.cluster.change_driver import ChangeDriver
from horolog.broker.cluster.cluster_state import Close, Make, Open, TopicsCreated
from horolog.broker.on_record.cluster_file import StoredTopic
from tests.support.simulated_store import StoreFront

TOPIC = b"t" * 16
PARTITIONS = 4
LEASE_S = 2.0
PEERS_TIMEOUT_S = 2.0


class Timer:
    is_cancelled = False

    def cancel(self):
        self.is_cancelled = True


class Led:
    """A partition that is open in a process."""

    def __init__(self, epoch, records):
        self.epoch, self.records = epoch, records
        self.sent = self.high_watermark = len(records)


class Records:
    """The log's half: `seams.LogSide` over lists."""

    def __init__(self, process, wal):
        self.process = process
        self.writer = WalWriter(wal, process.access, process.world.nonce, self)
        self.opened, self.ends, self.waiting = {}, {}, []

    def begin(self, wal):
        assert wal == self.writer.wal

    def ship(self):
        runs = []
        for (topic_id, index), led in self.opened.items():
            if led.sent < len(led.records) and self.writer.can_ship:
                data = json.dumps(led.records[led.sent :]).encode()
                base, led.sent = led.sent, len(led.records)
                number = self.writer.next_number
                runs.append(NewRun(topic_id, index, led.epoch, number, base, led.sent, 0, 0, [data]))
        if runs:
            self.ends[self.writer.next_number] = [
                (self.opened[one.topic_id, one.partition], one.next_offset) for one in runs
            ]
            self.writer.ship(runs)

    def safe(self, upto):
        for number in [one for one in self.ends if one < upto]:
            for led, end in self.ends.pop(number):
                led.high_watermark = max(led.high_watermark, end)
        self.process.world.verify_acknowledged(self.process)
        waiting, self.waiting = self.waiting, []
        for leds, done in waiting:
            self.ship_all(leds, done)

    def fenced(self, fence):
        assert fence is None or isinstance(fence, Fence)
        waiting, self.waiting = self.waiting, []
        for _, done in waiting:
            done(None)
        self.process.watch.wal_ended()

    def ship_all(self, leds, done):
        if self.writer.is_fenced:
            done(None)
        elif all(led.high_watermark == len(led.records) for led in leds if led in self.opened.values()):
            done(self.writer.safe_end)
        else:
            self.waiting.append((leds, done))
            self.ship()

    def give_up(self, place):
        self.opened.pop(place, None)
        self.safe(self.writer.safe_end)

    def open_from(self, opening, opened):
        run(self._open(opening, opened))

    def settle_start(self, opening, settled):
        settled()

    async def _open(self, opening, opened):
        while (records := await self._read(opening)) is None:
            await Answer(partial(self.process.pause, 0.1))
        led = self.opened[opening.place] = Led(opening.epoch, records)
        opened(led)

    async def _read(self, opening):
        """All records of the lineage; None if something is not there yet, or was fenced in vain."""
        records = []
        for stretch in opening.lineage[:-1]:
            objects = await Answer(partial(self._read_all, [key(stretch.wal.folder, n) for n in range(stretch.end)]))
            for number, data in enumerate(objects):
                if data is None or isinstance(identify(data, stretch.wal, number), Fence):
                    return None
                records += records_in(data, opening.place, stretch.epoch)
        return records

    def _read_all(self, keys, done):
        """All of them at once."""
        found = {}

        async def read(one):
            found[one] = await self.process.access.read(one)
            if len(found) == len(keys):
                done([found[each] for each in keys])

        for one in keys:
            run(read(one))
        if not keys:
            done([])


def records_in(data, place, epoch):
    return [
        tuple(record)
        for one in wal_object.decode(data).runs
        if (one.topic_id, one.partition, one.leader_epoch) == (*place, epoch)
        for record in json.loads(data[one.position : one.end])
    ]


class Process:
    """One run of a broker on a machine."""

    watch_class, leading_class = MembersWatch, Leading

    def __init__(self, machine, known_dead):
        self.machine, self.world, self.node = machine, machine.world, machine.node
        self.is_dead, self.listens, self.is_stopping = False, False, False
        self.access = StoreAccess(StoreFront(self, self.world.store), self.pause)
        self.journal = StoreJournal(self.access, self.world.nonce, self.now)
        self.served, self.watch = {}, None
        self.host = f"process {self.world.nonce().decode().strip()}"
        run(self.start(known_dead))

    # -- time

    def now(self):
        return self.machine.now()

    def when_awake(self, action):
        wait = self.machine.awake_at - self.world.schedule.now
        if self.is_dead:
            return
        if wait > 0:
            self.world.schedule.later(wait, lambda: self.when_awake(action))
        else:
            action()

    def pause(self, seconds, done):
        self.later(seconds, lambda: done(None))

    def later(self, seconds, action):
        timer = Timer()
        self.world.schedule.later(
            seconds / self.machine.rate, lambda: self.when_awake(lambda: None if timer.is_cancelled else action())
        )
        return timer

    # -- the start and the end

    async def start(self, known_dead):
        registration = Registration(self.access, self.journal, self.world.nonce, self.probe)
        await registration.found("cluster")
        joined = self.joined = await registration.register(
            BrokerRegistered(self.node, self.host, ()), known_dead, lambda: not self.is_stopping
        )
        if joined is None:
            self.end_unregistered()
            return
        self.wal = self.machine.last_wal = joined.wal
        lease = Lease(LEASE_S, self.now)
        around = StoreSurroundings(self.access, self, self.later, self.world.nonce)
        self.watch = self.watch_class(self.wal, around, lease, PEERS_TIMEOUT_S)
        self.journal.read = self.watch.journal_read
        self.changes = ChangeDriver(
            self.journal,
            self.node,
            self.carry_out,
            self.watch.announce,
            lambda _: self.watch.applied(),
            is_shared=True,
        )
        self.log = self.new_log()
        self.leading = self.leading_class(self.log, lease, self.later, self.serve)
        self.handing = Handing(self.wal, self.changes, self.log, self, Passing(self.later, self.now))
        self.changes.begin(joined.state, is_news=False)
        for place in joined.state.led_by(self.node):
            self.open(place)
        self.watch.begin(self.changes, self)
        self.changes.make(self.create_topic, lambda _: None, waits=False)
        self.listens = True

    def new_log(self):
        return Records(self, self.wal)

    def create_topic(self, state):
        topic = StoredTopic("t", TOPIC, PARTITIONS, {})
        return None if "t" in state.topics or len(state.members) < 2 else TopicsCreated((topic,))

    def probe(self, member, done):
        done(False)

    def die(self):
        self.is_dead = True
        self.access.close()

    def members_are(self, nodes):
        if "t" not in self.changes.state.topics:
            self.changes.make(self.create_topic, lambda _: None, waits=False)

    def fenced(self, successor):
        """The process begins anew."""
        assert successor is None or successor.incarnation > self.wal.incarnation
        self.machine.end_process()
        self.world.schedule.later(0.1, self.machine.start)

    def stop(self):
        if not self.is_stopping:
            self.is_stopping = True
            if self.watch is not None:
                run(self.leave())

    def end_unregistered(self):
        """It was stopped while it registered."""
        self.machine.end_process()
        self.world.unregistered(self)

    async def leave(self):
        self.watch.end()
        await self.handing.leave()
        self.machine.end_process()

    # -- what entries ask

    def carry_out(self, steps):
        for step in steps:
            match step:
                case Make(topic, indexes):
                    for index in indexes:
                        self.open((topic.id, index))
                case Open(_, index, _):
                    self.open((TOPIC, index))
                case Close(_, index):
                    self.served.pop((TOPIC, index), None)
                    self.leading.close((TOPIC, index))
        return {}

    def open(self, place):
        state = self.changes.state
        opening = Opening("t", place[0], place[1], None, state.lineages[place])
        self.leading.open(opening, waits=waits_for_lease(state, opening))

    def serve(self, opening, led):
        self.served[opening.place] = led

    def take_away(self, place):
        return self.served.pop(place, None)

    def open_no_more(self):
        self.leading.end()

    def serve_again(self, led, place):
        self.served[place] = led

    # -- links

    def ping(self, node, number, done):
        self.world.links.ping(self, node, number, done)

    # -- clients

    def append(self, place, record):
        """Whether this process leads the partition, and takes the record."""
        led = self.served.get(place)
        if led is None:
            return None
        led.records.append(record)
        self.log.ship()
        return led

    def high_watermark(self, place):
        """What a reader gets; None if this process does not answer."""
        led = self.served.get(place)
        return None if led is None or not self.watch.lease.holds() else led
