"""Merging: the merged object, then the mark, then the removal."""

import pytest

from horolog.broker.base.answers import run
from horolog.broker.bucket import mark, wal_object
from horolog.broker.bucket.mark import WalMark
from horolog.broker.bucket.names import Wal, key
from horolog.broker.bucket.store_access import StoreAccess
from horolog.broker.bucket.wal_merging import Merge, merge
from horolog.broker.bucket.wal_object import NewRun
from horolog.broker.bucket.wal_writer import WalWriter
from tests.support.simulated_store import CALM, Schedule, SimulatedStore

WAL = Wal(2, 17)


class Silent:
    def safe(self, upto): ...

    def fenced(self, fence): ...


def new(number):
    return NewRun(b"t" * 16, 0, 1, number, number, number + 1, 0, 0, [b"batch"])


@pytest.fixture
def setup():
    store = SimulatedStore(Schedule(), 0, CALM)
    access = StoreAccess(store, store.schedule.pause)
    writer = WalWriter(WAL, access, lambda: bytes(16), Silent())
    for number in range(4):
        writer.ship([new(number)])
    store.schedule.run()
    return store, access, writer


def merged(setup, before, upto, nonce, runs, kept=()):
    store, access, writer = setup
    found = []

    async def steps():
        found.append(await merge(access, writer, before, Merge(upto, runs, 0, kept), nonce))

    run(steps())
    store.schedule.run()
    return found[0]


def test_objects_are_merged_marked_and_removed_in_this_order(setup):
    store, _, _ = setup
    changed = []
    store.effects.append(changed.append)
    first = merged(setup, None, 2, b"a" * 16, [new(1), new(0)])
    assert first == WalMark(WAL, 0, 2, (b"a" * 16,), b"a" * 16)
    assert changed == [WAL.merged(b"a" * 16), key(WAL.marks, 0), key(WAL.folder, 0), key(WAL.folder, 1)]
    second = merged(setup, first, 4, b"b" * 16, [new(2), new(3)], first.merged)
    assert (second.number, second.upto, second.merged) == (1, 4, (b"a" * 16, b"b" * 16))
    assert [one for one in store.objects if one.startswith(WAL.folder)] == []
    footer = wal_object.decode(store.objects[WAL.merged(b"b" * 16)])
    assert ([run.number for run in footer.runs], footer.identity.is_merged) == ([2, 3], True)
    assert mark.decode(store.objects[key(WAL.marks, 1)]) == second


def test_only_safe_numbers_are_merged(setup):
    with pytest.raises(ValueError, match="numbers 0 up to 5 cannot be merged"):
        merged(setup, None, 5, bytes(16), [])


def test_merged_objects_that_are_not_kept_go_with_the_mark_before(setup):
    store, _, _ = setup
    first = merged(setup, None, 2, b"a" * 16, [new(0), new(1)])
    second = merged(setup, first, 4, b"b" * 16, [new(1), new(2), new(3)])
    assert second.merged == (b"b" * 16,)
    assert sorted(store.objects) == [key(WAL.marks, 1), WAL.merged(b"b" * 16)]
    third = merged(setup, second, 4, b"c" * 16, [])
    assert (third.upto, third.merged, list(store.objects)) == (4, (), [key(WAL.marks, 2)])


def test_a_mark_of_another_broker_is_taken_up_and_nothing_removed(setup):
    store, _, _ = setup
    other = WalMark(WAL, 0, 4, (), b"o" * 16)
    store.objects[key(WAL.marks, 0)] = other.encode()
    assert merged(setup, None, 2, b"a" * 16, [new(0), new(1)]) == other
    assert key(WAL.folder, 0) in store.objects
