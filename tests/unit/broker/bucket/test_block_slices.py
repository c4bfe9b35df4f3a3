"""Slices of blocks leave in order, from files that stay open until then."""

import socket
from pathlib import Path

import pytest

from horolog.broker.bucket import block_slices
from horolog.broker.bucket.block_files import BlockFiles
from horolog.broker.bucket.block_ledger import Block
from horolog.broker.bucket.block_slices import BlockSlices
from horolog.broker.log.storage import RealStorage
from tests.support.bucket_segments import keep

SIZE = 1000
DATA = [bytes([65 + number]) * SIZE for number in range(4)]


@pytest.fixture
def storage():
    return RealStorage(max_open_files=16)


@pytest.fixture
def files(storage, tmp_path):
    files = BlockFiles(storage, str(tmp_path), lambda: 4 * SIZE)
    for number, data in enumerate(DATA):
        keep(files, Block("x", number), data)
    return files


def slices_of(files, *numbers):
    return BlockSlices(files.unread(Block("x", number), SIZE, 0) for number in numbers)


def open_descriptors():
    return len(list(Path("/proc/self/fd").iterdir()))


def test_they_are_read_and_taken_over_the_borders(files):
    slices = slices_of(files, 0, 1)
    assert (len(slices), slices.keep(), slices.read()) == (2 * SIZE, True, DATA[0] + DATA[1])
    assert slices.takes_turns(), "producers do not wait for old data"
    assert slices.take(SIZE + 1) == DATA[0] + b"B"
    assert (len(slices), repr(slices)) == (SIZE - 1, f"<BlockSlices: {SIZE - 1} bytes of 1 blocks>")
    assert slices.take(2 * SIZE) == b"B" * (SIZE - 1)
    assert (len(slices), slices.take(1)) == (0, b"")


def test_blocks_that_go_are_sent_all_the_same_and_their_files_are_closed_then(files):
    slices, before = slices_of(files, 0, 1, 2), open_descriptors()
    for number in range(3):
        files.drop(Block("x", number))
    assert open_descriptors() == before
    here, there = socket.socketpair()
    with here, there:
        assert slices.send(here.fileno())
        assert there.recv(10 * SIZE) == b"".join(DATA[:3])
    assert open_descriptors() == before - 3


def test_files_of_an_answer_that_is_dropped_are_closed(files):
    slices, before = slices_of(files, 0), open_descriptors()
    files.drop(Block("x", 0))
    del slices
    assert open_descriptors() == before - 1


def test_a_socket_that_is_full_and_others_have_their_turn(files, monkeypatch):
    here, there = socket.socketpair()
    with here, there:
        here.setblocking(False)
        monkeypatch.setattr(block_slices, "SENT_IN_A_TURN_BYTES", SIZE)
        slices = slices_of(files, 0, 1)
        assert (slices.send(here.fileno()), len(slices)) == (False, SIZE)
        while True:
            try:
                here.send(b"-" * 65536)
            except BlockingIOError:
                break
        assert (slices.send(here.fileno()), slices.read()) == (False, DATA[1])
        slices.let_go()
        assert len(slices) == 0


def test_what_cannot_stay_open_is_read_instead(files, storage):
    kept = [files.unread(Block("x", number), SIZE, 0) for number in range(4)]
    assert len([one for one in kept if one is not None]) == 4
    keep(files, Block("x", 5), b"more")
    files.limit_bytes = lambda: 10 * SIZE
    assert files.unread(Block("x", 5), 4, 0) is None
    assert files.read(Block("x", 5), 4, 0) == b"more"


def test_a_block_that_is_not_here_or_cannot_be_opened_is_not_sent(files, storage, monkeypatch, tmp_path):
    assert files.unread(Block("x", 9), SIZE, 0) is None
    storage.max_open_files = 1
    keep(files, Block("x", 6), b"closes others")
    for path in (tmp_path / "horolog-blocks").iterdir():
        path.unlink()
    found = [files.unread(Block("x", number), SIZE, 0) for number in range(1, 4)]
    assert None in found
