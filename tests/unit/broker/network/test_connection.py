"""A connection answers in order, stops reading from peers that owe it, and ends with a reason."""

import asyncio
import logging
import struct
from types import SimpleNamespace
from typing import Any

import pytest

from horolog.broker.handlers.context import RequestContext
from horolog.broker.network.connection import WRITE_HIGH_WATER_BYTES, Connection
from horolog.broker.network.listener import ConnectionLimits
from horolog.broker.settings import load
from horolog.protocol.errors import ProtocolError


class FakeTransport:
    """Collects what is written; reading can be paused."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.reading = True
        self.closed = False
        self.aborted = False
        self.untaken_bytes = 0

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

    def abort(self) -> None:
        self.aborted = True

    def is_closing(self) -> bool:
        return self.closed or self.aborted

    def get_write_buffer_size(self) -> int:
        return self.untaken_bytes


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


def way(encode: Any) -> Any:
    return SimpleNamespace(version=0, encode=encode, response_header_version=0, meter=NoMeter())


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
        context = RequestContext(connection, way(echo), 0, None, len(frame), 0.0)
        if body[:1] == b"w":
            self.waiting.append(context)
        else:
            context.parts = [body]
        return context


def frame(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def limits(**chosen: int) -> ConnectionLimits:
    settings, _ = load(None, {}, {key.replace("_", "."): str(value) for key, value in chosen.items()})
    return ConnectionLimits.of(settings)


def connect(
    refusal: str | None = None, shared: ConnectionLimits | None = None, **chosen: int
) -> tuple[Connection, FakeTransport, FakeDispatcher]:
    dispatcher, transport = FakeDispatcher(), FakeTransport()
    connection = Connection(FakeListener(refusal), dispatcher, shared or limits(**chosen))  # type: ignore[arg-type]
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
    connection, transport, dispatcher = connect(queued_max_requests=2)
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
    transport.untaken_bytes = WRITE_HIGH_WATER_BYTES + 1
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


# -- what all connections hold together

PRODUCE = b"\0\0"
"""How a Produce request begins; the dispatcher here lets every one of them wait."""


def produce(size_bytes: int) -> bytes:
    return frame(PRODUCE + b"p" * (size_bytes - 2))


class Keeper(FakeDispatcher):
    """Every request waits."""

    def dispatch(self, frame: memoryview, connection: Any) -> RequestContext:
        self.seen.append(bytes(frame))
        echo = lambda response, parts: parts.append(response)  # noqa: E731
        context = RequestContext(connection, way(echo), 0, None, len(frame), 0.0)
        self.waiting.append(context)
        return context


def keep(shared: ConnectionLimits) -> tuple[Connection, FakeTransport, Keeper]:
    dispatcher, transport = Keeper(), FakeTransport()
    connection = Connection(FakeListener(), dispatcher, shared)  # type: ignore[arg-type]
    connection.connection_made(transport)  # type: ignore[arg-type]
    return connection, transport, dispatcher


def test_records_that_wait_to_be_written_are_bounded_over_all_connections() -> None:
    shared = limits(queued_max_request_bytes=100)
    (one, one_transport, ones), (other, other_transport, others) = keep(shared), keep(shared)
    one.data_received(produce(60) + produce(60) + produce(60))
    assert len(ones.seen) == 2, "the bound is passed by one request at the most"
    assert not one_transport.reading
    other.data_received(produce(10))
    assert not others.seen
    assert not other_transport.reading
    finish(ones.waiting[0], b"1")
    finish(ones.waiting[1], b"2")
    assert len(ones.seen) == 3
    assert len(others.seen) == 1
    finish(ones.waiting[2], b"3")
    finish(others.waiting[0], b"4")
    assert one_transport.reading
    assert other_transport.reading
    assert shared.memory.requests.held_bytes == 0


def test_requests_that_wait_for_other_clients_hold_up_nobody() -> None:
    shared = limits(queued_max_request_bytes=100)
    one, transport, dispatcher = keep(shared)
    one.data_received(frame(b"\0\x0b" + b"j" * 200) + frame(b"\0\x0b"))
    assert len(dispatcher.seen) == 2
    assert transport.reading


def test_whoever_goes_gives_back_what_it_held() -> None:
    shared = limits(queued_max_request_bytes=100)
    (one, _, _), (other, other_transport, others) = keep(shared), keep(shared)
    one.data_received(produce(100) + frame(b"begun")[:5])
    other.data_received(produce(10))
    assert not others.seen
    one.connection_lost(None)
    assert len(others.seen) == 1
    assert other_transport.reading
    assert shared.memory.unfinished.total_bytes == 0


def test_of_unfinished_requests_the_largest_goes() -> None:
    shared = limits(horolog_unfinished_requests_max_bytes=1000)
    small, _, small_dispatcher = connect(shared=shared)
    large, large_transport, _ = connect(shared=shared)
    small.data_received(struct.pack(">i", 400) + b"s" * 300)
    large.data_received(struct.pack(">i", 5000) + b"l" * 600)
    assert not large_transport.aborted
    large.data_received(b"l" * 200)
    assert large_transport.aborted
    small.data_received(b"s" * 100)
    assert small_dispatcher.seen == [b"s" * 400]
    assert shared.memory.unfinished.total_bytes == 0


def test_answers_that_are_not_taken_are_counted_and_the_largest_goes() -> None:
    shared = limits(horolog_fetch_memory_max_bytes=1_000_000)
    peers = [connect(shared=shared) for _ in range(3)]
    for (connection, transport, _), untaken_bytes in zip(peers, (500_000, 400_000, 900_000), strict=True):
        transport.untaken_bytes = untaken_bytes
        connection.pause_writing()
    assert shared.memory.answers.is_tight
    assert peers[0][0].room_for_answer_bytes == 0
    assert [transport.aborted for _, transport, _ in peers] == [False, False, False]
    assert not peers[2][1].reading, "one answer each, when it is tight"
    late, late_transport, _ = connect(shared=shared)
    late_transport.untaken_bytes = 300_000
    late.pause_writing()
    assert [transport.aborted for _, transport, _ in peers] == [False, False, True]
    assert not late_transport.aborted


def test_what_was_taken_meanwhile_is_not_held_against_anybody() -> None:
    shared = limits(horolog_fetch_memory_max_bytes=1_000_000)
    one, transport, _ = connect(shared=shared)
    transport.untaken_bytes = 1_900_000
    one.pause_writing()
    transport.untaken_bytes = 100_000
    other, other_transport, _ = connect(shared=shared)
    other_transport.untaken_bytes = 200_000
    other.pause_writing()
    assert shared.memory.answers.total_bytes == 300_000
    one.resume_writing()
    assert shared.memory.answers.total_bytes == 200_000


def test_answers_behind_one_that_waits_count_too() -> None:
    shared = limits()
    one, transport, dispatcher = connect(shared=shared)
    size_bytes = WRITE_HIGH_WATER_BYTES // 4
    one.data_received(frame(b"w0") + frame(b"a" * size_bytes) * 9)
    assert len(dispatcher.seen) < 8, "no more of them than the bound allows"
    assert not transport.reading
    assert shared.memory.answers.total_bytes > WRITE_HIGH_WATER_BYTES
    finish(dispatcher.waiting[0], b"w")
    assert len(dispatcher.seen) == 10
    assert shared.memory.answers.total_bytes == 0
    assert transport.reading


def test_a_peer_that_sends_much_at_once_is_served_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every look at the clock finds the turn over."""
    seconds = iter(range(1000))
    monkeypatch.setattr("horolog.broker.network.connection.monotonic", lambda: next(seconds))
    connection, transport, dispatcher = connect()

    async def run() -> list[int]:
        connection.data_received(b"".join(frame(b"%02d" % number) for number in range(10)))
        seen = [len(dispatcher.seen)]
        while len(dispatcher.seen) < 10:
            assert not transport.reading, "what else it sends has to wait"
            await asyncio.sleep(0)
            seen.append(len(dispatcher.seen))
        return seen

    assert asyncio.run(run()) == [4, 8, 10]
    assert transport.written == [b"%02d" % number for number in range(10)]
    assert transport.reading


def test_what_a_dead_peer_had_asked_for_is_not_done() -> None:
    connection, transport, dispatcher = connect()
    transport.untaken_bytes = WRITE_HIGH_WATER_BYTES + 1
    connection.pause_writing()
    connection.data_received(frame(b"a0"))
    transport.aborted = True
    connection.resume_writing()
    assert dispatcher.seen == []
