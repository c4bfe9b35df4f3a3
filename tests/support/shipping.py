"""A partition whose records count once they are shipped, a store that waits for the test, and a loop that stands still."""

import itertools

from horolog.broker.bucket.names import Wal
from horolog.broker.bucket.shipped_partition import ShippedPartition
from horolog.broker.bucket.store_access import StoreAccess
from horolog.broker.bucket.wal_writer import WalWriter
from horolog.broker.log.partition import Resources
from horolog.broker.log.recovery import PartitionFolder, create_partition
from horolog.stores.object_store import Created, Outcome
from tests.support.log_model import NEW, NOW_MS, encode, new_storage, small_config

TOPIC_ID = b"t" * 16
WAL = Wal(2, 17)
MADE, TAKEN, UNKNOWN = Created(Outcome.MADE), Created(Outcome.TAKEN), Created(Outcome.UNKNOWN, "no answer")


def new_partition(index=0, resources=None):
    resources = resources or Resources(new_storage(), kind=ShippedPartition)
    place = PartitionFolder("t", index, f"/data/t-{index}")
    return create_partition(place, TOPIC_ID, small_config(), resources, NOW_MS)


def append(partition, *timestamps, is_written=True):
    for timestamp in timestamps:
        partition.append(encode(2, 0, [timestamp], [b"v" * 40]), NOW_MS, produce_version=NEW)
    if is_written:
        partition.flush()


class HeldStore:
    """Creates wait until the test answers them; reads are answered at once."""

    def __init__(self):
        self.waiting, self.objects = {}, {}

    def create(self, key, data, done):
        self.waiting[key] = data, done

    def get(self, key, done):
        done(self.objects.get(key))

    def answer(self, key, created=MADE):
        data, done = self.waiting.pop(key)
        if created is MADE:
            self.objects.setdefault(key, data)
        done(created)


class Handle:
    def __init__(self, action):
        self.action = action

    def cancel(self):
        self.action = None


class StillLoop:
    """Runs due actions when the test lets time pass."""

    def __init__(self):
        self.now, self._ids, self.due = 0.0, itertools.count(), []

    def call_soon(self, action, *arguments):
        return self.call_later(0, action, *arguments)

    def call_later(self, seconds, action, *arguments):
        handle = Handle(lambda: action(*arguments))
        self.due.append((self.now + seconds, next(self._ids), handle))
        return handle

    def advance(self, seconds=0.0):
        until = self.now + seconds
        while (first := min(self.due, default=None)) and first[0] <= until:
            self.due.remove(first)
            self.now = max(self.now, first[0])
            if first[2].action is not None:
                first[2].action()
        self.now = until


def writer_over(store):
    """What makes a writer of `WAL` over a store, for events."""
    nonces = itertools.count()
    access = StoreAccess(store, lambda seconds, done: done(None))
    return lambda events: WalWriter(WAL, access, lambda: b"%16d" % next(nonces), events)
