"""The very bytes are set aside, under a name that tells; nothing is copied twice, and torn tails are bounded."""

import errno
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horolog.broker.log.integrity import set_aside
from horolog.broker.log.integrity.set_aside import Range, SetAside, file_name, in_folder, keep, parse_name
from horolog.broker.log.manager import partition_of
from horolog.broker.log.producers.snapshot_file import offset_of
from horolog.broker.log.recovery import is_segment_file
from horolog.broker.log.storage import MemoryStorage
from horolog.broker.log.storage.memory_disk import ALL

offsets = st.integers(0, 2**63 - 1)
ranges = st.builds(Range, offsets, st.integers(0, 2**31), st.just(0), offsets, st.none() | offsets)


@pytest.fixture
def storage():
    storage = MemoryStorage()
    storage.make_dir("/p")
    storage.sync_dir("/")
    storage.create("/p/log").pwritev([random.Random(1).randbytes(3000)], 0)
    storage.open("/p/log").datasync()
    storage.sync_dir("/p")
    return storage


def kept(storage, what):
    return keep(storage, "/p", storage.open("/p/log").pread, what)


@given(ranges, st.integers(0, 2**32 - 1))
def test_a_name_tells_what_it_was_made_of(what, crc):
    name = file_name(what, crc)
    kind = "torn" if what.last_offset is None else "damaged"
    assert parse_name(name) == SetAside(
        name, kind, what.base_offset, what.start, what.first_offset, what.last_offset, crc
    )
    assert not any(is_segment_file(name, suffix) for suffix in (".log", ".index", ".timeindex", ".txnindex"))
    assert offset_of(name) is None
    assert partition_of(name) is None


@pytest.mark.parametrize(
    "name",
    ["", "x.damaged", f"{0:020d}.log", f"{0:020d}.log.5.1-2.0000000a.torn", f"{0:020d}.log.5.1.0000000a.damaged",
     f"{0:020d}.log.5.1-2.0000000A.damaged", f"{0:020d}.log.5.1-2.0000000a.damaged.tmp"],
)  # fmt: skip
def test_other_names_tell_nothing(name):
    assert parse_name(name) is None


@pytest.mark.parametrize("last", [9, None])
def test_the_bytes_are_on_the_disk_when_it_returns(storage, last, monkeypatch):
    monkeypatch.setattr(set_aside, "COPY_BYTES", 100)
    name = kept(storage, Range(0, 50, 1234, 3, last))
    storage.crash()
    assert storage.read_all(f"/p/{name}") == storage.read_all("/p/log")[50:1234]
    assert [one.name for one in in_folder(storage, "/p")] == [name]


def test_the_same_damage_is_not_copied_twice(storage):
    what = Range(0, 50, 60, 3, 9)
    name = kept(storage, what)
    storage.fail("create", times=ALL)
    assert kept(storage, what) == name


def test_other_bytes_at_the_same_place_get_another_file(storage):
    first = kept(storage, Range(0, 50, 60, 3, 9))
    storage.open("/p/log").pwritev([b"other"], 50)
    second = kept(storage, Range(0, 50, 60, 3, 9))
    assert first != second
    assert {one.name for one in in_folder(storage, "/p")} == {first, second}


def test_a_full_disk_leaves_no_half_file(storage, caplog):
    storage.fail("write", ".damaged", code=errno.ENOSPC, torn_bytes=5)
    assert kept(storage, Range(0, 50, 90, 3, 9)) is None
    assert storage.list_dir("/p") == ["log"]
    assert "could not be copied to a file" in caplog.text


def test_zeros_at_the_end_are_not_kept_but_inside_they_are(storage):
    storage.open("/p/log").pwritev([bytes(100)], 0)
    assert kept(storage, Range(0, 0, 100, 3, None)) is None
    assert kept(storage, Range(0, 0, 100, 3, 4)) is not None


def test_torn_tails_are_bounded_together(storage, monkeypatch):
    monkeypatch.setattr(set_aside, "MAX_TORN_BYTES", 250)
    assert kept(storage, Range(0, 0, 100, 3, None))
    assert kept(storage, Range(0, 100, 200, 3, None))
    assert kept(storage, Range(0, 200, 300, 3, None)) is None
    assert kept(storage, Range(0, 200, 300, 3, 4)), "damage has no bound"


def test_what_is_left_of_a_copy_that_failed_may_stay_if_it_cannot_be_removed(storage, caplog):
    storage.fail("sync", ".damaged.tmp")
    storage.fail("remove", ".damaged.tmp")
    assert kept(storage, Range(0, 50, 60, 3, 9)) is None
    assert "could not be copied to a file" in caplog.text
    assert "cannot be removed" in caplog.text


def test_a_copy_that_could_not_begin_leaves_nothing(storage):
    storage.fail("create", ".damaged.tmp")
    assert kept(storage, Range(0, 50, 60, 3, 9)) is None
    assert storage.list_dir("/p") == ["log"]


def test_a_range_without_bytes_and_a_name_that_is_not_read_again_are_bugs(storage):
    with pytest.raises(AssertionError, match="is empty"):
        kept(storage, Range(0, 5, 5, 0, 1))
    with pytest.raises(AssertionError, match="not read again"):
        file_name(Range(0, 5, 9, -1, 1), 0)
