"""Answers whose parts nobody has read: they leave as bytes in the same order, whatever the socket takes, or the connection ends."""

import logging
import os
import socket

import pytest

from horolog.broker.log.storage import RealStorage
from horolog.broker.log.storage.storage import CAN_SEND
from horolog.broker.network.conversation import Conversation
from horolog.broker.network.transport import SocketTransport
from tests.support.conversations import Service, finish, framed, limits
from tests.support.memory_broker import still
from tests.unit.broker.network.test_transport import FakeListener, FakeTransport

pytestmark = pytest.mark.skipif(not CAN_SEND, reason="the system sends no files")

CONTENT = os.urandom(4_000_000)


class WithSocket(FakeTransport):
    def __init__(self, connected):
        super().__init__()
        self.connected = connected

    def get_extra_info(self, name):
        return self.connected if name == "socket" else super().get_extra_info(name)


class Tuned(FakeListener):
    def tune(self, connected):
        pass


@pytest.fixture
def log(tmp_path):
    file = RealStorage().create(str(tmp_path / "log"))
    file.pwritev([CONTENT], 0)
    yield file
    file.close()


@pytest.fixture
def peer():
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.setblocking(False)
    with ours, theirs:
        service = Service()
        transport = WithSocket(ours)
        conversation = Conversation(service.serve, limits(), still, listener="PLAINTEXT")
        connection = SocketTransport(Tuned(), conversation)
        connection.connection_made(transport)
        yield connection, transport, service, theirs


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
    assert transport.written == []


def test_the_rest_waits_as_any_answer_does(peer, log):
    connection, transport, service, theirs = peer
    answer(ask(connection, service), b"head", log.unread(3_000_000, 7), b"end")
    sent = received(theirs)
    assert 4 < len(sent) < 3_000_000
    assert sent + b"".join(transport.written) == b"head" + CONTENT[7:3_000_007] + b"end"


def test_a_head_that_is_taken_in_part_is_finished(peer, log):
    connection, transport, service, theirs = peer
    head = CONTENT[:2_000_000]
    answer(ask(connection, service), head, log.unread(100_000, 7))
    sent = received(theirs)
    assert 0 < len(sent) < len(head)
    assert sent + b"".join(transport.written) == head + CONTENT[7:100_007]


def test_nothing_overtakes_what_waits_already(peer, log):
    connection, transport, service, theirs = peer
    context = ask(connection, service)
    transport.untaken_bytes = 1
    assert not context.takes_unread
    answer(context, b"head", log.unread(70_000, 5))
    assert received(theirs) == b""
    assert b"".join(transport.written) == b"head" + CONTENT[5:70_005]


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
    assert b"".join(transport.written) == b"head" + CONTENT[5:100_005]


def test_without_a_socket_everything_is_read():
    service = Service()
    conversation = Conversation(service.serve, limits(), still, listener="PLAINTEXT")
    SocketTransport(FakeListener(), conversation).connection_made(FakeTransport())
    conversation.receive(framed(b"w"))
    assert not service.waiting[0].takes_unread
