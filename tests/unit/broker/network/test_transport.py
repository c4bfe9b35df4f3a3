"""A conversation over a transport of asyncio: answered in order, not read from while the peer owes us, ended with a reason."""

import asyncio
import errno
import logging
import struct
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from horolog.broker.handlers.context import RequestContext
from horolog.broker.network.conversation import NOBODY, Conversation
from horolog.broker.network.limits import ConnectionLimits
from horolog.broker.network.memory import SHARES
from horolog.broker.network.send_turns import SendTurns
from horolog.broker.network.transport import SocketTransport
from horolog.broker.network.unanswered import WRITE_HIGH_WATER_BYTES
from horolog.protocol.frame_buffers import LARGEST_FRAME_BYTES, LARGEST_SCRATCH_BYTES, SCRATCH_BYTES, FrameBuffers
from tests.support.conversations import PRODUCE, Service, context_of, finish, framed, limits
from tests.support.memory_broker import still
from tests.support.waiting import until


class FakeTransport:
    """Collects written bytes; reading can be paused."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.reading = True
        self.closed = False
        self.aborted = False
        self.ended = False
        self.untaken_bytes = 0
        self.socket: Any = None
        self.receivers: list[Any] = []

    def get_extra_info(self, name: str) -> Any:
        return ("127.0.0.1", 4711) if name == "peername" else self.socket

    def write_eof(self) -> None:
        self.ended = True

    def writelines(self, parts: list[bytes]) -> None:
        assert not self.ended, "asyncio refuses to write behind the end"
        self.written += map(bytes, parts)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.receivers.append(protocol)

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


class FakeSocket:
    def fileno(self) -> int:
        return 3


class FakeListener:
    def __init__(self, refusal: str | None = None) -> None:
        self.refusal = refusal
        self.forgotten = 0
        self.frame_buffers = FrameBuffers()
        self.send_turns = SendTurns()

    def tune(self, connected: FakeSocket) -> None:
        """As it is."""

    def admit(self, connection: SocketTransport) -> str | None:
        return self.refusal

    def too_soon_s(self, connection: SocketTransport) -> float:
        return 0.0

    def forget(self, connection: SocketTransport) -> None:
        self.forgotten += 1


def connect(
    refusal: str | None = None,
    shared: ConnectionLimits | None = None,
    monotonic: Callable[[], float] = still,
    **chosen: int,
) -> tuple[SocketTransport, FakeTransport, Service]:
    dispatcher = Service()
    return *carry(dispatcher, shared or limits(**chosen), refusal, monotonic), dispatcher


def carry(
    dispatcher: Service,
    shared: ConnectionLimits,
    refusal: str | None = None,
    monotonic: Callable[[], float] = still,
    transport: FakeTransport | None = None,
) -> tuple[SocketTransport, FakeTransport]:
    transport = transport or FakeTransport()
    conversation = Conversation(dispatcher.serve, shared, monotonic, listener="PLAINTEXT")
    connection = SocketTransport(FakeListener(refusal), conversation)  # type: ignore[arg-type]
    connection.connection_made(transport)  # type: ignore[arg-type]
    return connection, transport


def test_answers_wait_for_those_before_them() -> None:
    connection, transport, dispatcher = connect()
    connection.data_received(framed(b"w1") + framed(b"a") + framed(b"w2") + framed(b"b"))
    assert transport.written == []
    finish(dispatcher.waiting[1], b"W2")
    assert transport.written == []
    finish(dispatcher.waiting[0], b"W1")
    assert transport.written == [b"W1", b"a", b"W2", b"b"]


def test_a_request_without_answer_holds_nothing_up() -> None:
    connection, transport, dispatcher = connect()
    connection.data_received(framed(b"w1") + framed(b"a"))
    dispatcher.waiting[0].set_no_response()
    connection.conversation.answered()
    assert transport.written == [b"a"]


def test_too_many_unanswered_requests_stop_the_reading() -> None:
    connection, transport, dispatcher = connect(queued_max_requests=2)
    connection.data_received(b"".join(framed(b"w%d" % n) for n in range(5)))
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
    connection.data_received(framed(b"a") + framed(b"b"))
    assert dispatcher.seen == []
    connection.resume_writing()
    assert transport.written == [b"a", b"b"]
    assert transport.reading


def test_bad_frames_close_the_connection_after_the_good_ones(caplog: pytest.LogCaptureFixture) -> None:
    connection, transport, _ = connect()
    with caplog.at_level(logging.INFO):
        connection.data_received(framed(b"a") + b"GET / HTTP/1.1\r\n\r\n")
    assert transport.written == [b"a"]
    assert transport.closed
    assert "HTTP" in caplog.text


def test_a_request_that_makes_no_sense_closes_the_connection() -> None:
    connection, transport, dispatcher = connect()
    connection.data_received(framed(b"a") + framed(b"x") + framed(b"b"))
    assert transport.written == [b"a"]
    assert transport.closed
    assert dispatcher.seen == [b"a", b"x"]


def test_who_waits_is_told_when_the_client_goes() -> None:
    connection, _, dispatcher = connect()
    connection.data_received(framed(b"w1"))
    abandoned: list[int] = []
    dispatcher.waiting[0].on_abandoned = lambda: abandoned.append(1)
    connection.connection_lost(None)
    assert abandoned == [1]
    finish(dispatcher.waiting[0], b"late")


def test_a_refused_connection_is_closed_at_once() -> None:
    _, transport, _ = connect("max.connections (1) is reached")
    assert transport.closed


# -- what all connections hold together


def produce(size_bytes: int) -> bytes:
    return framed(PRODUCE + b"p" * (size_bytes - 2))


class Keeper(Service):
    """Every request waits."""

    def serve(self, frame: memoryview, conversation: Any) -> RequestContext:
        self.seen.append(bytes(frame))
        self.waiting.append(context_of(frame, conversation))
        return self.waiting[-1]


def keep(shared: ConnectionLimits) -> tuple[SocketTransport, FakeTransport, Keeper]:
    dispatcher = Keeper()
    return *carry(dispatcher, shared), dispatcher


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
    one.data_received(framed(b"\0\x0b" + b"j" * 200) + framed(b"\0\x0b"))
    assert len(dispatcher.seen) == 2
    assert transport.reading


def test_whoever_goes_gives_back_what_it_held() -> None:
    shared = limits(queued_max_request_bytes=100)
    (one, _, _), (other, other_transport, others) = keep(shared), keep(shared)
    one.data_received(produce(100) + framed(b"begun")[:5])
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
    assert peers[0][0].conversation.room_for_answer_bytes == 1_000_000 // SHARES
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
    one.data_received(framed(b"w0") + framed(b"a" * size_bytes) * 9)
    assert len(dispatcher.seen) < 8, "no more of them than the bound allows"
    assert not transport.reading
    assert shared.memory.answers.total_bytes > WRITE_HIGH_WATER_BYTES
    finish(dispatcher.waiting[0], b"w")
    assert len(dispatcher.seen) == 10
    assert shared.memory.answers.total_bytes == 0
    assert transport.reading


def test_a_peer_that_sends_much_at_once_is_served_in_turns() -> None:
    """Every look at the clock finds the turn over."""
    seconds = iter(range(1000))
    connection, transport, dispatcher = connect(monotonic=lambda: next(seconds))

    async def run() -> list[int]:
        connection.data_received(b"".join(framed(b"%02d" % number) for number in range(10)))
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
    connection.data_received(framed(b"a0"))
    transport.aborted = True
    connection.resume_writing()
    assert dispatcher.seen == []


# -- the end


def test_a_peer_that_we_part_from_has_its_answers_and_what_it_still_sends_is_dropped() -> None:
    connection, transport, dispatcher = connect()
    connection.data_received(framed(b"a", b"w1"))
    connection.conversation.drain()
    assert not transport.reading
    connection.part()
    assert transport.ended
    assert transport.reading, "unread bytes reset a connection"
    assert not transport.closed
    connection.data_received(framed(b"b"))
    finish(dispatcher.waiting[0], b"W1")
    assert dispatcher.seen == [b"a", b"w1"]
    assert transport.written == [b"a"]
    connection.close()
    assert transport.closed


def test_a_peer_that_has_gone_is_not_parted_from() -> None:
    connection, transport, _ = connect()
    transport.aborted = True
    connection.part()
    assert not transport.ended


def test_a_peer_that_has_just_reset_its_connection_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop of asyncio says so in the call."""

    def not_connected(_: FakeTransport) -> None:
        raise OSError(errno.ENOTCONN, "Transport endpoint is not connected")

    monkeypatch.setattr(FakeTransport, "write_eof", not_connected)
    connection, transport, _ = connect()
    connection.part()
    assert transport.aborted


def test_a_slow_peer_has_some_time_for_what_it_is_owed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("horolog.broker.network.transport.CLOSE_GRACE_S", 0.0)

    async def run() -> None:
        connection, transport, _ = connect()
        transport.untaken_bytes = 100
        connection.pause_writing()
        connection.data_received(framed(b"x"))
        assert transport.closed
        assert not transport.aborted
        await asyncio.sleep(0.001)
        assert transport.aborted

    asyncio.run(run())


def test_who_is_cut_off_gets_nothing_more() -> None:
    connection, transport, dispatcher = connect()
    connection.data_received(framed(b"w1"))
    connection.conversation.cut("enough")
    assert transport.aborted
    finish(dispatcher.waiting[0], b"W1")
    connection.connection_lost(None)
    assert transport.written == []


def test_a_connection_that_is_lost_leaves_no_cycle() -> None:
    """What it held goes at once, without the garbage collector."""
    connection, _, _ = connect()
    conversation = connection.conversation
    assert conversation.carrier is connection
    lost: list[object] = []
    conversation.on_large_request = partial(int, connection)
    conversation.on_lost = partial(lost.append, connection)
    connection.connection_lost(None)
    assert lost == [connection]
    assert conversation.carrier is NOBODY
    assert conversation.on_large_request is None
    assert conversation.on_lost is None


async def test_who_is_muted_is_read_from_after_the_longest_of_several_times() -> None:
    connection, transport, dispatcher = connect()
    conversation = connection.conversation
    began = asyncio.get_running_loop().time()
    for seconds in (0.01, 0.05, 0.02):
        conversation.mute(seconds)
    connection.data_received(framed(b"a"))
    assert (transport.reading, dispatcher.seen) == (False, [])
    await until(lambda: transport.reading)
    assert asyncio.get_running_loop().time() - began >= 0.05
    assert transport.written == [b"a"]


async def test_nobody_is_unmuted_who_is_gone() -> None:
    connection, transport, _ = connect()
    connection.conversation.mute(0.01)
    connection.connection_lost(None)
    await asyncio.sleep(0.03)
    assert (transport.reading, connection.conversation.is_muted) == (False, True)


async def test_time_that_passes_at_once_shortens_the_wait_of_a_muted_peer() -> None:
    connection, transport, _ = connect()
    connection.hurry(1)
    assert transport.reading
    connection.conversation.mute(3600)
    connection.hurry(0)
    connection.hurry(3000)
    await asyncio.sleep(0.01)
    assert not transport.reading
    connection.hurry(600)
    await asyncio.sleep(0.01)
    assert transport.reading
    assert not connection.conversation.is_muted


# -- large requests


def test_a_large_request_is_received_in_place_from_its_second_part_on() -> None:
    service, wire = Service(), FakeTransport()
    wire.socket = FakeSocket()
    connection, _ = carry(service, limits(), transport=wire)
    data = framed(b"l" * 100_000, b"m" * 100_000, b"s")
    connection.data_received(data[:20_000])
    (receiver,) = wire.receivers
    at = 20_000
    while at < len(data):
        room = receiver.get_buffer(-1)
        piece = data[at : at + len(room)]
        room[: len(piece)] = piece
        receiver.buffer_updated(len(piece))
        at += len(piece)
    assert service.seen == wire.written == [b"l" * 100_000, b"m" * 100_000, b"s"]
    assert wire.receivers == [receiver], "one for as long as the connection lasts"


def test_inside_a_request_without_a_buffer_of_its_own_more_is_read_at_once() -> None:
    service, wire = Service(), FakeTransport()
    wire.socket = FakeSocket()
    connection, _ = carry(service, limits(), transport=wire)
    vast = bytes(LARGEST_FRAME_BYTES + 1)
    data = framed(b"l" * 100_000, vast, b"s", b"m" * 100_000)
    connection.data_received(data[:20_000])
    (receiver,) = wire.receivers
    at, sizes = 20_000, []
    while at < len(data):
        room = receiver.get_buffer(-1)
        piece = data[at : at + len(room)]
        room[: len(piece)] = piece
        receiver.buffer_updated(len(piece))
        at += len(piece)
        sizes.append(len(room))
    assert service.seen == [b"l" * 100_000, vast, b"s", b"m" * 100_000]
    assert sizes[1:4] == [SCRATCH_BYTES, LARGEST_SCRATCH_BYTES, LARGEST_SCRATCH_BYTES]
    assert sizes.count(LARGEST_SCRATCH_BYTES) == 4
    assert len(receiver.get_buffer(-1)) == SCRATCH_BYTES


def test_what_receives_large_requests_passes_on_everything_else() -> None:
    service, wire = Service(), FakeTransport()
    wire.socket = FakeSocket()
    listener = FakeListener()
    conversation = Conversation(service.serve, limits(), still, listener="PLAINTEXT")
    connection = SocketTransport(listener, conversation)  # type: ignore[arg-type]
    connection.connection_made(wire)  # type: ignore[arg-type]
    connection.data_received(framed(b"l" * 100_000)[:1000])
    (receiver,) = wire.receivers
    wire.untaken_bytes = WRITE_HIGH_WATER_BYTES + 1
    receiver.pause_writing()
    assert not wire.reading
    receiver.resume_writing()
    assert wire.reading
    receiver.connection_lost(None)
    assert listener.forgotten == 1


def test_once_it_is_closed_a_large_request_is_read_and_dropped() -> None:
    service, wire = Service(), FakeTransport()
    wire.socket = FakeSocket()
    connection, _ = carry(service, limits(), transport=wire)
    connection.data_received(framed(b"l" * 100_000)[:1000])
    (receiver,) = wire.receivers
    connection.conversation.close()
    assert receiver.get_buffer(-1).obj is connection._listener.frame_buffers.scratch.obj
    receiver.buffer_updated(100)
    assert service.seen == []


def test_over_tls_a_large_request_comes_as_any_other() -> None:
    connection, wire, service = connect()
    data = framed(b"l" * 100_000)
    for at in range(0, len(data), 16_384):
        connection.data_received(data[at : at + 16_384])
    assert wire.receivers == []
    assert service.seen == [b"l" * 100_000]
