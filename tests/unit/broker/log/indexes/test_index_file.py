"""The file of an index: preallocated while it grows, cut to its entries afterwards, and written only where it lacks something."""

import pytest

from horolog.broker.log.indexes import OffsetIndex
from horolog.broker.log.storage import MemoryStorage

PATH = "/d/0.index"


@pytest.fixture
def storage():
    storage = MemoryStorage()
    storage.make_dir("/d")
    return storage


@pytest.fixture
def index(storage):
    """Room for five entries of eight bytes."""
    index = OffsetIndex(storage, PATH, 44)
    index.create()
    return index


def size(storage):
    return len(storage.read_all(PATH))


def test_a_new_file_is_preallocated_in_whole_entries(storage, index):
    assert (size(storage), len(index)) == (40, 0)
    assert repr(index) == "<OffsetIndex /d/0.index: 0 entries, 5 at most>"


def test_entries_are_in_the_file_after_a_flush(storage, index):
    index.append(3, 100)
    index.flush()
    index.append(5, 200)
    index.flush()
    index.flush()
    assert storage.read_all(PATH) == bytes(index.entries) + bytes(40 - 16)


def test_a_trimmed_file_holds_its_entries_and_nothing_else(storage, index):
    index.append(3, 100)
    index.trim()
    assert storage.read_all(PATH) == bytes(index.entries)
    index.preallocate()
    assert size(storage) == 40


def test_entries_that_were_cut_off_are_overwritten(storage, index):
    index.append(3, 100)
    index.append(5, 200)
    index.flush()
    index.cut_back(8)
    index.append(4, 150)
    index.trim()
    assert storage.read_all(PATH) == bytes(index.entries)
    assert len(index) == 2


def test_a_rewrite_replaces_whatever_the_file_holds(storage, index):
    index.append(3, 100)
    storage.create(PATH).pwritev([b"something else"], 0)
    index.rewrite()
    assert storage.read_all(PATH) == bytes(index.entries)


def test_a_file_that_was_closed_is_opened_by_the_next_write(storage, index):
    index.close()
    index.close()
    index.datasync()
    index.append(3, 100)
    index.trim()
    assert storage.read_all(PATH) == bytes(index.entries)


def test_what_was_synced_survives_the_loss_of_power(storage, index):
    index.append(3, 100)
    index.trim()
    index.datasync()
    storage.sync_dir("/d")
    index.append(5, 200)
    index.flush()
    assert storage.read_all(PATH)[:8] == bytes(index.entries)[:8]


def test_entries_are_whole_wherever_they_come_from(storage, index):
    with pytest.raises(AssertionError, match="not whole entries"):
        OffsetIndex(storage, PATH, 44, bytes(9))
    index.append(3, 100)
    for size_bytes in (4, 16):
        with pytest.raises(AssertionError, match=f"cut to {size_bytes} bytes"):
            index.cut_back(size_bytes)
    index.entries += b"?"
    with pytest.raises(AssertionError, match="not whole entries"):
        index.trim()
