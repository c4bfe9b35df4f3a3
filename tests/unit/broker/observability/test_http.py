"""The HTTP server answers what it should, bounds what a peer may do, and says when the broker is not ready."""

import asyncio
import contextlib
import json
from contextlib import asynccontextmanager

import pytest

from horolog.broker.log.partition import SERVING
from horolog.broker.new_topics import NewTopic
from horolog.broker.observability import http
from horolog.broker.observability.watched import Phase
from tests.support.at_once import at_once
from tests.support.memory_broker import MemoryBroker


@asynccontextmanager
async def running(**settings):
    async with MemoryBroker(horolog_http_listen="127.0.0.1:0", **settings) as machine:
        yield machine.broker


async def exchange(broker, request):
    reader, writer = await asyncio.open_connection("127.0.0.1", broker.metrics_server.port)
    try:
        writer.write(request)
        async with asyncio.timeout(10):
            answer = await reader.read()
    finally:
        writer.close()
        await writer.wait_closed()
    head, _, body = answer.partition(b"\r\n\r\n")
    status = int(head.split()[1]) if head else 0
    return status, head.decode(), body.decode()


async def eventually(holds):
    for _ in range(500):
        if holds():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("not within five seconds")


async def get(broker, path):
    return await exchange(broker, f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())


async def test_health_ready_and_index():
    async with running() as broker:
        status, head, body = await get(broker, "/health")
        assert status == 200
        assert "application/json" in head
        assert json.loads(body)["alive"] is True
        status, _, body = await get(broker, "/ready?verbose=1")
        assert status == 200
        assert json.loads(body) == {"ready": True, "phase": "ready", "reasons": [], "warnings": []}
        status, _, body = await get(broker, "/")
        assert status == 200
        assert {"/metrics", "/health", "/ready"} <= set(body.split())


async def test_not_ready_says_why():
    async with running() as broker:
        broker.phase = Phase.STOPPING
        status, _, body = await get(broker, "/ready")
        assert status == 503
        assert json.loads(body)["reasons"] == ["the broker is stopping"]
        assert (await get(broker, "/health"))[0] == 200


async def test_an_offline_internal_partition_keeps_clients_away_and_another_warns():
    async with running() as broker:
        at_once(broker.cluster.create_topics, [NewTopic("t", 1, 1, {})])
        broker.cluster.topics["t"].find(0).condition.go_offline("no disk")
        status, _, body = await get(broker, "/ready")
        assert status == 200
        assert json.loads(body)["warnings"] == ["t-0 is offline: no disk"]
        topic = broker.cluster.topics["t"]
        topic.internal = True
        status, _, body = await get(broker, "/ready")
        assert status == 503
        assert json.loads(body)["reasons"] == ["t-0 is offline: no disk"]
        topic.find(0).condition.state = SERVING


async def test_a_stopped_partition_is_told_too():
    async with running() as broker:
        at_once(broker.cluster.create_topics, [NewTopic("t", 1, 1, {})])
        partition = broker.cluster.topics["t"].find(0)
        partition.condition.stop("a sync has failed")
        status, _, body = await get(broker, "/ready")
        partition.condition.state = SERVING
        assert status == 200
        assert json.loads(body)["warnings"] == ["t-0 takes no appends: a sync has failed"]


async def test_head_has_no_body():
    async with running() as broker:
        status, head, body = await exchange(broker, b"HEAD /health HTTP/1.0\r\n\r\n")
        assert (status, body) == (200, "")
        assert "application/json" in head


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"POST /metrics HTTP/1.1\r\n\r\n", 405),
        (b"GET /nothing HTTP/1.1\r\n\r\n", 404),
        (b"GET /../etc/passwd HTTP/1.1\r\n\r\n", 404),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
        (b"hello\n\n", 400),
        (b"GET http://x/metrics HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nX: " + b"x" * http.MAX_HEAD_BYTES + b"\r\n", 431),
    ],
)
async def test_what_is_no_request_of_ours(request_bytes, status):
    async with running() as broker:
        assert (await exchange(broker, request_bytes))[0] == status


async def test_a_slow_peer_is_dropped(monkeypatch):
    monkeypatch.setattr(http, "HEAD_TIMEOUT_S", 0.05)
    async with running() as broker:
        assert (await exchange(broker, b"GET /metr"))[0] == 0
        assert not broker.metrics_server.connections


@pytest.mark.parametrize(("bound", "most"), [("MAX_CONNECTIONS", 3), ("MAX_PER_ADDRESS", 3)])
async def test_the_newest_connection_is_taken_in_for_the_oldest_without_a_request(bound, most, monkeypatch):
    monkeypatch.setattr(http, bound, most)
    async with running() as broker:
        held = [await asyncio.open_connection("127.0.0.1", broker.metrics_server.port) for _ in range(most)]
        await eventually(lambda: len(broker.metrics_server.connections) == most)
        for _ in range(2 * most):
            assert (await get(broker, "/health"))[0] == 200
            assert len(broker.metrics_server.connections) <= most
        with contextlib.suppress(ConnectionError):
            assert await held[0][0].read() == b""
        assert not held[-1][0].at_eof(), "the newest of them is still waited for"
        for _, writer in held:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()


async def test_peers_that_never_read_their_answer_make_room_as_well(monkeypatch):
    monkeypatch.setattr(http, "MAX_PER_ADDRESS", 2)
    async with running() as broker:
        broker.metrics_server.answer = lambda path: http.Answer(
            http.HTTPStatus.OK, http.TEXT_TYPE, [b"x" * 1_000_000] * (1 if path == "/health" else 100)
        )
        held = [await asyncio.open_connection("127.0.0.1", broker.metrics_server.port) for _ in range(2)]
        for _, writer in held:
            writer.write(b"GET /endless HTTP/1.1\r\n\r\n")
        await eventually(lambda: all(one.is_answered for one in broker.metrics_server.connections))
        assert (await get(broker, "/health"))[0] == 200
        for _, writer in held:
            writer.transport.abort()


async def test_without_an_address_there_is_no_server():
    async with MemoryBroker() as machine:
        assert machine.broker.metrics_server is None


async def test_a_long_answer_is_written_in_pieces(monkeypatch):
    monkeypatch.setattr("horolog.broker.observability.exposition.SAMPLES_PER_PIECE", 10)
    async with running() as broker:
        at_once(broker.cluster.create_topics, [NewTopic("t", 50, 1, {})])
        status, _, body = await get(broker, "/metrics")
        assert status == 200
        assert 'horolog_partition_end_offset{topic="t",partition="49"} 0' in body
        assert body.endswith("\n")


class Wire:
    """A transport that keeps written bytes, and may be full."""

    def __init__(self):
        self.data = b""
        self.ended = None

    def write(self, data):
        self.data += data

    def close(self):
        self.ended = "closed"

    def abort(self):
        self.ended = "aborted"

    def get_extra_info(self, name):
        return {"peername": ("127.0.0.1", 5)}[name]


class TestOneConnection:
    @pytest.fixture
    async def server(self):
        async with running() as broker:
            yield broker.metrics_server

    @pytest.fixture
    def wire(self):
        return Wire()

    @pytest.fixture
    async def connection(self, server, wire):
        connection = http.HttpConnection(server, asyncio.get_running_loop())
        connection.connection_made(wire)
        yield connection
        connection.connection_lost(None)

    async def test_the_request_may_come_in_pieces_and_nothing_behind_it_is_read(self, connection, wire):
        for piece in (b"GET /hea", b"lth HTTP/1.1\r\n", b"\r\n"):
            assert wire.data == b""
            connection.data_received(piece)
        connection.data_received(b"GET / HTTP/1.1\r\n\r\n")
        await eventually(lambda: wire.ended)
        assert (wire.data.count(b"HTTP/1.1 200"), wire.ended) == (1, "closed")

    async def test_a_peer_that_does_not_read_is_not_written_to(self, connection, wire):
        connection.pause_writing()
        connection.data_received(b"GET /metrics HTTP/1.1\r\n\r\n")
        await asyncio.sleep(0)
        head = wire.data
        assert head.endswith(b"\r\n\r\n")
        connection.resume_writing()
        await eventually(lambda: wire.ended)
        assert len(wire.data) > len(head)

    async def test_an_answer_that_breaks_off_ends_the_connection(self, connection, server, wire, monkeypatch, caplog):
        def broken():
            yield b"half"
            raise RuntimeError("no figures")

        monkeypatch.setattr(server, "answer", lambda path: http.Answer(http.HTTPStatus.OK, "text/plain", broken()))
        connection.data_received(b"GET / HTTP/1.1\r\n\r\n")
        await eventually(lambda: wire.ended)
        assert wire.ended == "aborted"
        assert "broke off" in caplog.text

    async def test_a_peer_that_is_gone_is_not_answered(self, connection, server, wire):
        connection.connection_lost(None)
        connection.data_received(b"GET /health HTTP/1.1\r\n\r\n")
        connection.close()
        assert (wire.data, wire.ended) == (b"", None)
        assert connection not in server.connections

    async def test_a_server_shows_how_many_watch(self, connection, server):
        assert repr(server) == f"<MetricsServer on port {server.port}, 1 connections>"


async def test_a_server_that_never_began_is_stopped_without_harm():
    async with MemoryBroker() as machine:
        http.MetricsServer(machine.broker, asyncio.get_running_loop()).stop()
