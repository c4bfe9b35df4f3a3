"""A piece of a file on its way to a socket: the bytes that would be read, however many the socket takes at a time."""

import os
import socket

import pytest

from horolog.broker.log.storage import MemoryStorage, OverlayStorage, ReadOnlyStorage, RealStorage, StorageFault
from horolog.broker.log.storage.storage import CAN_SEND

pytestmark = pytest.mark.skipif(not CAN_SEND, reason="the system sends no files")

CONTENT = os.urandom(3_000_000)


@pytest.fixture
def file(tmp_path):
    storage = RealStorage()
    file = storage.create(str(tmp_path / "log"))
    file.pwritev([CONTENT], 0)
    yield file
    file.close()


@pytest.fixture
def sockets():
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with ours, theirs:
        yield ours, theirs


def test_it_says_how_long_it_is_and_can_be_read(file):
    piece = file.unread(1_000, 70)
    assert len(piece) == 1_000
    assert piece.read() == CONTENT[70:1_070]
    assert repr(piece) == f"<FileSlice of 1000 bytes from 70 of {file.path}>"


def test_what_the_socket_does_not_take_is_left(file, sockets):
    ours, theirs = sockets
    piece = file.unread(2_500_000, 100)
    received = bytearray()
    while not piece.send(ours.fileno()):
        assert piece.read() == CONTENT[100 + len(received) :][: len(piece)] or len(piece) < 2_500_000
        received += theirs.recv(1 << 20)
    while len(received) < 2_500_000:
        received += theirs.recv(1 << 20)
    assert received == CONTENT[100:2_500_100]


def test_a_file_that_was_closed_to_make_room_is_opened_again(file, sockets):
    ours, theirs = sockets
    file.close()
    assert file.unread(10, 5).send(ours.fileno())
    assert theirs.recv(20) == CONTENT[5:15]


def test_a_broken_socket_is_for_the_transport_to_find_out(file, sockets):
    ours, theirs = sockets
    theirs.close()
    assert not file.unread(10, 5).send(ours.fileno())
    assert file.unread(10, 5) is not None


def test_a_file_that_cannot_be_sent_is_read_from_then_on(file, sockets):
    piece = file.unread(100, len(CONTENT) - 50)
    with pytest.raises(StorageFault, match="ends 50 bytes before"):
        piece.send(sockets[0].fileno())
    assert file.unread(10, 5) is None


def test_a_fault_of_the_disk_is_one_here(file, tmp_path):
    with pytest.raises(StorageFault, match=r"send .*log"):
        file.unread(10, 5).send(-1)
    assert file.unread(10, 5) is None


def test_what_is_not_the_system_s_alone_is_read(file):
    memory = MemoryStorage()
    memory.create("/log").pwritev([b"abc"], 0)
    assert memory.open("/log").unread(2, 0) is None
    assert OverlayStorage(memory).open("/log").unread(2, 0) is None
    assert ReadOnlyStorage().open(file.path).unread(2, 0) is None
