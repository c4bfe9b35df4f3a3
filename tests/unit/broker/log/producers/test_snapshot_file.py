"""Producer snapshots: files of real brokers, any damage refused, the newest usable one found."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horolog.broker.log.producers import RowFileError, SnapshotEntry, snapshot_file
from horolog.broker.log.storage import MemoryStorage

int64, int32 = st.integers(-(2**63), 2**63 - 1), st.integers(-(2**31), 2**31 - 1)
entries = st.builds(SnapshotEntry, int64, st.integers(-(2**15), 2**15 - 1), int32, int64, int32, int64, int32, int64)
ONE = [SnapshotEntry(5, 0, 7, 14, 0, 1600000000007, 0, 14)]


@pytest.fixture
def storage():
    made = MemoryStorage()
    made.make_dir("/p")
    return made


def test_files_of_real_brokers_come_back_byte_for_byte(golden_root):
    paths = list(golden_root.glob("*/*/*.snapshot"))
    assert len(paths) > 50
    for path in paths:
        data = path.read_bytes()
        assert snapshot_file.encode(snapshot_file.decode(data)) == data
    found = snapshot_file.decode((golden_root / "v2-compacted-txn/clean/00000000000000000015.snapshot").read_bytes())
    assert found == ONE


@given(st.lists(entries, max_size=4))
def test_entries_survive_the_round_trip(some):
    assert snapshot_file.decode(snapshot_file.encode(some)) == some


@given(st.lists(entries, max_size=3), st.data())
def test_no_changed_byte_and_no_cut_is_believed(some, data):
    good = snapshot_file.encode(some)
    position = data.draw(st.integers(0, len(good) - 1))
    hurt = bytearray(good)
    hurt[position] ^= data.draw(st.integers(1, 255))
    for bad in (bytes(hurt), good[:position], good + b"\0"):
        with pytest.raises(RowFileError):
            snapshot_file.decode(bad)


def test_the_newest_usable_snapshot_in_range_is_found_and_damaged_ones_go(storage):
    for offset in (0, 15, 20, 30):
        snapshot_file.save(storage, "/p", offset, ONE if offset == 15 else [])
    storage.write_atomically("/p/00000000000000000020.snapshot", b"\0" * 10)
    storage.write_atomically("/p/20.snapshot", b"not one of ours")
    found = snapshot_file.load_newest(storage, "/p", not_before=0, not_after=25)
    assert (found.offset, found.entries) == (15, ONE)
    assert len(found.faults) == 1
    assert snapshot_file.offsets_in(storage, "/p") == [0, 15, 30]
    assert snapshot_file.load_newest(storage, "/p", not_before=16, not_after=29).offset == -1


def test_a_snapshot_that_knows_of_offsets_behind_its_name_is_another_ones(storage):
    with pytest.raises(AssertionError, match="a snapshot of 10"):
        snapshot_file.save(storage, "/p", 10, ONE)
    storage.write_atomically(f"/p/{snapshot_file.file_name(10)}", snapshot_file.encode(ONE))
    found = snapshot_file.load_newest(storage, "/p", not_before=0, not_after=25)
    assert (found.offset, len(found.faults)) == (-1, 1)


def test_snapshots_outside_of_the_log_are_removed(storage):
    for offset in (5, 10, 20, 30):
        snapshot_file.save(storage, "/p", offset, [])
    assert snapshot_file.remove_outside(storage, "/p", not_before=10, not_after=20) == [5, 30]
    assert snapshot_file.offsets_in(storage, "/p") == [10, 20]


def test_a_snapshot_that_went_meanwhile_is_no_damage(storage, monkeypatch):
    snapshot_file.save(storage, "/p", 15, ONE)
    monkeypatch.setattr(snapshot_file, "offsets_in", lambda *_: [15, 20])
    found = snapshot_file.load_newest(storage, "/p", not_before=0, not_after=25)
    assert (found.offset, found.entries) == (15, ONE)
    assert len(found.faults) == 1


def test_snapshots_inside_of_segments_go_once_a_newer_one_is_there(storage):
    for offset in (5, 10, 15, 20):
        snapshot_file.save(storage, "/p", offset, [])
    snapshot_file.remove_superseded(storage, "/p", 20, {10})
    assert snapshot_file.offsets_in(storage, "/p") == [10, 20]


def test_one_is_removed_if_it_is_there(storage):
    snapshot_file.save(storage, "/p", 5, [])
    for _ in range(2):
        snapshot_file.remove(storage, "/p", 5)
    assert snapshot_file.offsets_in(storage, "/p") == []
