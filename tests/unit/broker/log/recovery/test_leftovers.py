"""What earlier runs have left in a partition's folder: it goes, and nothing that has records does."""

import pytest

from horolog.broker.log.recovery import leftovers
from horolog.broker.log.recovery.leftovers import COMPANION_SUFFIXES, is_segment_file, tidy
from horolog.broker.log.segments import LOG_SUFFIX
from horolog.broker.log.storage import MemoryStorage
from tests.support.log_model import encode

FOLDER = "/data/t-0"
FIRST, SECOND = f"{0:020}", f"{10:020}"


@pytest.fixture
def storage():
    storage = MemoryStorage()
    storage.make_dir("/data")
    storage.make_dir(FOLDER)
    return storage


def put(storage, *names, data=b""):
    for name in names:
        storage.write_atomically(f"{FOLDER}/{name}", data)


def test_segments_and_files_of_other_names_stay(storage):
    names = {f"{FIRST}{suffix}" for suffix in (LOG_SUFFIX, *COMPANION_SUFFIXES)}
    names |= {"partition.metadata", "horolog-seals", f"{FIRST}.log.7.3-4.0000beef.damaged", "notes.txt"}
    put(storage, *names)
    assert tidy(storage, FOLDER) == names == set(storage.list_dir(FOLDER))


@pytest.mark.parametrize("suffix", COMPANION_SUFFIXES)
def test_an_index_whose_log_is_gone_goes_and_that_is_told(storage, suffix, caplog):
    put(storage, f"{FIRST}{LOG_SUFFIX}", f"{SECOND}{suffix}")
    assert tidy(storage, FOLDER) == {f"{FIRST}{LOG_SUFFIX}"} == set(storage.list_dir(FOLDER))
    assert [one.levelname for one in caplog.records] == ["WARNING"]


@pytest.mark.parametrize("name", [f"{FIRST}.log.deleted", f"{FIRST}.index.deleted", "horolog-seals.tmp"])
def test_what_was_on_its_way_out_or_in_goes(storage, name):
    put(storage, name)
    assert tidy(storage, FOLDER) == set()
    assert storage.list_dir(FOLDER) == []


def test_what_cannot_be_removed_is_not_looked_at(storage, caplog):
    put(storage, "left.tmp")
    storage.fail("remove", "left.tmp")
    assert tidy(storage, FOLDER) == set()
    assert "cannot be removed" in caplog.text


def test_a_cleaned_segment_that_was_not_swapped_in_is_forgotten(storage):
    put(storage, f"{FIRST}{LOG_SUFFIX}", data=encode(2, 0, [5], [b"old"]))
    put(storage, f"{FIRST}{LOG_SUFFIX}.cleaned", data=encode(2, 0, [5], [b"new"]))
    assert tidy(storage, FOLDER) == {f"{FIRST}{LOG_SUFFIX}"}
    assert b"old" in storage.read_all(f"{FOLDER}/{FIRST}{LOG_SUFFIX}")


def test_a_swap_that_had_begun_is_put_through(storage):
    """The new segment stands for both old ones, as far as its last good batch says."""
    put(storage, f"{FIRST}{LOG_SUFFIX}", f"{SECOND}{LOG_SUFFIX}", data=encode(2, 0, [5], [b"old"]))
    put(storage, f"{FIRST}{LOG_SUFFIX}.swap", data=encode(2, 0, [5] * 20, [b"new"] * 20))
    assert tidy(storage, FOLDER) == {f"{FIRST}{LOG_SUFFIX}"}
    assert b"new" in storage.read_all(f"{FOLDER}/{FIRST}{LOG_SUFFIX}")


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        (f"{FIRST}.log", True),
        (f"{FIRST}.log.deleted", False),
        ("0.log", False),
        (f"{'٣' * 20}.log", False),
        (f"{'x' * 20}.log", False),
    ],
)
def test_a_segments_file_is_called_by_its_base_offset(name, is_one):
    assert is_segment_file(name, LOG_SUFFIX) is is_one


def test_how_far_a_segment_may_reach():
    assert leftovers.base_of(f"{SECOND}.log") == 10
    assert leftovers.last_possible(10) - 10 == 2**31
