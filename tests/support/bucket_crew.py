"""Brokers over a simulated store with their real clusters, each with a folder in memory; the log's half makes partitions that are empty."""

from functools import partial

from horolog.base.clock import ManualClock
from horolog.broker.base.answers import run
from horolog.broker.bucket.bucket_entries import BrokerRegistered
from horolog.broker.bucket.bucket_membership import BucketMembership
from horolog.broker.bucket.handing import Handing
from horolog.broker.bucket.lease import Lease
from horolog.broker.bucket.members_watch import MembersWatch, StoreSurroundings
from horolog.broker.bucket.registration import Registration
from horolog.broker.bucket.shipped_partition import ShippedPartition
from horolog.broker.bucket.store_access import StoreAccess
from horolog.broker.bucket.store_cluster import StoreCluster
from horolog.broker.bucket.store_journal import StoreJournal
from horolog.broker.config.settings import Layers, from_layers
from horolog.broker.log.manager import LogManager, share, whole
from horolog.broker.log.storage import MemoryStorage
from horolog.broker.on_record.cluster_file import ClusterFile
from tests.support.simulated_store import CALM, Schedule, SimulatedStore

NOW_MS = 1_750_000_000_000
OPENS_WITHIN_S = 0.05


class EmptyLogs:
    """The log's half: all partitions are empty."""

    def __init__(self, broker):
        self.broker, self.opened, self.wanted = broker, {}, {}
        self.removed, self.moves, self.is_led = [], [], True

    def open_from(self, opening, opened):
        self.wanted[opening.place] = opening
        self.broker.later(OPENS_WITHIN_S, partial(self._open, opening, opened))

    def _open(self, opening, opened):
        if self.wanted.get(opening.place) is not opening:
            return
        del self.wanted[opening.place]
        self._drop(opening.place)
        partition = self.broker.logs.create(opening.topic, opening.partition, opening.config, opening.topic_id)
        partition.lead(opening.epoch)
        self.opened[opening.place] = partition
        opened(partition)

    def settle_start(self, opening, settled):
        settled()

    def give_up(self, place):
        self.wanted.pop(place, None)
        self._drop(place)

    def _drop(self, place):
        partition = self.opened.pop(place, None)
        if partition is not None:
            self.broker.logs.delete(partition)

    def remove(self, place):
        self.removed.append(place)
        self.give_up(place)

    def move_start(self, partition, offset, moved):
        self.moves.append((partition, offset))
        moved(self.is_led)

    def ship_all(self, partitions, done):
        done(0)


class BucketBroker:
    """One run of a broker; it never loses its connections."""

    def __init__(self, crew, node, storage, **settings):
        self.crew, self.node, self.is_dead, self.fenced_by = crew, node, False, []
        self.live, self.led, self.led_elsewhere = [], [], []
        static = {"node.id": str(node), **{key.replace("_", "."): str(value) for key, value in settings.items()}}
        self.settings = from_layers(Layers(static=static))
        self.storage = storage
        of_one = whole(node)
        of_one.find = share.nothing
        self.logs = LogManager(["/data"], storage, ManualClock(NOW_MS), self.settings, of_one, ShippedPartition)
        access = StoreAccess(crew.store, lambda seconds, done: self.later(seconds, partial(done, None)))
        self.journal = StoreJournal(access, crew.nonce, self.now)
        self.access = access
        run(self._start())

    async def _start(self):
        registration = Registration(self.access, self.journal, self.crew.nonce, lambda _, done: done(False))
        joined = await registration.register(BrokerRegistered(self.node, "machine", ()), None)
        lease = Lease(2.0, self.now)
        around = StoreSurroundings(self.access, self, self.later, self.crew.nonce)
        self.watch = MembersWatch(joined.wal, around, lease, 2.0)
        self.journal.read = self.watch.journal_read
        self.membership = BucketMembership(
            "cluster", joined, self.journal, self.watch, self.timer, self.fenced_by.append
        )
        file = ClusterFile(self.storage, "/data")
        self.cluster = StoreCluster("cluster", self.settings, self.logs, file, self.membership, self.crew.new_id)
        self.cluster.lead_by(EmptyLogs(self), lease, self.later)
        self.cluster.on_led = lambda *one: self.led.append(one)
        self.cluster.on_led_elsewhere = lambda *one: self.led_elsewhere.append(one)
        self.membership.follow_live(self.live.append)
        self.handing = Handing(
            joined.wal, self.cluster.changes, self.cluster._leading._log_side, self.cluster, self.cluster.passing
        )
        self.cluster.open(NOW_MS)
        self.crew.brokers[self.node] = self

    def now(self):
        return self.crew.schedule.now

    def later(self, seconds, action):
        self.crew.schedule.later(seconds, lambda: None if self.is_dead else action())

    def timer(self, seconds, action):
        is_on = [True]
        self.later(seconds, lambda: action() if is_on else None)
        return _Timer(is_on)

    def ping(self, node, number, done):
        other = self.crew.brokers.get(node)
        if other is not None and not other.is_dead and not self.is_dead:
            other.watch.pinged(number, done)

    def kill(self):
        self.is_dead = True
        self.access.close()
        self.logs.abandon()


class _Timer:
    def __init__(self, is_on):
        self._is_on = is_on

    def cancel(self):
        self._is_on.clear()


class BucketCrew:
    """Brokers, by their numbers."""

    def __init__(self, *nodes, **settings):
        self.schedule = Schedule()
        self.store = SimulatedStore(self.schedule, 1, CALM)
        self.brokers, self._nonces, self._ids, self.settings = {}, 0, 0, settings
        for node in nodes:
            self.start(node)

    def start(self, node, storage=None, runs_for_s=1):
        broker = BucketBroker(self, node, storage or MemoryStorage(), **self.settings)
        while node not in self.brokers or self.brokers[node] is not broker:
            self.run_for(0.01)
        self.run_for(runs_for_s)
        return broker

    def __getitem__(self, node):
        return self.brokers[node].cluster

    def run_for(self, seconds):
        self.schedule.run(until=self.schedule.now + seconds)

    def nonce(self):
        self._nonces += 1
        return b"%16d" % self._nonces

    def new_id(self):
        self._ids += 1
        return self._ids.to_bytes(16)

    def served(self, name):
        """Which brokers serve each partition of a topic."""
        found = {}
        for node, broker in self.brokers.items():
            topic = None if broker.is_dead else broker.cluster.topics.get(name)
            for partition in () if topic is None else topic.led_here:
                found.setdefault(partition.index, []).append(node)
        return found
