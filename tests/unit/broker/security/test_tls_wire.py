"""TLS between real sockets and a protocol: which bytes go through, who is refused, and how much a peer may ask before it is known."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator

import pytest

from horolog.broker.base.principal import ANONYMOUS
from horolog.broker.config.listeners import Address
from horolog.broker.config.settings import Layers, from_layers
from horolog.broker.security.listener_protection import of
from horolog.broker.security.tls import HandshakeBounds, ListenerTls
from horolog.broker.security.tls_wire import CHUNK_BYTES, TlsDoor, TlsWire
from tests.support.audited import Kept, trail
from tests.support.waiting import until

SOON_S = 60.0


@pytest.fixture(autouse=True)
def every_line(caplog):
    caplog.set_level("INFO")


class Echo(asyncio.Protocol):
    """Sends back what it gets, and tells what it was told."""

    def __init__(self, place):
        self.place = place
        self.transport = None
        self.told = []

    def connection_made(self, transport):
        self.transport = transport
        self.told.append("made")
        self.place.echoes.append(self)
        if self.place.refuses:
            transport.close()

    def data_received(self, data):
        self.told.append(len(data))
        self.transport.writelines([data])

    def pause_writing(self):
        self.told.append("pause")

    def resume_writing(self):
        self.told.append("resume")

    def connection_lost(self, error):
        self.told.append("lost")


class Place:
    """A door that is open, and who came in."""

    def __init__(self, certificates, bounds, settings):
        tls = of(from_layers(Layers(static=certificates.settings(**settings))), Address("SSL", "SSL", "", 0)).tls
        self.tls = ListenerTls("SSL", tls, bounds)
        self.door = TlsDoor(self.tls)
        self.echoes = []
        self.principals = []
        self.tuned = []
        self.refuses = False
        self.port = 0
        self.certificates = certificates
        self.writers = []

    def wire(self):
        return self.door.wire(Echo(self), self.principals.append, self.tuned.append)

    async def connect(self, context=None, **more):
        context = context or self.certificates.client()
        return await self._opened(ssl=context, server_hostname="localhost", **more)

    async def plain(self):
        return await self._opened()

    async def _opened(self, **more):
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, **more)
        self.writers.append(writer)
        return reader, writer


@contextlib.asynccontextmanager
async def opened(certificates, *, max_ms=5000, max_bytes=100_000, max_count=10, **settings) -> AsyncIterator[Place]:
    place = Place(certificates, HandshakeBounds(max_ms, max_bytes, max_count), settings)
    server = await asyncio.get_running_loop().create_server(place.wire, "127.0.0.1", 0)
    place.port = server.sockets[0].getsockname()[1]
    try:
        yield place
    finally:
        server.close()
        for writer in place.writers:
            writer.close()
        for echo in place.echoes:
            echo.transport.abort()
        await asyncio.sleep(0.02)


async def ended(reader):
    """What came before the end."""
    async with asyncio.timeout(SOON_S):
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            return await reader.read()
        return b""


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("size", [1, 20_000, 3 * CHUNK_BYTES + 5])
async def test_what_is_sent_comes_back(certificates, version, size):
    async with opened(certificates) as place:
        reader, writer = await place.connect(certificates.client(newest=version))
        data = bytes(range(256)) * (size // 256 + 1)
        writer.write(data[:size])
        assert await reader.readexactly(size) == data[:size]
        assert place.principals == [ANONYMOUS]
        assert (place.tls.handshakes, place.tls.failures) == (1, 0)
        (tuned,) = place.tuned
        assert tuned.fileno() >= 0
        echo = place.echoes[0]
        assert echo.transport.get_extra_info("socket") is None
        assert echo.transport.get_extra_info("peername")[0] == "127.0.0.1"
        assert repr(place.door).endswith("0 half open>")
        assert "secure" in repr(echo.transport)
        writer.close()
        await until(lambda: "lost" in echo.told)
        assert echo.transport.get_extra_info("peername", "gone") == "gone"
        echo.transport.write(b"nobody hears it")
        echo.transport.set_write_buffer_limits(1)
        assert echo.transport.get_write_buffer_size() == 0
        assert echo.transport.is_closing()


async def test_large_answers_in_parts_are_one_stream(certificates):
    async with opened(certificates) as place:
        reader, writer = await place.connect()
        writer.write(b"a")
        await reader.readexactly(1)
        parts = [b"head", bytes(CHUNK_BYTES + 1), memoryview(b"tail")]
        place.echoes[0].transport.writelines(parts)
        assert await reader.readexactly(sum(map(len, parts))) == b"".join(parts)
        writer.close()


async def test_a_slow_peer_is_told_of_and_reading_can_pause(certificates):
    async with opened(certificates) as place:
        reader, writer = await place.connect(limit=2**16)
        writer.write(b"a")
        await reader.readexactly(1)
        echo = place.echoes[0]
        echo.transport.set_write_buffer_limits(high=65_536)
        echo.transport.writelines([bytes(30 * 2**20)])
        assert echo.transport.get_write_buffer_size() > 0
        assert "pause" in echo.told
        await reader.readexactly(30 * 2**20)
        await until(lambda: "resume" in echo.told)
        echo.transport.pause_reading()
        writer.write(b"b")
        await asyncio.sleep(0.05)
        assert echo.told[-1] != 1
        echo.transport.resume_reading()
        assert await reader.readexactly(1) == b"b"
        writer.close()


async def test_who_ends_says_so(certificates):
    async with opened(certificates) as place:
        reader, writer = await place.connect()
        writer.write(b"a")
        await reader.readexactly(1)
        place.echoes[0].transport.close()
        assert await reader.read() == b""
        writer.close()


async def test_after_the_last_word_nothing_is_heard(certificates):
    async with opened(certificates) as place:
        reader, writer = await place.connect()
        writer.write(b"a")
        await reader.readexactly(1)
        echo = place.echoes[0]
        echo.transport.write_eof()
        writer.write(b"dropped")
        assert await ended(reader) == b""
        writer.close()
        await until(lambda: "lost" in echo.told)
        assert 7 not in echo.told
        echo.transport.write_eof()
        echo.transport.close()
        echo.transport.pause_reading()
        echo.transport.resume_reading()
        echo.transport.abort()


async def test_what_is_no_tls_is_closed_with_one_line(certificates, caplog):
    async with opened(certificates) as place:
        reader, writer = await place.plain()
        writer.write(b"\0\0\0\x0f\0\x12\0\x03")
        assert await ended(reader) == b""
        (line,) = caplog.records
        said = "it does not use TLS; set security.protocol=SSL or SASL_SSL in the client"
        assert line.getMessage() == f"closing the connection of 127.0.0.1 on SSL: {said}"
        assert place.principals == []
        assert (place.tls.handshakes, place.tls.failures) == (0, 1)
        writer.close()


async def test_a_hello_that_never_ends_is_cut_off_in_time(certificates, caplog):
    async with opened(certificates, max_ms=100) as place:
        silent, _ = await place.plain()
        begun, writer = await place.plain()
        writer.write(b"\x16\x03\x01\x02\x00\x01")
        assert await ended(silent) == await ended(begun) == b""
        assert caplog.text.count("horolog.ssl.handshake.max.ms (100)") == 2
        await until(lambda: not place.door.half_open)
        assert [echo.told for echo in place.echoes] == [["made", "lost"]] * 2


async def test_a_handshake_has_only_so_many_bytes(certificates, caplog):
    async with opened(certificates, max_bytes=20_000) as place:
        reader, writer = await place.plain()
        hello_of_64k = b"\x01\x00\xff\xff" + bytes(65_535)
        for start in range(0, len(hello_of_64k), 16_000):
            fragment = hello_of_64k[start : start + 16_000]
            writer.write(b"\x16\x03\x01" + len(fragment).to_bytes(2, "big") + fragment)
        await ended(reader)
        await until(lambda: place.tls.failures)
        assert "closing the connection of 127.0.0.1 on SSL: its handshake" in caplog.text
        writer.close()


async def test_a_broken_handshake_is_told_of(certificates, caplog):
    async with opened(certificates) as place:
        reader, writer = await place.plain()
        writer.write(b"\x16\x03\x01\x00\x05hello")
        assert (await ended(reader))[:1] == b"\x15"  # an alert
        assert "its handshake failed: " in caplog.text
        writer.close()


async def test_of_too_many_half_open_the_oldest_goes(certificates, caplog):
    async with opened(certificates, max_count=3) as place:
        many = [await place.plain() for _ in range(5)]
        await until(lambda: len(place.echoes) == 5)
        assert len(place.door.half_open) == 3
        assert await ended(many[0][0]) == await ended(many[1][0]) == b""
        assert caplog.text.count("the oldest of 3") == 2
        reader, writer = await place.connect()
        writer.write(b"a")
        assert await reader.readexactly(1) == b"a"
        for _, each in many:
            each.close()
        writer.close()


async def test_who_may_not_stay_costs_no_handshake(certificates):
    async with opened(certificates) as place:
        place.refuses = True
        with pytest.raises((ConnectionError, ssl.SSLError)):
            await place.connect()
        assert place.door.half_open == {}
        assert (place.tls.handshakes, place.tls.failures) == (0, 0)


async def test_who_shows_a_wrong_certificate_or_none(certificates, caplog):
    async with opened(certificates, ssl_client_auth="required") as place:
        for shown in (certificates.mallory, None):
            with contextlib.suppress(ConnectionError, ssl.SSLError):
                reader, writer = await place.connect(certificates.client(shown))
                await ended(reader)
                writer.close()
        await until(lambda: place.tls.failures == 2)
        assert "its certificate is refused: unable to get local issuer certificate" in caplog.text
        assert "peer did not return a certificate" in caplog.text
        reader, writer = await place.connect(certificates.client(certificates.alice))
        writer.write(b"a")
        assert await reader.readexactly(1) == b"a"
        (principal,) = place.principals
        assert principal.name.startswith("CN=alice")
        writer.close()


async def test_a_name_that_no_rule_fits_comes_not_in(certificates, caplog):
    async with opened(
        certificates, ssl_client_auth="required", ssl_principal_mapping_rules="RULE:^CN=bob$/bob/"
    ) as place:
        reader, writer = await place.connect(certificates.client(certificates.alice))
        assert await ended(reader) == b""
        assert "no rule of ssl.principal.mapping.rules fits" in caplog.text
        writer.close()


async def test_bytes_that_cannot_be_decrypted_end_it(certificates, caplog):
    async with opened(certificates) as place:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = certificates.client().wrap_bio(incoming, outgoing, server_hostname="localhost")
        reader, writer = await place.plain()
        while True:
            try:
                client.do_handshake()
                break
            except ssl.SSLWantReadError:
                writer.write(outgoing.read())
                incoming.write(await reader.read(65_536))
        writer.write(outgoing.read() + b"\x17\x03\x03\x00\x20" + bytes(32))
        await ended(reader)
        assert "cannot be decrypted: decryption failed or bad record mac" in caplog.text
        writer.close()


async def test_nobody_negotiates_anew(certificates):
    async with opened(certificates) as place:
        assert place.tls.context.options & ssl.OP_NO_RENEGOTIATION


async def test_a_new_certificate_is_for_those_who_come_after_it(certificates):
    async with opened(certificates) as place:
        old_reader, old = await place.connect()
        certificates.renew()
        place.tls.look()
        new_reader, new = await place.connect()
        shown = [each.get_extra_info("ssl_object").getpeercert(binary_form=True) for each in (old, new)]
        assert shown[0] != shown[1]
        for reader, writer in ((old_reader, old), (new_reader, new)):
            writer.write(b"a")
            assert await reader.readexactly(1) == b"a"
            writer.close()


async def test_a_port_without_anybody_who_asks_who_it_is(certificates):
    tls = Place(certificates, HandshakeBounds(1000, 10_000, 5), {})
    wire = tls.door.wire(Echo(tls))
    assert isinstance(wire, TlsWire)
    assert "half open" in repr(wire)
    assert wire.is_closing()
    wire.abort()
    wire.fail("nobody is there")


async def test_the_audit_is_told_of_certificates_and_of_handshakes_that_fail(certificates):
    kept = Kept()
    async with opened(certificates, ssl_client_auth="requested") as place:
        place.door.tell = trail(kept).of_tls("SSL")
        await place.connect(certificates.client(certificates.alice))
        await until(lambda: place.principals)
        await place.connect(certificates.client())
        await until(lambda: len(place.principals) == 2)
        alice, nobody = place.principals
        assert nobody is ANONYMOUS
        fields = ("principal", "address", "listener", "mechanism", "outcome")
        assert kept.told(*fields) == [(str(alice), "127.0.0.1", "SSL", "TLS", "NONE")]
        reader, writer = await place.plain()
        writer.write(b"no TLS at all")
        await ended(reader)
        (event,) = kept.events()
        assert event["outcome"] == "SSL_AUTHENTICATION_FAILED"
        assert "it does not use TLS" in event["detail"]
        place.door.wire(Echo(place)).fail("there is no connection any more")
        assert kept.events() == []
