"""Free memory is filled by a file while brokers are measured, again when some has become free, and nothing stays behind."""

import shutil
import sys
from types import SimpleNamespace

import pytest

from benchmarks import ready_memory
from benchmarks.ready_memory import LEFT_FREE_BYTES, PIECE_BYTES, filled

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="asks Linux what memory there is")


@pytest.fixture
def machine(monkeypatch):
    machine = SimpleNamespace(memory=LEFT_FREE_BYTES + 3 * PIECE_BYTES, disk=1 << 40)
    monkeypatch.setattr(ready_memory, "free_bytes", lambda: machine.memory)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=machine.disk))
    return machine


def test_the_file_is_there_until_the_end(tmp_path, machine):
    with filled(tmp_path) as filling:
        assert filling.size_bytes == 3 * PIECE_BYTES
        assert [one.stat().st_size for one in tmp_path.iterdir()] == [filling.size_bytes]
        assert repr(filling) == "<Filling of 12 MiB>"
    assert list(tmp_path.iterdir()) == []


def test_the_disk_keeps_half_of_its_room(tmp_path, machine):
    machine.disk = 4 * PIECE_BYTES
    with filled(tmp_path) as filling:
        assert filling.size_bytes == 2 * PIECE_BYTES


def test_where_little_is_free_nothing_is_filled(tmp_path, machine):
    machine.memory = LEFT_FREE_BYTES - 1
    with filled(tmp_path) as filling:
        assert (filling.size_bytes, filling.again()) == (0, 0)


def test_it_is_read_until_nothing_is_free_and_once_at_most(tmp_path, machine, monkeypatch):
    with filled(tmp_path) as filling:
        assert filling.again() == 3
        free = iter([LEFT_FREE_BYTES + 1, LEFT_FREE_BYTES])
        monkeypatch.setattr(ready_memory, "free_bytes", lambda: next(free))
        assert filling.again() == 1


def test_what_is_free_is_known():
    assert ready_memory.free_bytes() > 1 << 20


def test_a_folder_is_read_whole(tmp_path):
    (tmp_path / "0.log").write_bytes(bytes(PIECE_BYTES + 1))
    (tmp_path / "0.index").write_bytes(b"")
    assert ready_memory.read_whole(tmp_path) == PIECE_BYTES + 1
