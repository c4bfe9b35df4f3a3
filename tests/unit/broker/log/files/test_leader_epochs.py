"""Leader epochs against a list of (epoch, start) pairs, and the file of real brokers."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horolog.broker.log.files import CheckpointError, LeaderEpochs, leader_epochs
from horolog.broker.log.storage import MemoryStorage


def test_files_of_real_brokers_come_back_byte_for_byte(golden_root):
    paths = list(golden_root.glob("*/*/leader-epoch-checkpoint"))
    assert len(paths) > 20
    for path in paths:
        assert leader_epochs.encode(LeaderEpochs(leader_epochs.decode(path.read_bytes())).entries) == path.read_bytes()


@pytest.mark.parametrize(
    "data", [b"0\n1\n", b"0\n2\n1 0\n1 5\n", b"0\n2\n1 5\n2 4\n", b"0\n1\n2147483648 0\n", b"0\n1\n1 0 0\n"]
)
def test_damage_is_an_error(data):
    with pytest.raises(CheckpointError):
        leader_epochs.decode(data)


def test_end_offsets_of_known_and_unknown_epochs():
    epochs = LeaderEpochs([(1, 0), (3, 10), (5, 30)])
    answers = {epoch: epochs.end_offset_for(epoch, 50) for epoch in range(-1, 7)}
    assert answers == {-1: (-1, -1), 0: (0, 0), 1: (1, 10), 2: (1, 10), 3: (3, 30), 4: (3, 30), 5: (5, 50), 6: (-1, -1)}
    assert LeaderEpochs().end_offset_for(0, 9) == (-1, -1)


appends = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 40)), max_size=12)


@given(appends)
def test_epochs_and_starts_always_grow_and_the_latest_claim_holds(claims):
    epochs = LeaderEpochs()
    for epoch, start in claims:
        changed = epochs.append(epoch, start)
        assert not changed or epochs.entries[-1] == (epoch, start)
        kept = epochs.entries
        assert all(one[0] < two[0] and one[1] < two[1] for one, two in pairwise(kept))
        assert epochs.epoch_of(start) <= epoch


@given(appends, st.integers(0, 45))
def test_truncation_keeps_what_lies_inside(claims, offset):
    whole = LeaderEpochs(claims)
    tail, head = LeaderEpochs(whole.entries), LeaderEpochs(whole.entries)
    head.truncate_from_end(offset)
    assert head.entries == [entry for entry in whole.entries if entry[1] < offset]
    tail.truncate_from_start(offset)
    for probe in range(offset, 46):
        assert tail.epoch_of(probe) == whole.epoch_of(probe)
    assert sum(start < offset for _, start in tail.entries) == 0 or whole.entries == tail.entries


def test_saved_and_loaded():
    storage = MemoryStorage()
    storage.make_dir("/p")
    assert LeaderEpochs.load(storage, "/p").entries == []
    LeaderEpochs([(0, 0), (2, 30)]).save(storage, "/p")
    assert storage.read_all("/p/leader-epoch-checkpoint") == b"0\n2\n0 0\n2 30\n"
    assert LeaderEpochs.load(storage, "/p").entries == [(0, 0), (2, 30)]


def test_a_file_that_no_crash_has_to_spare_is_saved_without_a_sync():
    storage, epochs = MemoryStorage(), LeaderEpochs([(0, 0)])
    storage.make_dir("/p")
    epochs.is_synced = False
    epochs.begin(2, 30, storage, "/p")
    assert storage.operations.keys().isdisjoint({"sync", "sync_dir"})
    assert LeaderEpochs.load(storage, "/p").entries == [(0, 0), (2, 30)]


@pytest.mark.parametrize("entries", [[(1, 0), (1, 5)], [(1, 5), (2, 4)], [(-1, 0)], [(2**31, 0)], [(0, -1)]])
def test_entries_that_are_not_read_are_not_written(entries):
    with pytest.raises(AssertionError, match="do not grow"):
        leader_epochs.encode(entries)
