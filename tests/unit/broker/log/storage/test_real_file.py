"""A file of the operating system: its descriptor, what the kernel leaves undone, faults, and slices on their way to a socket."""

import errno
import os
import socket

import pytest

from horolog.broker.log.storage import (
    FileMissing,
    MemoryStorage,
    OverlayStorage,
    ReadOnlyStorage,
    RealStorage,
    StorageFault,
    real_file,
)
from horolog.broker.log.storage.real_file import CAN_SEND


def test_the_kernel_may_take_less_than_it_is_given(monkeypatch, tmp_path):
    """Short writes are gone on with, at every length at which they may end."""
    real = os.pwritev
    monkeypatch.setattr(real_file, "JOIN_BELOW_BYTES", 0)
    monkeypatch.setattr(real_file, "MAX_BUFFERS_PER_WRITE", 3)
    monkeypatch.setattr(os, "pwritev", lambda fd, buffers, at: real(fd, [b"".join(buffers)[:4]], at))
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: real(fd, [data[:1]], at))
    storage = RealStorage()
    for sizes in ([5, 0, 3, 4, 9], [1], [4, 4], [11], [0, 0, 2, 6]):
        buffers = [bytes(range(size)) for size in sizes]
        file = storage.create(f"{tmp_path}/a")
        file.pwritev(buffers, 0)
        assert storage.read_all(f"{tmp_path}/a") == b"".join(buffers)


def test_the_kernel_may_give_less_than_it_is_asked_for(monkeypatch, tmp_path):
    real = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, size, at: real(fd, min(size, 4), at))
    file = RealStorage().create(f"{tmp_path}/a")
    file.pwritev([b"0123456789"], 0)
    assert [file.pread(size, 1) for size in (0, 3, 4, 5, 9)] == [b"", b"123", b"1234", b"12345", b"123456789"]
    with pytest.raises(StorageFault, match="ends 2 bytes before 12"):
        file.pread(11, 1)


@pytest.mark.parametrize(
    ("call", "use", "operation"),
    [
        ("pread", lambda file: file.pread(1, 0), "read"),
        ("pwrite", lambda file: file.pwritev([b"x"], 0), "write"),
        ("ftruncate", lambda file: file.truncate(1), "truncate"),
        ("posix_fallocate", lambda file: file.allocate(9), "allocate"),
        ("fdatasync", lambda file: file.datasync(), "sync"),
        ("stat", lambda file: file.size(), "stat"),
        ("stat", lambda file: file.check_in_place(), "stat"),
        ("open", lambda file: file.pread(1, 0), "open"),
    ],
)
def test_faults_of_the_system_tell_what_was_done_to_which_file(tmp_path, monkeypatch, call, use, operation):
    def broken(*_arguments, **_fields):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    file = RealStorage().create(f"{tmp_path}/a")
    file.pwritev([b"abc"], 0)
    if call == "open":
        file.close()
    monkeypatch.setattr(os, call, broken)
    with pytest.raises(StorageFault, match=f"{operation} {tmp_path}/a.*Input/output error") as caught:
        use(file)
    assert (caught.value.code, caught.value.path) == (errno.EIO, f"{tmp_path}/a")


def test_a_file_without_a_name_has_no_size_once_it_is_closed(tmp_path):
    storage = RealStorage()
    file = storage.create(f"{tmp_path}/a")
    storage.remove(file.path)
    assert file.size() == 0
    file.close()
    with pytest.raises(FileMissing):
        file.size()
    with pytest.raises(FileMissing):
        storage.read_all(file.path)


class TestFilesThatMayNotBeWritten:
    @pytest.fixture
    def file(self, tmp_path, monkeypatch):
        """One that opens for reading only, as on a file system that became read-only."""
        path = tmp_path / "a"
        path.write_bytes(b"abc")
        real = os.open

        def for_reading(name, flags, *rest, **fields):
            if flags & os.O_RDWR:
                raise OSError(errno.EROFS, os.strerror(errno.EROFS))
            return real(name, flags, *rest, **fields)

        monkeypatch.setattr(os, "open", for_reading)
        return RealStorage().open(str(path))

    def test_they_are_read_and_say_why_they_are_not_written(self, file):
        assert file.pread(3, 0) == b"abc"
        for change in (lambda: file.pwritev([b"x"], 0), lambda: file.truncate(0)):
            with pytest.raises(StorageFault) as caught:
                change()
            assert caught.value.code == errno.EROFS


def test_a_file_that_has_lost_its_name_is_not_taken_for_the_one_that_has_it(tmp_path):
    storage = RealStorage()
    file = storage.create(f"{tmp_path}/a")
    file.check_in_place()
    storage.write_atomically(file.path, b"other")
    with pytest.raises(FileMissing, match="another file has its name"):
        file.check_in_place()
    file.close()
    with pytest.raises(FileMissing):
        file.pread(1, 0)


# A piece of a file on its way to a socket

CONTENT = os.urandom(3_000_000)
sends = pytest.mark.skipif(not CAN_SEND, reason="the system sends no files")


@pytest.fixture
def long_file(tmp_path):
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


@sends
def test_it_says_how_long_it_is_and_can_be_read(long_file):
    piece = long_file.unread(1_000, 70)
    assert len(piece) == 1_000
    assert piece.read() == CONTENT[70:1_070]
    assert repr(piece) == f"<FileSlice of 1000 bytes from 70 of {long_file.path}>"


@sends
def test_what_the_socket_does_not_take_is_left(long_file, sockets):
    ours, theirs = sockets
    piece = long_file.unread(2_500_000, 100)
    received = bytearray()
    while not piece.send(ours.fileno()):
        assert piece.read() == CONTENT[100 + len(received) :][: len(piece)] or len(piece) < 2_500_000
        received += theirs.recv(1 << 20)
    while len(received) < 2_500_000:
        received += theirs.recv(1 << 20)
    assert received == CONTENT[100:2_500_100]


@sends
def test_a_file_that_was_closed_to_make_room_is_opened_again(long_file, sockets):
    ours, theirs = sockets
    long_file.close()
    assert long_file.unread(10, 5).send(ours.fileno())
    assert theirs.recv(20) == CONTENT[5:15]


@sends
def test_a_broken_socket_is_for_the_transport_to_find_out(long_file, sockets):
    ours, theirs = sockets
    theirs.close()
    assert not long_file.unread(10, 5).send(ours.fileno())
    assert long_file.unread(10, 5) is not None


@sends
def test_a_file_that_cannot_be_sent_is_read_from_then_on(long_file, sockets):
    piece = long_file.unread(100, len(CONTENT) - 50)
    with pytest.raises(StorageFault, match="ends 50 bytes before"):
        piece.send(sockets[0].fileno())
    assert long_file.unread(10, 5) is None


@sends
def test_a_fault_of_the_disk_is_one_here(long_file, tmp_path):
    with pytest.raises(StorageFault, match=r"send .*log"):
        long_file.unread(10, 5).send(-1)
    assert long_file.unread(10, 5) is None


@sends
def test_a_slice_is_not_sent_where_its_bytes_may_have_become_others(long_file, sockets):
    """Its file was cut before its end: other bytes are written there next than the answer began with."""
    before, across = long_file.unread(1_000, 0), long_file.unread(1_000, 9_500)
    long_file.truncate(10_500)
    assert before.read() == CONTENT[:1_000]
    long_file.truncate(10_000)
    for piece in (before, across):
        with pytest.raises(StorageFault, match="lost or rewritten"):
            piece.send(sockets[0].fileno())
    assert long_file.unread(1_000, 9_000).read() == CONTENT[9_000:10_000]


@sends
def test_nor_where_a_sync_has_failed(long_file, sockets, monkeypatch):
    def fails(_):
        raise OSError(errno.EIO, "the disk is gone")

    piece = long_file.unread(1_000, 0)
    monkeypatch.setattr(os, "fdatasync", fails)
    with pytest.raises(StorageFault):
        long_file.datasync()
    with pytest.raises(StorageFault, match="lost or rewritten"):
        piece.send(sockets[0].fileno())


@sends
def test_what_is_not_the_system_s_alone_is_read(long_file):
    memory = MemoryStorage()
    memory.create("/log").pwritev([b"abc"], 0)
    assert memory.open("/log").unread(2, 0) is None
    assert OverlayStorage(memory).open("/log").unread(2, 0) is None
    assert ReadOnlyStorage().open(long_file.path).unread(2, 0) is None
