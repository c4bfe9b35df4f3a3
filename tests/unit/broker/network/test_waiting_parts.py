"""What a socket has not taken: it leaves in order, by sending or by taking, and nothing stays open behind it."""

import os
import random
import socket

import pytest

from horolog.broker.log.storage import RealStorage
from horolog.broker.log.storage.real_file import CAN_SEND
from horolog.broker.network.waiting_parts import WaitingParts
from horolog.protocol.primitives import Unread

pytestmark = pytest.mark.skipif(not CAN_SEND, reason="the system sends no files")

CONTENT = os.urandom(2_000_000)


@pytest.fixture
def log(tmp_path):
    file = RealStorage().create(str(tmp_path / "log"))
    file.pwritev([CONTENT], 0)
    yield file
    file.close()


@pytest.fixture
def sockets():
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.setblocking(False)
    with ours, theirs:
        yield ours, theirs


def some_parts(chance, log):
    """And the bytes that they are."""
    parts, expected = [], b""
    for _ in range(chance.randint(1, 8)):
        start = chance.randrange(1_000_000)
        size = chance.choice((1, 4, 70_000, 900_000))
        parts.append(log.unread(size, start) if chance.random() < 0.5 else CONTENT[start : start + size])
        expected += CONTENT[start : start + size]
    return parts, expected


@pytest.mark.parametrize("seed", range(20))
def test_everything_leaves_once_and_in_order(log, sockets, seed):
    ours, theirs = sockets
    chance = random.Random(seed)
    waiting, got = WaitingParts(), bytearray()
    parts, expected = some_parts(chance, log)
    waiting.add(parts)
    more, expected_more = some_parts(chance, log)
    waiting.add(more)
    while waiting:
        assert waiting.memory_bytes + waiting.file_bytes == len(expected + expected_more) - len(got)
        if chance.random() < 0.5:
            got += waiting.take(chance.choice((1, 4096, 65536)))
        else:
            waiting.send(ours.fileno())
        try:
            while part := theirs.recv(1 << 20):
                got += part
        except BlockingIOError:
            pass
    assert got == expected + expected_more
    assert waiting.take(10) == b""


class Watched(Unread):
    """A slice that looks at what has arrived before it is sent."""

    def __init__(self, theirs):
        self.theirs = theirs
        self.arrived_before = b"?"

    def __len__(self):
        return 3

    def keep(self):
        return True

    def let_go(self):
        pass

    def send(self, descriptor):
        try:
            self.arrived_before = self.theirs.recv(100)
        except BlockingIOError:
            self.arrived_before = b""
        return os.write(descriptor, b"xyz") == 3


@pytest.mark.skipif(not hasattr(socket, "MSG_MORE"), reason="the system sends a head at once")
def test_a_head_leaves_together_with_the_slice_behind_it():
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        socket.create_connection(listening.getsockname()) as theirs,
    ):
        ours, _ = listening.accept()
        theirs.setblocking(False)
        with ours:
            ours.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            waiting, watched = WaitingParts(), Watched(theirs)
            waiting.add([b"head", watched])
            waiting.send(ours.fileno())
            theirs.setblocking(True)
            assert (watched.arrived_before, theirs.recv(100)) == (b"", b"headxyz")
            waiting.add([b"alone"])
            waiting.send(ours.fileno())
            assert theirs.recv(100) == b"alone"
        assert not waiting


def test_a_broken_socket_takes_nothing(log, sockets):
    ours, theirs = sockets
    theirs.close()
    for parts in ([b"abc"], [log.unread(10, 0)]):
        waiting = WaitingParts()
        waiting.add(parts)
        waiting.send(ours.fileno())
        assert len(waiting) == 1


class Counted(Unread):
    open = 0
    is_old = False

    def __len__(self):
        return 3

    def keep(self):
        Counted.open += 1
        return True

    def let_go(self):
        Counted.open -= 1

    def takes_turns(self):
        return self.is_old


def test_what_is_dropped_is_let_go_of():
    waiting = WaitingParts()
    waiting.add([b"a", Counted(), Counted()])
    assert Counted.open == 2
    assert repr(waiting) == "<WaitingParts 3, 1 bytes in memory and 6 in files>"
    waiting.drop()
    assert (Counted.open, len(waiting)) == (0, 0)


def test_old_data_among_others_takes_turns():
    waiting, old = WaitingParts(), Counted()
    waiting.add([b"a", Counted()])
    assert not waiting.takes_turns
    old.is_old = True
    waiting.add([old])
    assert waiting.takes_turns
    waiting.drop()
