"""Blocks that are set aside for a file: its size stays, and where they cannot be had nothing changes."""

import os

import pytest

from horolog.broker.log.storage import reservation
from horolog.broker.log.storage.reservation import reserve


@pytest.fixture
def descriptor(tmp_path):
    made = os.open(tmp_path / "log", os.O_RDWR | os.O_CREAT)
    os.write(made, b"abc")
    yield made
    os.close(made)


def test_the_size_and_the_bytes_stay(descriptor):
    before = os.fstat(descriptor).st_blocks
    if not reserve(descriptor, 3, 1 << 20):
        pytest.skip("this file system cannot reserve")
    assert os.fstat(descriptor).st_size == 3
    assert os.fstat(descriptor).st_blocks > before
    os.pwrite(descriptor, b"def", 3)
    assert os.pread(descriptor, 10, 0) == b"abcdef"
    os.ftruncate(descriptor, 6)
    assert os.fstat(descriptor).st_blocks == before, "cutting it to its size gives the blocks back"


def test_a_file_that_is_only_read_gets_none(tmp_path):
    (tmp_path / "log").write_bytes(b"abc")
    descriptor = os.open(tmp_path / "log", os.O_RDONLY)
    assert not reserve(descriptor, 3, 100)
    os.close(descriptor)


def test_a_system_without_the_call(descriptor, monkeypatch):
    monkeypatch.setattr("ctypes.CDLL", lambda _name: object())
    reservation._fallocate.cache_clear()
    try:
        assert not reserve(descriptor, 3, 100)
    finally:
        reservation._fallocate.cache_clear()
