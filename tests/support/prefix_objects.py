"""A prefix as brokers have left it: two that run and one that has ended, a topic of two partitions, merged objects and a manifest."""

from types import SimpleNamespace

from horolog.base.clock import ManualClock
from horolog.broker.bucket.bucket_entries import BrokerRegistered, HandedOver, WalEnded
from horolog.broker.bucket.bucket_state import BucketState
from horolog.broker.bucket.fence import Fence
from horolog.broker.bucket.journal_objects import (
    Founding,
    NumberedEntry,
    encode_founding,
    encode_log_entry,
    encode_snapshot,
)
from horolog.broker.bucket.manifest import Manifest
from horolog.broker.bucket.names import LOG, SNAPSHOTS, Wal, key
from horolog.broker.cluster.cluster_state import Lead, TopicsCreated
from horolog.broker.on_record.cluster_file import StoredTopic
from horolog.stores.memory_store import MemoryStore
from tests.support.shipping import put_merged, put_object, run_at

NONCE = b"n" * 16
ID = b"t" * 16
FIRST, SECOND = (ID, 0), (ID, 1)
ENDED, LIVES = Wal(1, 1), Wal(2, 2)


def append(store, state, entry):
    """The state after an entry that is written to the store."""
    number = state.number + 1
    store.create(key(LOG, number), encode_log_entry(NumberedEntry(number, entry, NONCE)))
    return state.apply(entry)


def new_prefix():
    """Broker 1 has shipped numbers 0 to 3, of which 0 and 1 are merged, and is fenced at 4; broker 2 has shipped 0 to 2 and goes on."""
    store, state = MemoryStore(ManualClock(1_000)), BucketState()
    store.create(key(LOG, 0), encode_founding(Founding("c1", NONCE)))
    for node in (1, 2):
        state = append(store, state, BrokerRegistered(node, f"host{node}", ()))
    leads = ((FIRST, Lead(1, 0)), (SECOND, Lead(1, 0)))
    state = append(store, state, TopicsCreated((StoredTopic("t", ID, 2, {}, {}),), leads))
    state = append(store, state, HandedOver(ENDED, 3, {SECOND: Lead(2, 1)}))
    store.create(key(SNAPSHOTS, state.number), encode_snapshot(state))
    state = append(store, state, WalEnded(ENDED, 4, {FIRST: Lead(2, 1)}))
    made = SimpleNamespace(objects={})
    put_object(made, ENDED, 2, run_at(2, 2), run_at(1, 2, partition=1))
    put_object(made, ENDED, 3, run_at(3, 3))
    put_merged(made, ENDED, 0, 2, run_at(0, 0), run_at(1, 1), run_at(0, 0, partition=1))
    put_object(made, LIVES, 0, run_at(2, 0, partition=1, epoch=1))
    put_object(made, LIVES, 1, run_at(4, 1, epoch=1))
    put_object(made, LIVES, 2, run_at(5, 2, epoch=1))
    for name, data in made.objects.items():
        store.create(name, data)
    store.create(key(ENDED.folder, 4), Fence(ENDED, 4, 2, NONCE).encode())
    for number, start in ((0, 1), (1, 2)):
        one = Manifest(ID, 0, number, 1, start, NONCE)
        store.create(one.key, one.encode())
    return store


def change(store, name, data):
    """Put other bytes, or none, where an object is."""
    store.delete(name)
    if data is not None:
        store.create(name, data)
