"""Free memory is filled by a file while brokers are measured, and neither stays behind."""

import shutil
import sys
from types import SimpleNamespace

import pytest

from benchmarks import ready_memory
from benchmarks.ready_memory import LEFT_FREE_BYTES, PIECE, filled

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="asks Linux what memory there is")


@pytest.mark.parametrize(("wanted_bytes", "pieces"), [(0, 0), (len(PIECE) - 1, 0), (2 * len(PIECE) + 1, 2)])
def test_the_file_is_there_until_the_end(tmp_path, wanted_bytes, pieces):
    with filled(tmp_path, wanted_bytes) as size_bytes:
        assert size_bytes == pieces * len(PIECE)
        assert [one.stat().st_size for one in tmp_path.iterdir()] == [size_bytes]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("free_memory", "free_disk", "pieces"),
    [(LEFT_FREE_BYTES + len(PIECE), 1 << 40, 1), (1 << 40, 4 * len(PIECE), 2), (LEFT_FREE_BYTES - 1, 1 << 40, 0)],
)
def test_by_default_what_is_free_as_far_as_the_disk_goes(tmp_path, monkeypatch, free_memory, free_disk, pieces):
    monkeypatch.setattr(ready_memory, "free_bytes", lambda: free_memory)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free_disk))
    with filled(tmp_path) as size_bytes:
        assert size_bytes == pieces * len(PIECE)


def test_what_is_free_is_known():
    assert ready_memory.free_bytes() > 1 << 20
