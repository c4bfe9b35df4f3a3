"""What the C library is told of the memory that it may keep."""

import ctypes
import os

import pytest

from horolog.broker import malloc
from horolog.broker.settings import load

MIB = 2**20


class Library:
    """Stands for the C library: takes notes, and refuses what it is told to."""

    def __init__(self, refused=()):
        self.taken = {}
        self._refused = refused

    def mallopt(self, option, value):
        self.taken[option] = value
        return int(option not in self._refused)

    def gnu_get_libc_version(self):
        return b"2.36"


class OtherLibrary:
    """Has neither."""


@pytest.mark.parametrize(
    ("keep_bytes", "mapped_from", "step"),
    [(8 * MIB, 8 * MIB, MIB), (2**31 - 1, 32 * MIB, MIB), (1000, 128 * 1024, 1000)],
)
def test_all_three_settings_follow_from_one(keep_bytes, mapped_from, step):
    library = Library()
    assert malloc.keep_free_memory(keep_bytes, library)
    assert library.taken == {
        malloc.MMAP_THRESHOLD: mapped_from,
        malloc.TRIM_THRESHOLD: keep_bytes,
        malloc.TOP_PAD: step,
    }


def test_nothing_is_changed_with_0():
    library = Library()
    assert not malloc.keep_free_memory(0, library)
    assert library.taken == {}


def test_another_c_library_is_left_alone():
    assert not malloc.keep_free_memory(MIB, OtherLibrary())


def test_a_setting_that_is_refused_does_not_stop_the_others():
    library = Library(refused={malloc.MMAP_THRESHOLD})
    assert not malloc.keep_free_memory(MIB, library)
    assert len(library.taken) == 3


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "gnu_get_libc_version"), reason="not glibc")
def test_glibc_takes_every_value_that_the_setting_allows(tmp_path):
    """In a process of its own, whose memory is kept for good."""
    import subprocess
    import sys

    for keep_bytes in (load(None, {}, {})[0].horolog_malloc_keep_bytes, 1, 2**31 - 1):
        code = f"from horolog.broker.malloc import keep_free_memory as keep; raise SystemExit(not keep({keep_bytes}))"
        subprocess.run([sys.executable, "-c", code], check=True, timeout=30)


def test_the_library_is_that_of_this_process():
    assert malloc._c_library().getpid() == os.getpid()
