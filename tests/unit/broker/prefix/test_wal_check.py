"""The objects of a WAL: those that partitions need, damage, and leftovers."""

from types import SimpleNamespace

import pytest

from horolog.broker.bucket.fence import Fence
from horolog.broker.bucket.mark import WalMark
from horolog.broker.bucket.names import Wal, key
from horolog.broker.prefix.prefix_reader import PrefixReader
from horolog.broker.prefix.wal_check import CheckedWal, WalUse, check_wal
from tests.support.prefix_objects import ENDED, FIRST, LIVES, NONCE, SECOND, change, new_prefix
from tests.support.shipping import put_merged, put_object, run_at

OF_ENDED = WalUse(ENDED, {(FIRST, 0): 4, (SECOND, 0): 3}, is_member=False)
OF_LIVES = WalUse(LIVES, {(FIRST, 1): None, (SECOND, 1): None}, is_member=True)
MERGED = ENDED.merged(b"m%07d%08d" % (0, 2))


@pytest.fixture
def store():
    return new_prefix()


def checked(store, use=OF_ENDED):
    with PrefixReader(store, 2) as reader:
        return check_wal(reader, use)


def shown(found):
    return [(one.kind.value, one.name) for one in found.findings]


def add(store, wal, number, *runs):
    made = SimpleNamespace(objects={})
    put_object(made, wal, number, *runs)
    for name, data in made.objects.items():
        change(store, name, data)


def test_all_is_there(store):
    assert checked(store) == CheckedWal([], {(FIRST, 0): [(0, 4)], (SECOND, 0): [(0, 2)]})
    assert checked(store, OF_LIVES) == CheckedWal([], {(FIRST, 1): [(4, 6)], (SECOND, 1): [(2, 3)]})


def test_records_behind_the_end_of_a_stretch_are_void(store):
    found = checked(store, WalUse(ENDED, {(FIRST, 0): 2, (SECOND, 0): 4}, is_member=False))
    assert found.extents == {(FIRST, 0): [(0, 2)], (SECOND, 0): [(0, 2)]}


def test_a_number_that_is_gone(store):
    change(store, key(ENDED.folder, 2), None)
    found = checked(store)
    assert shown(found) == [("missing", key(ENDED.folder, 2))]
    assert found.extents[FIRST, 0] == [(0, 2), (3, 4)]


def test_a_fence_in_the_place_of_records(store):
    change(store, key(ENDED.folder, 3), Fence(ENDED, 3, 2, NONCE).encode())
    assert shown(checked(store)) == [("missing", key(ENDED.folder, 3))]


def test_a_merged_object_that_is_gone_or_another(store):
    whole = store.get(MERGED)
    change(store, MERGED, None)
    assert shown(checked(store)) == [("missing", MERGED)]
    change(store, MERGED, whole[:-1])
    assert shown(checked(store)) == [("damaged", MERGED)]
    change(store, MERGED, store.get(key(ENDED.folder, 2)))
    assert shown(checked(store)) == [("damaged", MERGED)]


def test_bytes_that_changed(store):
    data = bytearray(store.get(key(LIVES.folder, 1)))
    data[len(data) // 3] ^= 1
    change(store, key(LIVES.folder, 1), bytes(data))
    assert shown(checked(store, OF_LIVES)) == [("damaged", key(LIVES.folder, 1))]


def test_a_damaged_mark_leaves_what_is_there(store):
    change(store, key(ENDED.marks, 0), b"damage")
    found = checked(store)
    assert shown(found) == [("damaged", key(ENDED.marks, 0))]
    assert found.extents[FIRST, 0] == [(0, 4)]
    change(store, key(ENDED.marks, 0), WalMark(Wal(9, 9), 0, 2, (), NONCE).encode())
    assert shown(checked(store)) == [("damaged", key(ENDED.marks, 0))]


def test_leftovers_of_a_broker_that_has_ended(store):
    add(store, ENDED, 0, run_at(0, 0))  # it ended between the mark and the removal
    add(store, ENDED, 5, run_at(4, 5, size=9000))  # a stray behind the fence
    change(store, key(ENDED.folder, 6), b"damage")
    store.create(ENDED.merged(b"x" * 16), b"without a mark")
    assert shown(checked(store)) == [("left over", ENDED.folder), ("left over", ENDED.merged_folder)]
    assert "3 objects" in checked(store).findings[0].reason


def test_a_wal_that_no_partition_names(store):
    found = checked(store, WalUse(ENDED, {}, is_member=False))
    assert shown(found) == [("left over", ENDED.folder)]


def test_numbers_that_are_under_way(store):
    add(store, LIVES, 4, run_at(6, 4, epoch=1))  # and 3 is not there yet
    found = checked(store, OF_LIVES)
    assert (found.findings, found.extents[FIRST, 1]) == ([], [(4, 6)])
    add(store, LIVES, 8, run_at(7, 8, epoch=1))  # so 3 cannot be under way
    assert shown(checked(store, OF_LIVES)) == [("missing", key(LIVES.folder, n)) for n in (3, 5, 6, 7)]


def test_a_fence_ends_a_wal_that_is_written(store):
    change(store, key(LIVES.folder, 3), Fence(LIVES, 3, 1, NONCE).encode())
    assert checked(store, OF_LIVES).findings == []


def test_objects_that_are_merged_meanwhile_are_read_there(store):
    """The mark moves between the list of the numbers and the reading."""
    merged = SimpleNamespace(objects={})
    put_merged(merged, LIVES, 0, 3, run_at(2, 0, partition=1, epoch=1), run_at(4, 1, epoch=1), run_at(5, 2, epoch=1))
    whole = store.get

    def get(name):
        if name == key(LIVES.folder, 1) and merged.objects:
            for number in range(3):
                store.delete(key(LIVES.folder, number))
            for one, data in merged.objects.items():
                store.create(one, data)
            merged.objects.clear()
        return whole(name)

    store.get = get
    found = checked(store, OF_LIVES)
    assert (found.findings, found.extents[FIRST, 1]) == ([], [(4, 6)])


def test_an_object_that_is_gone_before_it_is_looked_at_is_no_leftover(store):
    add(store, ENDED, 5, run_at(4, 5))
    whole = store.get

    def get(name):
        if name == key(ENDED.folder, 5):
            raise FileNotFoundError(name)
        return whole(name)

    store.get = get
    assert checked(store).findings == []
