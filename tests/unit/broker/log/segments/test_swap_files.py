"""Swapping segments: after a crash at any moment a restart finds the old ones, or the new ones, or parts that say the same."""

import contextlib
import random

import pytest

from horolog.broker.log.segments import swap_files
from horolog.broker.log.segments.swap_files import CLEANED, DELETED, SUFFIXES, SWAP, recover, segment_path
from horolog.broker.log.storage import MemoryStorage
from horolog.broker.log.storage.memory_disk import PowerCut

OLD = {0: (0, 9), 10: (10, 19), 20: (20, 29)}  # base offset: first and last offset in the log


def span_of(storage, path):
    """The made-up logs hold `first last` as text; an empty log is empty."""
    text = storage.read_all(path).decode()
    return tuple(int(part) for part in text.split()) if text else None


def next_offset_in(storage):
    return lambda path: (span_of(storage, path) or (0, -2))[1] + 1


def write(storage, base, suffix, content):
    for kind in SUFFIXES:
        file = storage.create(segment_path("/p", base, kind) + suffix)
        file.pwritev([content if kind == ".log" else kind.encode() + content], 0)
        file.datasync()


def prepared(new):
    """A folder with three old segments and the cleaned ones that are to stand for them, all on the disk."""
    storage = MemoryStorage()
    storage.make_dir("/p")
    for base, (first, last) in OLD.items():
        write(storage, base, "", b"%d %d" % (first, last))
    for base, content in new.items():
        write(storage, base, CLEANED, content)
    storage.sync_dir("/")
    storage.sync_dir("/p")
    return storage


def swap(storage, new):
    swap_files.promote(storage, "/p", new)
    for base in OLD:
        for kind in SUFFIXES:
            storage.rename(segment_path("/p", base, kind), segment_path("/p", base, kind) + DELETED)
    swap_files.install(storage, "/p", new)


def segments_in(storage):
    logs = [name for name in storage.list_dir("/p") if name.endswith(".log")]
    return {int(name[:20]): storage.read_all(f"/p/{name}") for name in logs}


@pytest.mark.parametrize("new", [{0: b"3 28"}, {0: b"3 18", 20: b"20 25"}, {0: b"", 10: b"12 12"}])
def test_swapped(new):
    storage = prepared(new)
    swap(storage, new)
    assert segments_in(storage) == new
    assert not [name for name in storage.list_dir("/p") if name.endswith((SWAP, CLEANED))]
    assert recover(storage, "/p", next_offset_in(storage)) == swap_files.SwapReport()


@pytest.mark.parametrize("seed", [None, 1, 2, 3])
@pytest.mark.parametrize("new", [{0: b"3 28"}, {0: b"3 18", 20: b"20 25"}])
def test_power_cut_at_every_moment(new, seed):
    seen = set()
    for moment in range(1, 60):
        storage = prepared(new)
        storage.power_off_after(moment)
        with contextlib.suppress(PowerCut):
            swap(storage, new)
        storage.crash(None if seed is None else random.Random(seed * 1000 + moment))
        first = recover(storage, "/p", next_offset_in(storage))
        assert recover(storage, "/p", next_offset_in(storage)) == swap_files.SwapReport(), first
        found = segments_in(storage)
        assert found in (new, {base: b"%d %d" % span for base, span in OLD.items()}), (moment, first)
        seen.add(found == new)
        for base, content in found.items():
            for kind in SUFFIXES[1:]:
                path = segment_path("/p", base, kind)
                assert not storage.exists(path) or storage.read_all(path).endswith(content), "an index of another log"
    assert seen == {True, False}


def test_a_cleaned_file_voids_every_swap_behind_it():
    storage = prepared({0: b"3 8", 10: b"12 28"})
    swap_files.promote(storage, "/p", [10])
    report = recover(storage, "/p", next_offset_in(storage))
    assert report.installed == ()
    assert segments_in(storage) == {base: b"%d %d" % span for base, span in OLD.items()}


def test_an_index_without_its_log_is_forgotten():
    storage = prepared({})
    storage.create("/p/00000000000000000010.index.swap")
    assert recover(storage, "/p", next_offset_in(storage)).forgotten == ("00000000000000000010.index.swap",)


def test_a_replacement_without_aborted_transactions_takes_the_old_index_away():
    storage = prepared({0: b"3 28"})
    storage.remove(segment_path("/p", 0, ".txnindex") + CLEANED)
    swap_files.promote(storage, "/p", [0])
    report = recover(storage, "/p", next_offset_in(storage))
    assert report == swap_files.SwapReport((0,), (10, 20), ())
    assert not storage.exists(segment_path("/p", 0, ".txnindex"))


def test_discarded_files_are_gone():
    storage = prepared({0: b"3 28"})
    swap_files.discard(storage, "/p", [0, 10])
    assert not [name for name in storage.list_dir("/p") if name.endswith(CLEANED)]
