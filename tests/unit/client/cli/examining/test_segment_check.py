"""Index files are looked at without the room behind their entries, and nothing is overlooked by that."""

import errno
import os

import pytest

from horolog.broker.log.indexes import offset_index
from horolog.broker.log.storage import ReadOnlyStorage
from horolog.client.cli.examining.segment_check import read_index

ENTRY = offset_index.ENTRY
ROOM_BYTES = 10 << 20


@pytest.fixture
def path(tmp_path):
    return tmp_path / "0.index"


def read(path):
    storage = ReadOnlyStorage()
    return read_index(storage, str(path), ENTRY.size), sum(storage.bytes_read.values())


@pytest.mark.parametrize("entries", [b"", ENTRY.pack(1, 70), ENTRY.pack(1, 70) + ENTRY.pack(256, 256 << 8)])
def test_room_is_not_read(path, entries):
    path.write_bytes(entries)
    os.truncate(path, ROOM_BYTES)
    data, bytes_read = read(path)
    assert data == entries
    assert bytes_read < 64 << 10


def test_room_that_was_written_is_left_out_as_well(path):
    path.write_bytes(ENTRY.pack(1, 70) + bytes(ROOM_BYTES))
    assert read(path)[0] == ENTRY.pack(1, 70)


def test_an_entry_behind_room_is_seen(path):
    with path.open("wb") as file:
        file.truncate(ROOM_BYTES)
        file.seek(ROOM_BYTES - ENTRY.size)
        file.write(ENTRY.pack(5, 7))
    data, _ = read(path)
    assert len(data) == ROOM_BYTES
    assert data.endswith(ENTRY.pack(5, 7))


def test_what_is_no_whole_number_of_entries_is_read_whole(path):
    path.write_bytes(ENTRY.pack(1, 70) + b"\0\0\0")
    assert read(path)[0] == path.read_bytes()


def test_a_system_that_tells_no_holes_costs_time_only(path, monkeypatch):
    path.write_bytes(ENTRY.pack(1, 70))
    os.truncate(path, ROOM_BYTES)

    def lseek(*_):
        raise OSError(errno.EINVAL, "no holes here")

    monkeypatch.setattr(os, "lseek", lseek)
    assert read(path)[0] == ENTRY.pack(1, 70)
