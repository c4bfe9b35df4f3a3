"""Memory that is touched before a load is given back, and no more of it than there is."""

import mmap
import os
import sys

import pytest

from benchmarks import ready_memory
from benchmarks.process import resident_kib

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="asks Linux what memory there is")


@pytest.mark.parametrize("wanted_bytes", [0, 1, 5 * mmap.PAGESIZE + 1, 4 << 20])
def test_whole_pages_are_touched_and_given_back(wanted_bytes):
    before_kib = resident_kib(os.getpid())
    assert ready_memory.touch(wanted_bytes) == wanted_bytes // mmap.PAGESIZE * mmap.PAGESIZE
    assert resident_kib(os.getpid()) < before_kib + 2048


def test_by_default_a_quarter_of_what_there_is(monkeypatch):
    monkeypatch.setattr(ready_memory, "available_bytes", lambda: 8 << 20)
    assert ready_memory.touch() == 2 << 20
    monkeypatch.setattr(ready_memory, "MOST_BYTES", 1 << 20)
    assert ready_memory.touch() == 1 << 20


def test_a_kernel_that_cannot_populate_is_written_to(monkeypatch):
    monkeypatch.setattr(ready_memory, "MADV_POPULATE_WRITE", -1)
    assert ready_memory.touch(1 << 20) == 1 << 20


def test_what_there_is_is_known():
    assert ready_memory.available_bytes() > 1 << 20
