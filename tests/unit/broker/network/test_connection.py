"""A connection answers in order, stops reading from peers that owe it, and ends with a reason."""

import logging
import struct
from typing import Any

import pytest

from broker.handlers.context import RequestContext
from broker.network.connection import Connection
from broker.network.listener import ConnectionLimits
from broker.settings import load
from protocol.errors import ProtocolError


class FakeTransport:
    """Collects what is written; reading can be paused."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.reading = True
        self.closed = False

    def get_extra_info(self, name: str) -> Any:
        return ("127.0.0.1", 4711) if name == "peername" else None

    def writelines(self, parts: list[bytes]) -> None:
        self.written.append(b"".join(bytes(part) for part in parts))

    def set_write_buffer_limits(self, high: int) -> None:
        assert high > 0

    def pause_reading(self) -> None:  # idempotent, as asyncio's
        self.reading = False

    def resume_reading(self) -> None:
        assert not self.reading
        self.reading = True

    def close(self) -> None:
        self.closed = True


class FakeListener:
    name = "PLAINTEXT"

    def __init__(self, refusal: str | None = None) -> None:
        self.refusal = refusal
        self.forgotten = 0

    def admit(self, connection: Connection) -> str | None:
        return self.refusal

    def forget(self, connection: Connection) -> None:
        self.forgotten += 1


class NoMeter:
    def answered(self, response: object, size_bytes: int, began: float) -> None:
        pass

    def not_answered(self, began: float) -> None:
        pass


class FakeDispatcher:
    """Answers every request with its own bytes; those that begin with 'w' wait, 'x' is no request."""

    def __init__(self) -> None:
        self.waiting: list[RequestContext] = []
        self.seen: list[bytes] = []

    def dispatch(self, frame: memoryview, connection: Any) -> RequestContext:
        body = bytes(frame)
        self.seen.append(body)
        if body[:1] == b"x":
            raise ProtocolError("unknown api key 120")
        echo = lambda response, parts: parts.append(response)  # noqa: E731
        context = RequestContext(connection, 0, 0, None, echo, 0, len(frame), NoMeter(), 0.0)
        if body[:1] == b"w":
            self.waiting.append(context)
        else:
            context.parts = [body]
        return context


def frame(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def limits(max_unanswered_requests: int) -> ConnectionLimits:
    settings, _ = load(None, {}, {"queued.max.requests": str(max_unanswered_requests)})
    return ConnectionLimits.of(settings)


def connect(
    refusal: str | None = None, max_unanswered_requests: int = 500
) -> tuple[Connection, FakeTransport, FakeDispatcher]:
    dispatcher, transport = FakeDispatcher(), FakeTransport()
    connection = Connection(FakeListener(refusal), dispatcher, limits(max_unanswered_requests))  # type: ignore[arg-type]
    connection.connection_made(transport)  # type: ignore[arg-type]
    return connection, transport, dispatcher


def finish(context: RequestContext, body: bytes) -> None:
    context.parts = [body]
    context.connection.answered()


def test_answers_wait_for_those_before_them() -> None:
    connection, transport, dispatcher = connect()
    connection.data_received(frame(b"w1") + frame(b"a") + frame(b"w2") + frame(b"b"))
    assert transport.written == []
    finish(dispatcher.waiting[1], b"W2")
    assert transport.written == []
    finish(dispatcher.waiting[0], b"W1")
    assert transport.written == [b"W1", b"a", b"W2", b"b"]


def test_a_request_without_answer_holds_nothing_up() -> None:
    connection, transport, dispatcher = connect()
    connection.data_received(frame(b"w1") + frame(b"a"))
    dispatcher.waiting[0].reply_nothing()
    assert transport.written == [b"a"]


def test_too_many_unanswered_requests_stop_the_reading() -> None:
    connection, transport, dispatcher = connect(max_unanswered_requests=2)
    connection.data_received(b"".join(frame(b"w%d" % n) for n in range(5)))
    assert len(dispatcher.seen) == 2
    assert not transport.reading
    finish(dispatcher.waiting[0], b"0")
    assert len(dispatcher.seen) == 3
    for place in (1, 2, 3, 4):
        finish(dispatcher.waiting[place], b"%d" % place)
    assert transport.written == [b"0", b"1", b"2", b"3", b"4"]
    assert transport.reading


def test_a_slow_reader_is_not_read_from_and_nothing_is_lost() -> None:
    connection, transport, dispatcher = connect()
    connection.pause_writing()
    assert not transport.reading
    connection.data_received(frame(b"a") + frame(b"b"))
    assert dispatcher.seen == []
    connection.resume_writing()
    assert transport.written == [b"a", b"b"]
    assert transport.reading


def test_bad_frames_close_the_connection_after_the_good_ones(caplog: pytest.LogCaptureFixture) -> None:
    connection, transport, _ = connect()
    with caplog.at_level(logging.INFO):
        connection.data_received(frame(b"a") + b"GET / HTTP/1.1\r\n\r\n")
    assert transport.written == [b"a"]
    assert transport.closed
    assert "HTTP" in caplog.text


def test_a_request_that_makes_no_sense_closes_the_connection() -> None:
    connection, transport, dispatcher = connect()
    connection.data_received(frame(b"a") + frame(b"x") + frame(b"b"))
    assert transport.written == [b"a"]
    assert transport.closed
    assert dispatcher.seen == [b"a", b"x"]


def test_who_waits_is_told_when_the_client_goes() -> None:
    connection, _, dispatcher = connect()
    connection.data_received(frame(b"w1"))
    abandoned: list[int] = []
    dispatcher.waiting[0].on_abandoned = lambda: abandoned.append(1)
    connection.connection_lost(None)
    assert abandoned == [1]
    finish(dispatcher.waiting[0], b"late")


def test_a_refused_connection_is_closed_at_once() -> None:
    _, transport, _ = connect("max.connections (1) is reached")
    assert transport.closed
