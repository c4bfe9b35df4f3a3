"""The HTTP server bounds what a peer may do, and answers now or later."""

import asyncio
import contextlib
import ssl
from contextlib import asynccontextmanager

import pytest
from trustme import KeyType

from horolog.broker.observability import http_server
from tests.support.certificates import Certificates
from tests.support.http_asking import exchange, get
from tests.support.memory_broker import MemoryBroker
from tests.support.waiting import until


@asynccontextmanager
async def running(**settings):
    async with MemoryBroker(horolog_http_listen="127.0.0.1:0", **settings) as machine:
        yield machine.broker


async def test_head_has_no_body():
    async with running() as broker:
        status, head, body = await exchange(broker.metrics_server.port, b"HEAD /health HTTP/1.0\r\n\r\n")
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
        (b"GET / HTTP/1.1\r\nX: " + b"x" * http_server.MAX_HEAD_BYTES + b"\r\n", 431),
    ],
)
async def test_what_is_no_request_of_ours(request_bytes, status):
    async with running() as broker:
        assert (await exchange(broker.metrics_server.port, request_bytes))[0] == status


async def test_a_slow_peer_is_dropped(monkeypatch):
    monkeypatch.setattr(http_server, "HEAD_TIMEOUT_S", 0.05)
    async with running() as broker:
        assert (await exchange(broker.metrics_server.port, b"GET /metr"))[0] == 0
        assert not broker.metrics_server.connections


@pytest.mark.parametrize(("bound", "most"), [("MAX_CONNECTIONS", 3), ("MAX_PER_ADDRESS", 3)])
async def test_the_newest_connection_is_taken_in_for_the_oldest_without_a_request(bound, most, monkeypatch):
    monkeypatch.setattr(http_server, bound, most)
    async with running() as broker:
        held = [await asyncio.open_connection("127.0.0.1", broker.metrics_server.port) for _ in range(most)]
        await until(lambda: len(broker.metrics_server.connections) == most)
        for _ in range(2 * most):
            assert (await get(broker.metrics_server.port, "/health"))[0] == 200
            assert len(broker.metrics_server.connections) <= most
        with contextlib.suppress(ConnectionError):
            assert await held[0][0].read() == b""
        assert not held[-1][0].at_eof(), "the newest of them is still waited for"
        for _, writer in held:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()


async def test_peers_that_never_read_their_answer_make_room_as_well(monkeypatch):
    monkeypatch.setattr(http_server, "MAX_PER_ADDRESS", 2)
    async with running() as broker:
        broker.metrics_server.answer = lambda path: http_server.HttpResponse(
            http_server.HTTPStatus.OK, http_server.TEXT_TYPE, [b"x" * 1_000_000] * (1 if path == "/health" else 100)
        )
        held = [await asyncio.open_connection("127.0.0.1", broker.metrics_server.port) for _ in range(2)]
        for _, writer in held:
            writer.write(b"GET /endless HTTP/1.1\r\n\r\n")
        await until(lambda: all(one.is_answered for one in broker.metrics_server.connections))
        assert (await get(broker.metrics_server.port, "/health"))[0] == 200
        for _, writer in held:
            writer.transport.abort()


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
        connection = http_server.HttpConnection(server, asyncio.get_running_loop())
        connection.connection_made(wire)
        yield connection
        connection.connection_lost(None)

    async def test_the_request_may_come_in_pieces_and_nothing_behind_it_is_read(self, connection, wire):
        for piece in (b"GET /hea", b"lth HTTP/1.1\r\n", b"\r\n"):
            assert wire.data == b""
            connection.data_received(piece)
        connection.data_received(b"GET / HTTP/1.1\r\n\r\n")
        await until(lambda: wire.ended)
        assert (wire.data.count(b"HTTP/1.1 200"), wire.ended) == (1, "closed")

    async def test_a_peer_that_does_not_read_is_not_written_to(self, connection, wire):
        connection.pause_writing()
        connection.data_received(b"GET /metrics HTTP/1.1\r\n\r\n")
        await asyncio.sleep(0)
        head = wire.data
        assert head.endswith(b"\r\n\r\n")
        connection.resume_writing()
        await until(lambda: wire.ended)
        assert len(wire.data) > len(head)

    async def test_an_answer_that_breaks_off_ends_the_connection(self, connection, server, wire, monkeypatch, caplog):
        def broken():
            yield b"half"
            raise RuntimeError("no figures")

        monkeypatch.setattr(
            server, "answer", lambda path: http_server.HttpResponse(http_server.HTTPStatus.OK, "text/plain", broken())
        )
        connection.data_received(b"GET / HTTP/1.1\r\n\r\n")
        await until(lambda: wire.ended)
        assert wire.ended == "aborted"
        assert "was interrupted" in caplog.text

    async def test_a_peer_that_is_gone_is_not_answered(self, connection, server, wire):
        connection.connection_lost(None)
        connection.data_received(b"GET /health HTTP/1.1\r\n\r\n")
        connection.close()
        assert (wire.data, wire.ended) == (b"", None)
        assert connection not in server.connections

    async def test_a_server_shows_how_many_watch(self, connection, server):
        assert repr(server) == f"<MetricsServer on port {server.port}, 1 connections>"


class Later(http_server.HttpServer):
    """Answers when it is told to."""

    def __init__(self, loop):
        super().__init__(loop)
        self.asked = []

    def respond(self, path, query, done):
        self.asked.append((path, query, done))


async def test_an_answer_may_come_later():
    server = Later(asyncio.get_running_loop())
    await server.start("127.0.0.1", 0)
    asking = asyncio.create_task(get(server.port, "/slow?x"))
    await until(lambda: server.asked)
    ((path, query, done),) = server.asked
    assert (path, query, asking.done()) == ("/slow", "x", False)
    done(http_server.json_answer(http_server.HTTPStatus.OK, [1]))
    assert (await asking)[::2] == (200, "[1]\n")
    server.stop()


async def test_an_answer_that_does_not_come_in_time_ends_the_connection(monkeypatch):
    monkeypatch.setattr(http_server, "ANSWER_TIMEOUT_S", 0.05)
    server = Later(asyncio.get_running_loop())
    await server.start("127.0.0.1", 0)
    with contextlib.suppress(ConnectionError):
        assert (await get(server.port, "/never"))[0] == 0
    await until(lambda: not server.connections)
    ((_, _, done),) = server.asked
    done(http_server.failure(http_server.HTTPStatus.NOT_FOUND))
    server.stop()


async def test_a_server_that_never_began_is_stopped_without_harm():
    Later(asyncio.get_running_loop()).stop()


@pytest.mark.parametrize("path", ["/", "/health", "/ready", "/metrics", "/nothing"])
async def test_without_the_token_every_path_says_the_same(path):
    async with running(horolog_http_token="secret") as broker:
        port = broker.metrics_server.port
        for told in ("", "Authorization: Bearer wrong\r\n", "Authorization: Basic secret\r\n", "X: Bearer secret\r\n"):
            status, head, body = await exchange(port, f"GET {path} HTTP/1.1\r\n{told}\r\n".encode())
            assert (status, body) == (401, "401 Unauthorized\n")
            assert "WWW-Authenticate: Bearer" in head
        assert (await exchange(port, f"POST {path} HTTP/1.1\r\n\r\n".encode()))[0] == 401
        status, _, _ = await exchange(port, f"GET {path} HTTP/1.1\r\nauthorization:  bearer  secret \r\n\r\n".encode())
        assert status == (404 if path == "/nothing" else 200)


@pytest.mark.parametrize("end", ["\r\n\r\n", "\n\n", "\r\n\n", "\n\r\n"])
async def test_a_token_behind_the_end_of_the_head_does_not_count(end):
    """What comes there may be the words of somebody else, whom a proxy has put behind."""
    async with running(horolog_http_token="secret") as broker:
        behind = f"GET /metrics HTTP/1.1\r\nHost: x{end}Authorization: Bearer secret\r\n\r\n"
        assert (await exchange(broker.metrics_server.port, behind.encode()))[0] == 401
        inside = f"GET /health HTTP/1.1\r\nAuthorization: Bearer secret{end}Authorization: Bearer wrong\r\n\r\n"
        assert (await exchange(broker.metrics_server.port, inside.encode()))[0] == 200


@pytest.mark.parametrize(
    ("named", "theirs", "comes_in"),
    [
        ("", "AES256-GCM-SHA384:AES128-GCM-SHA256:AES256-SHA256:AES128-SHA", False),
        ("", "ECDHE-RSA-AES128-GCM-SHA256", True),
        ("TLS_RSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "AES128-GCM-SHA256", True),
    ],
)
async def test_tls_1_2_has_forward_secrecy_unless_suites_are_named(tmp_path, named, theirs, comes_in):
    """Whatever speaks TLS takes the same context; this port can be asked without a client of Kafka's."""
    certificates = Certificates(tmp_path, KeyType.RSA)
    given = certificates.settings(listeners="PLAINTEXT://127.0.0.1:0", horolog_http_protocol="HTTPS")
    given |= {"ssl.cipher.suites": named} if named else {}
    client = certificates.client(newest=ssl.TLSVersion.TLSv1_2)
    client.set_ciphers(theirs)
    async with running(**{key.replace(".", "_"): value for key, value in given.items()}) as broker:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", broker.metrics_server.port, ssl=client)
        except (ssl.SSLError, ConnectionError):
            assert not comes_in
        else:
            writer.close()
            assert comes_in


async def test_https(tmp_path):
    certificates = Certificates(tmp_path)
    settings = certificates.settings(listeners="PLAINTEXT://127.0.0.1:0", horolog_http_protocol="HTTPS")
    async with running(**{key.replace(".", "_"): value for key, value in settings.items()}) as broker:
        port = broker.metrics_server.port
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=certificates.client(), server_hostname="localhost"
        )
        writer.write(b"GET /metrics HTTP/1.1\r\n\r\n")
        answer = await reader.read()
        assert b'horolog_certificate_expires_seconds{listener="HTTP"}' in answer
        assert b'horolog_tls_handshakes_total{listener="HTTP",result="done"} 1' in answer
        writer.close()
        assert (await exchange(port, b"GET / HTTP/1.1\r\n\r\n"))[0] == 0


async def test_all_interfaces_have_one_port():
    server = Later(asyncio.get_running_loop())
    await server.start("", 0)
    assert {one.getsockname()[1] for one in server._server.sockets} == {server.port}
    server.stop()


async def test_a_port_that_another_program_has_is_named():
    server, other = Later(asyncio.get_running_loop()), Later(asyncio.get_running_loop())
    await server.start("127.0.0.1", 0)
    text = rf"cannot listen on 127\.0\.0\.1:{server.port}: address already in use; the setting horolog\.http\.listen"
    with pytest.raises(OSError, match=text):
        await other.start("127.0.0.1", server.port)
    server.stop()
