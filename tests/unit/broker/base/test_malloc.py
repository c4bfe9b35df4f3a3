"""What the C library is told of the memory that it may keep."""

import ctypes
import os

import pytest

from horolog.broker.base import malloc
from horolog.broker.config.settings import load

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
        code = (
            f"from horolog.broker.base.malloc import keep_free_memory as keep; raise SystemExit(not keep({keep_bytes}))"
        )
        subprocess.run([sys.executable, "-c", code], check=True, timeout=30)


def test_the_library_is_that_of_this_process():
    assert malloc._c_library().getpid() == os.getpid()


class Trimming(Library):
    """Has a process of a size, of which a part is free."""

    def __init__(self, used_bytes):
        super().__init__()
        self.used_bytes = self.resident_bytes = used_bytes
        self.trimmed = 0

    def malloc_trim(self, pad):
        assert pad == 0
        self.trimmed += 1
        self.resident_bytes = self.used_bytes
        return 1


@pytest.fixture
def cpu(monkeypatch):
    """Seconds of the clock and of the processor, which a test lets pass."""
    passed = {"clock": 0.0, "processor": 0.0}
    monkeypatch.setattr(malloc.time, "monotonic", lambda: passed["clock"])
    monkeypatch.setattr(malloc.time, "process_time", lambda: passed["processor"])

    def go_by(clock_s, processor_s):
        passed["clock"] += clock_s
        passed["processor"] += processor_s

    return go_by


def test_what_a_crowd_has_left_is_given_back_when_it_is_calm(cpu):
    library = Trimming(40 * MIB)
    memory = malloc.FreeMemory(library, lambda: library.resident_bytes)
    cpu(15, 0.1)
    memory.look()
    assert library.trimmed == 0, "nothing has grown"
    library.resident_bytes = 300 * MIB
    cpu(15, 14)
    memory.look()
    assert library.trimmed == 0, "it would be taken again"
    for _ in range(3):
        cpu(15, 1)
        memory.look()
        assert (library.resident_bytes, library.trimmed) == (40 * MIB, 1)


def test_what_is_in_use_is_not_looked_for_again_and_again(cpu):
    library = Trimming(40 * MIB)
    memory = malloc.FreeMemory(library, lambda: library.resident_bytes)
    looked_for = []
    for used_mib, resident_mib in ((200, 200), (200, 200), (60, 60), (60, 90)):
        library.used_bytes, library.resident_bytes = used_mib * MIB, resident_mib * MIB
        cpu(15, 1)
        memory.look()
        looked_for.append(library.trimmed)
    assert looked_for == [1, 1, 1, 2]


def test_another_c_library_is_not_asked(cpu):
    sizes = iter([0, 300 * MIB])
    memory = malloc.FreeMemory(OtherLibrary(), lambda: next(sizes))
    cpu(15, 1)
    memory.look()


def test_the_size_of_this_process_is_known():
    assert malloc.resident_bytes() > MIB


def test_a_system_that_does_not_tell_it_has_none(monkeypatch, tmp_path):
    monkeypatch.setattr(malloc, "_STATM", tmp_path / "none")
    assert malloc.resident_bytes() == 0
