"""A partition whose records count once they are shipped, stores that answer when a test says or at once, and a loop that stands still."""

import itertools

from horolog.broker.base.answers import run
from horolog.broker.bucket import wal_object
from horolog.broker.bucket.mark import WalMark
from horolog.broker.bucket.names import Wal, key
from horolog.broker.bucket.shipped_partition import ShippedPartition
from horolog.broker.bucket.store_access import StoreAccess
from horolog.broker.bucket.wal_object import Identity, NewRun
from horolog.broker.bucket.wal_writer import WalWriter
from horolog.broker.log.partition import Resources
from horolog.broker.log.recovery import PartitionFolder, create_partition
from horolog.stores.object_store import Created, Outcome, Stored
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


class ReadyStore:
    """Answers at once, from `objects`; `before_read` may change them first."""

    def __init__(self):
        self.objects, self.asked, self.before_read = {}, [], lambda key: None

    def create(self, key, data, done):
        done(MADE if self.objects.setdefault(key, data) is data else TAKEN)

    def get(self, key, done):
        self._read(key, done, 0, None)

    def get_range(self, key, start, end, done):
        self._read(key, done, start, end)

    def _read(self, key, done, start, end):
        self.before_read(key)
        self.asked.append(key)
        data = self.objects.get(key)
        done(None if data is None else data[start:end])

    def list(self, prefix, done, limit=None):
        found = [Stored(key, len(data), 0) for key, data in self.objects.items() if key.startswith(f"{prefix}/")]
        done(found[:limit])

    def folders(self, prefix, done):
        ReadyStore.list(
            self, prefix, lambda found: done(list({one.key[len(prefix) + 1 :].partition("/")[0] for one in found}))
        )

    def delete(self, key, done):
        self.objects.pop(key, None)
        done(None)


def access_to(store):
    return StoreAccess(store, lambda seconds, done: done(None))


def batch_at(offset, epoch=0, size=40, timestamp=5):
    """A batch of one record as a leader has written it."""
    data = bytearray(encode(2, 0, [timestamp], [b"v" * size]))
    data[:8] = offset.to_bytes(8, "big")
    data[12:16] = epoch.to_bytes(4, "big")
    return bytes(data)


def run_at(offset, number, *, count=1, partition=0, epoch=0, size=40, topic_id=TOPIC_ID):
    pieces = [batch_at(offset + each, epoch, size) for each in range(count)]
    return NewRun(topic_id, partition, epoch, number, offset, offset + count, 5, 5, pieces)


def put_object(store, wal, number, *runs):
    """An object of a WAL under its number."""
    nonce = b"%08d%08d" % (wal.incarnation, number)
    store.objects[key(wal.folder, number)] = wal_object.encode(Identity(wal, number, number + 1, nonce), runs)


def put_merged(store, wal, first, upto, *runs, mark_number=0, merged=()):
    """A merged object of several numbers, and the mark that says so; the numbers are removed."""
    nonce = b"m%07d%08d" % (first, upto)
    store.objects[wal.merged(nonce)] = wal_object.encode(Identity(wal, first, upto, nonce, is_merged=True), runs)
    mark = WalMark(wal, mark_number, upto, (*merged, nonce), nonce)
    store.objects[key(wal.marks, mark_number)] = mark.encode()
    for number in range(first, upto):
        store.objects.pop(key(wal.folder, number), None)
    return nonce


def in_full(steps):
    """The result of a coroutine whose answers are all there at once."""
    results = []

    async def keep():
        results.append(await steps)

    run(keep())
    (result,) = results
    return result
