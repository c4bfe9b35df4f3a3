"""Fencing, over a store that answers at once."""

import pytest

from horolog.broker.base.answers import run
from horolog.broker.bucket import wal_fencing, wal_object
from horolog.broker.bucket.fence import Fence, decode
from horolog.broker.bucket.mark import WalMark
from horolog.broker.bucket.names import Wal, key
from horolog.broker.bucket.sealed_lines import FormatError
from horolog.broker.bucket.store_access import StoreAccess
from horolog.broker.bucket.wal_object import Identity
from tests.support.simulated_store import CALM, Schedule, SimulatedStore

WAL = Wal(2, 17)
NONCE = bytes(16)


@pytest.fixture
def store():
    return SimulatedStore(Schedule(), 0, CALM)


def result_of(store, steps):
    found = []

    async def collect():
        found.append(await steps(StoreAccess(store, store.schedule.pause)))

    run(collect())
    store.schedule.run()
    return found[0]


def fenced(store, by=3, nonce=NONCE):
    return result_of(store, lambda access: wal_fencing.fence(access, WAL, by, nonce))


def put_data(store, *numbers):
    for number in numbers:
        store.objects[key(WAL.folder, number)] = wal_object.encode(Identity(WAL, number, number + 1, NONCE), [])


def put_mark(store, number, upto):
    store.objects[key(WAL.marks, number)] = WalMark(WAL, number, upto, (), NONCE).encode()


def test_the_first_free_number_is_fenced(store):
    assert fenced(store) == 0
    put_data(store, 1, 2, 3)
    assert fenced(store, by=4) == 0, "another broker's fence does as well"
    assert decode(store.objects[key(WAL.folder, 0)]) == Fence(WAL, 0, 3, NONCE)


def test_many_numbers_are_asked_for_behind_the_newest_mark(store):
    put_data(store, *range(5, 100))
    put_mark(store, 0, 5)
    assert fenced(store) == 100
    assert result_of(store, lambda access: wal_fencing.first_without_data(access, WAL, 5)) == 100


@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 100, 496, 497, 511, 512, 700])
def test_the_end_of_many_numbers_is_found_with_few_requests(store, count):
    put_data(store, *range(5, 5 + count))
    asked, get_range = [], store.get_range
    store.get_range = lambda name, *others: (asked.append(name), get_range(name, *others))
    assert result_of(store, lambda access: wal_fencing.first_without_data(access, WAL, 5)) == 5 + count
    assert len(asked) < 52 * (1 + count // 497)


@pytest.mark.parametrize("number", range(8, 24))
def test_a_gap_that_a_writer_has_left_is_fenced(store, number):
    """It had sent some numbers behind one that did not arrive."""
    put_data(store, *range(number), *range(number + 1, number + wal_fencing.MAX_UNSAFE))
    assert fenced(store) == number


@pytest.mark.parametrize("number", [0, 7, *range(13, 34)])
def test_a_fence_among_data_is_found_by_the_first_create(store, number):
    put_data(store, *range(number + wal_fencing.MAX_UNSAFE))
    store.objects[key(WAL.folder, number)] = Fence(WAL, number, 1, NONCE).encode()
    creates, create = [], store.create
    store.create = lambda name, *others: (creates.append(name), create(name, *others))
    assert fenced(store) == number, "what lies behind it was pipelined, and never acknowledged"
    assert creates == [key(WAL.folder, number)]


def test_data_that_arrives_first_moves_the_fence(store):
    put_data(store, 0, 1)
    store.schedule.later(0.06, lambda: put_data(store, 2, 3))
    assert fenced(store) in {2, 4}
    assert isinstance(decode(store.objects[key(WAL.folder, fenced(store))]), Fence)


def test_numbers_below_the_mark_count_as_used(store):
    put_mark(store, 0, 3)
    put_mark(store, 1, 5)
    store.objects[f"{WAL.marks}/other"] = b""
    put_data(store, 1, 5)
    assert fenced(store) == 6


def test_a_number_that_was_in_use_makes_the_fence_void(store):
    """The mark is made, and its numbers removed, between the fencer's list and its fence."""
    put_data(store, *range(6))

    def merged_meanwhile(_key):
        if key(WAL.folder, 6) in store.objects and key(WAL.marks, 0) not in store.objects:
            put_data(store, 7, 8)
            put_mark(store, 0, 8)

    store.effects.append(merged_meanwhile)
    assert fenced(store) == 9
    assert result_of(store, lambda access: wal_fencing.is_void(access, WAL, 7))
    assert not result_of(store, lambda access: wal_fencing.is_void(access, WAL, 8))
    assert result_of(store, lambda access: wal_fencing.newest_mark(access, WAL)).upto == 8
    assert result_of(store, lambda access: wal_fencing.newest_mark(access, Wal(3, 1))) is None


def test_a_mark_that_goes_while_it_is_read_is_looked_for_again(store):
    put_mark(store, 0, 3)
    get, gone = store.get, []

    def get_late(name, done):
        if not gone:
            gone.append(name)
            put_mark(store, 1, 4)
            done(None)
        else:
            get(name, done)

    store.get = get_late
    assert result_of(store, lambda access: wal_fencing.newest_mark(access, WAL)).upto == 4


def test_what_does_not_belong_there_is_not_fenced(store):
    store.objects[key(WAL.folder, 0)] = b"nonsense"
    with pytest.raises(FormatError):
        fenced(store)


def test_a_fence_that_is_not_wanted_any_more_is_given_up(store):
    put_data(store, *range(9))
    asked, create = [], store.create

    def create_late(name, *others):
        put_data(store, int(name.rpartition("/")[2]))  # the writer is always ahead
        create(name, *others)

    def is_wanted():
        asked.append(len(asked))
        return len(asked) < 2

    store.create = create_late

    async def steps(access):
        with pytest.raises(wal_fencing.FenceGivenUp, match="2-17 continues at number 11"):
            await wal_fencing.fence(access, WAL, 3, NONCE, is_wanted)

    put_data(store, 9)
    result_of(store, steps)
    assert not [data for data in store.objects.values() if data.startswith(Fence(WAL, 0, 3, NONCE).encode()[:4])]
