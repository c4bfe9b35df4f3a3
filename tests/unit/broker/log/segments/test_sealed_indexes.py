"""Which bytes of an index file are believed: those that were sealed, and none if one of them is another."""

from dataclasses import replace

import pytest

from horolog.broker.log.integrity import IndexSum
from horolog.broker.log.segments import sealed_indexes
from tests.support.segments import completed, new_folder, reopened


@pytest.fixture
def segment():
    return reopened(completed(new_folder()))


def test_what_was_sealed_is_loaded_and_what_follows_is_left_out(segment):
    storage, seal = segment.folder.storage, segment.seal
    sizes = [seal.offset_index.size_bytes, seal.time_index.size_bytes]
    for path, size in zip(segment.files.index_paths, sizes, strict=True):
        storage.open(path).pwritev([bytes(4096)], size)
    loaded = sealed_indexes.load(segment, seal)
    assert [len(one.entries) for one in loaded] == sizes
    assert segment.indexes is None, "whoever loads them decides what becomes of them"


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("change", ["remove", "cut", "flip"])
def test_one_file_that_is_another_voids_both(segment, number, change):
    storage, path = segment.folder.storage, segment.files.index_paths[number]
    if change == "remove":
        storage.remove(path)
    elif change == "cut":
        storage.open(path).truncate(7)
    else:
        storage.open(path).pwritev([b"\x55"], 3)
    assert sealed_indexes.load(segment, segment.seal) is None


@pytest.mark.parametrize(("number", "kind", "entry_bytes"), [(0, "offset_index", 8), (1, "time_index", 12)])
def test_entries_out_of_order_are_not_believed_whoever_sealed_them(segment, number, kind, entry_bytes):
    path = segment.files.index_paths[number]
    good = segment.folder.storage.read_all(path)
    last, before = good[-entry_bytes:], good[-2 * entry_bytes : -entry_bytes]
    bad = good[: -2 * entry_bytes] + last + before
    segment.folder.storage.open(path).pwritev([bad], 0)
    assert sealed_indexes.load(segment, replace(segment.seal, **{kind: IndexSum.of(bad)})) is None


def test_empty_indexes_are_loaded_from_empty_files():
    segment = completed(new_folder(), timestamps=(-1,))
    assert [len(one) for one in sealed_indexes.load(reopened(segment), segment.seal)] == [0, 0]
