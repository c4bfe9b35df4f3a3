"""Answers whose parts nobody has read: they stay in their files until the socket takes them, leave in order, or the connection ends."""

import asyncio
import gc
import logging
import os
import socket
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import uvloop

from horolog.broker.log.storage import RealStorage, StorageFault
from horolog.broker.log.storage.real_file import CAN_SEND
from horolog.broker.network.conversation import Conversation
from horolog.broker.network.transport import PIECE_BYTES, READ_PIECE_BYTES, SocketTransport
from horolog.broker.network.unanswered import WRITE_HIGH_WATER_BYTES
from horolog.protocol.primitives import Unread
from tests.support.conversations import Service, finish, framed, limits
from tests.support.memory_broker import still
from tests.support.waiting import until
from tests.unit.broker.network.test_transport import FakeListener, FakeTransport

pytestmark = pytest.mark.skipif(not CAN_SEND, reason="the system sends no files")

CONTENT = os.urandom(4_000_000)


class WithSocket(FakeTransport):
    """Sends what the socket takes and keeps the rest, as asyncio's; the test says when it is looked at again."""

    def __init__(self, connected, *, is_tls=False):
        super().__init__()
        self.connected = connected
        self.is_tls = is_tls
        self.kept = bytearray()
        self.limits = []

    def get_extra_info(self, name):
        return self.connected if name == "socket" and not self.is_tls else super().get_extra_info(name)

    def set_write_buffer_limits(self, high):
        self.limits.append(high)

    def write(self, data):
        self.kept += data
        self.flush()

    def writelines(self, parts):
        self.write(b"".join(parts))

    def flush(self):
        try:
            while self.kept and not self.aborted:
                del self.kept[: self.connected.send(self.kept)]
        except BlockingIOError:
            pass
        except ConnectionError:
            self.closed = True

    def get_write_buffer_size(self):
        return len(self.kept)


class Tuned(FakeListener):
    def tune(self, connected):
        pass


@pytest.fixture
def log(tmp_path):
    file = RealStorage().create(str(tmp_path / "log"))
    file.pwritev([CONTENT], 0)
    yield file
    file.close()


def connect(connected, **how):
    service = Service()
    transport = WithSocket(connected, **how)
    conversation = Conversation(service.serve, limits(), still, listener="PLAINTEXT")
    connection = SocketTransport(Tuned(), conversation)
    connection.connection_made(transport)
    return connection, transport, service


@pytest.fixture
def peer():
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.setblocking(False)
    with ours, theirs:
        yield *connect(ours), theirs


def taken(connection, transport, theirs):
    """All that the peer gets, if it takes it."""
    data = bytearray(received(theirs))
    for _ in range(10_000):
        transport.flush()
        if not transport.kept and not connection.unsent_file_bytes:
            break
        if not transport.kept:
            connection.resume_writing()
        data += received(theirs)
    return bytes(data + received(theirs))


def received(theirs):
    data = bytearray()
    try:
        while more := theirs.recv(1 << 20):
            data += more
    except (BlockingIOError, ConnectionError):
        pass
    return bytes(data)


def ask(connection, service):
    connection.data_received(framed(b"w"))
    return service.waiting[-1]


def answer(context, *parts):
    context.parts = list(parts)
    context.connection.answered()


def test_what_the_socket_takes_does_not_pass_through_here(peer, log):
    connection, transport, service, theirs = peer
    answer(ask(connection, service), b"head", log.unread(70_000, 5), b"middle", log.unread(10, 0), b"end")
    assert received(theirs) == b"head" + CONTENT[5:70_005] + b"middle" + CONTENT[:10] + b"end"
    assert (transport.kept, connection.unsent_file_bytes) == (b"", 0)


def test_the_rest_stays_in_its_file_until_the_peer_takes_it(peer, log):
    connection, transport, service, theirs = peer
    answer(ask(connection, service), b"head", log.unread(3_000_000, 7), b"end")
    assert connection.unsent_bytes <= PIECE_BYTES + len(b"end")
    assert connection.unsent_file_bytes > 1_000_000
    assert taken(connection, transport, theirs) == b"head" + CONTENT[7:3_000_007] + b"end"
    assert transport.limits[-1] > 0
    assert (connection.unsent_bytes, connection.unsent_file_bytes) == (0, 0)


def test_over_tls_it_is_read_piece_by_piece(log):
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.setblocking(False)
    with ours, theirs:
        connection, transport, service = connect(ours, is_tls=True)
        assert ask(connection, service).takes_unread
        answer(service.waiting[-1], b"head", log.unread(3_000_000, 7), b"end")
        assert connection.unsent_bytes <= READ_PIECE_BYTES + len(b"end")
        assert taken(connection, transport, theirs) == b"head" + CONTENT[7:3_000_007] + b"end"


def test_a_head_that_is_taken_in_part_is_finished(peer, log):
    connection, transport, service, theirs = peer
    head = CONTENT[:2_000_000]
    answer(ask(connection, service), head, log.unread(100_000, 7))
    assert connection.unsent_file_bytes == 100_000
    assert taken(connection, transport, theirs) == head + CONTENT[7:100_007]


def test_nothing_overtakes_what_waits_already(peer, log):
    connection, transport, service, theirs = peer
    transport.kept += b"before"
    answer(ask(connection, service), b"head", log.unread(70_000, 5))
    answer(ask(connection, service), b"second", log.unread(80_000, 7), b"tail")
    answer(ask(connection, service), b"third")
    data = taken(connection, transport, theirs)
    assert data == b"before" + b"head" + CONTENT[5:70_005] + b"second" + CONTENT[7:80_007] + b"tail" + b"third"


def test_a_peer_that_leaves_much_in_files_is_not_read_from_until_it_has_taken_it(peer, log):
    connection, transport, service, theirs = peer
    pieces = [log.unread(3_000_000, 0) for _ in range(3)]
    answer(ask(connection, service), b"head", *pieces)
    assert connection.unsent_file_bytes > WRITE_HIGH_WATER_BYTES
    assert not transport.reading
    assert connection.conversation.untaken_bytes() <= PIECE_BYTES, "the rest is in its files"
    connection.data_received(framed(b"a"))
    assert taken(connection, transport, theirs) == b"head" + CONTENT[:3_000_000] * 3 + b"a"
    assert transport.reading


def test_its_files_outlast_their_names_and_their_closing(peer, log):
    connection, transport, service, theirs = peer
    answer(ask(connection, service), b"head", log.unread(3_000_000, 7))
    log.close()
    Path(log.path).unlink()
    assert taken(connection, transport, theirs) == b"head" + CONTENT[7:3_000_007]


def open_descriptors():
    gc.collect()
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.parametrize("how", ["taken", "lost", "cut"])
def test_no_descriptor_stays_behind(peer, log, how):
    connection, transport, service, theirs = peer
    before = open_descriptors()
    for _ in range(3):
        answer(ask(connection, service), b"head", log.unread(3_000_000, 7))
    log.close()
    assert open_descriptors() == before, "one for all, instead of the file's own"
    if how == "taken":
        taken(connection, transport, theirs)
    elif how == "lost":
        connection.connection_lost(None)
    else:
        connection.conversation.cut("a test says so")
    assert open_descriptors() == before - 1


def test_of_too_many_files_that_wait_some_are_opened_by_name_again(tmp_path, peer):
    connection, transport, service, theirs = peer
    storage = RealStorage(max_open_files=8)
    files = [storage.create(str(tmp_path / str(number))) for number in range(8)]
    for file in files:
        file.pwritev([CONTENT[:1_000_000]], 0)
    before = open_descriptors()
    answer(ask(connection, service), b"head", *[file.unread(1_000_000, 0) for file in files])
    for file in files:
        file.close()
    assert open_descriptors() == before - 6
    assert taken(connection, transport, theirs) == b"head" + CONTENT[:1_000_000] * 8


@pytest.mark.parametrize("how", ["cut", "withdrawn"])
def test_where_the_bytes_may_have_become_others_the_connection_ends(peer, log, caplog, how):
    caplog.set_level(logging.INFO)
    connection, transport, service, theirs = peer
    answer(ask(connection, service), b"head", log.unread(3_000_000, 7))
    log.truncate(3_000_007)
    assert not transport.aborted
    if how == "cut":
        log.truncate(3_000_006)
    else:
        log.withdraw()
    log.pwritev([bytes(100)], 3_000_006)
    data = taken(connection, transport, theirs)
    assert transport.aborted
    assert (b"head" + CONTENT[7:]).startswith(data)
    assert "its end was lost or rewritten" in caplog.text


def test_a_failed_sync_withdraws_what_waits(log, monkeypatch):
    piece = log.unread(100, 0)

    def fails(descriptor):
        raise OSError(5, "input/output error")

    monkeypatch.setattr(os, "fdatasync", fails)
    with pytest.raises(StorageFault):
        log.datasync()
    with pytest.raises(StorageFault, match="its end was lost"):
        piece.take(10)


def test_what_is_owed_leaves_before_the_end(peer, log, monkeypatch):
    later = []
    monkeypatch.setattr(
        asyncio, "get_running_loop", lambda: SimpleNamespace(call_later=lambda *call: later.append(call))
    )
    connection, transport, service, theirs = peer
    answer(ask(connection, service), b"head", log.unread(3_000_000, 7))
    connection.conversation.close("a test says so")
    assert not transport.closed
    assert taken(connection, transport, theirs) == b"head" + CONTENT[7:3_000_007]
    assert transport.closed
    assert len(later) == 1, "and there is a time after which it does not"


def test_only_the_first_in_line_leaves_now(peer):
    connection, transport, service, _ = peer
    first, second = ask(connection, service), ask(connection, service)
    assert (first.takes_unread, second.takes_unread) == (True, False)
    finish(first, b"1")
    assert second.takes_unread
    transport.closed = True
    assert not second.takes_unread
    connection.connection_lost(None)
    assert not second.takes_unread


def test_a_file_that_cannot_be_sent_ends_the_connection(peer, log, caplog):
    caplog.set_level(logging.INFO)
    connection, transport, service, _ = peer
    answer(ask(connection, service), b"head", log.unread(100, len(CONTENT) - 50))
    assert transport.aborted
    assert "cannot be read" in caplog.text


def test_a_peer_that_is_gone_is_the_transports_business(peer, log):
    connection, transport, service, theirs = peer
    theirs.close()
    answer(ask(connection, service), b"head", log.unread(100_000, 5))
    assert transport.closed


def test_a_file_that_fails_while_it_waits_ends_the_connection_and_is_read_from_then_on(peer, log):
    connection, transport, service, theirs = peer
    answer(ask(connection, service), b"head", log.unread(3_000_000, 1_000_000 + 7))
    os.truncate(log.path, 1_000_000)  # by somebody else
    taken(connection, transport, theirs)
    assert transport.aborted
    assert log.unread(10, 0) is None


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
@pytest.mark.parametrize("reads_bytes", [100, 70_000, 1 << 20])
def test_a_real_socket_gets_everything_however_slowly_it_reads(log, new_loop, reads_bytes):
    service = Service()

    def new_connection():
        return SocketTransport(Tuned(), Conversation(service.serve, limits(), time.monotonic, listener="PLAINTEXT"))

    async def read_all():
        loop = asyncio.get_running_loop()
        server = await loop.create_server(new_connection, "127.0.0.1", 0)
        ours = socket.socket()
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        ours.setblocking(False)
        with ours:
            await loop.sock_connect(ours, server.sockets[0].getsockname())
            expected = bytearray()
            await loop.sock_sendall(ours, framed(b"w") * 3)
            await until(lambda: len(service.waiting) == 3)
            for number, context in enumerate(service.waiting):
                answer(context, b"head", log.unread(1_000_000, number), b"end")
                expected += b"head" + CONTENT[number : number + 1_000_000] + b"end"
            data = bytearray()
            while len(data) < len(expected):
                at_most = reads_bytes if len(data) < 300 * reads_bytes else 1 << 20
                data += await asyncio.wait_for(loop.sock_recv(ours, at_most), 20)
            assert data == expected
        server.close()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(read_all())


class Old(Unread):
    """A slice that leaves in turns; notes in which turns of the loop it is sent or taken."""

    def __init__(self, inner, turn, noted):
        self.inner, self.turn, self.noted = inner, turn, noted

    def __len__(self):
        return len(self.inner)

    def send(self, descriptor):
        self.noted.append(self.turn[0])
        return self.inner.send(descriptor)

    def take(self, size_bytes):
        return self.inner.take(size_bytes)

    def keep(self):
        return self.inner.keep()

    def let_go(self):
        self.inner.let_go()

    def takes_turns(self):
        return True


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
@pytest.mark.parametrize("is_tls", [False, True])
def test_of_several_connections_one_sends_old_data_in_a_turn(log, new_loop, is_tls):
    service, listener, made = Service(), Tuned(), []

    def new_connection():
        conversation = Conversation(service.serve, limits(), time.monotonic, listener="PLAINTEXT")
        made.append(SocketTransport(listener, conversation))
        return made[-1]

    async def read_all():
        loop, turn, noted = asyncio.get_running_loop(), [0], []

        def count():
            turn[0] += 1
            loop.call_soon(count)

        server = await loop.create_server(new_connection, "127.0.0.1", 0)
        clients = [await asyncio.open_connection(*server.sockets[0].getsockname()) for _ in range(3)]
        for _, writer in clients:
            writer.write(framed(b"w"))
        await until(lambda: len(service.waiting) == 3)
        if is_tls:
            for one in made:
                one._descriptor = -1
        count()
        for number, context in enumerate(service.waiting):
            answer(context, b"head", Old(log.unread(3_000_000, number), turn, noted), b"end")
        for number, (reader, _) in enumerate(clients):
            expected = b"head" + CONTENT[number : number + 3_000_000] + b"end"
            assert await asyncio.wait_for(reader.readexactly(len(expected)), 20) == expected
        assert len(set(noted)) == len(noted)
        assert bool(noted) is not is_tls
        for _, writer in clients:
            writer.close()
        server.close()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(read_all())
