"""Peers that try to get in by SASL in every bad way, against a broker process: it stays small, nobody gets in, others are served."""

from __future__ import annotations

import socket
import struct
import time
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from benchmarks.process import resident_kib
from horolog.protocol.apis import API, ApiKey
from horolog.protocol.compile import decode, encode
from horolog.protocol.messages.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from horolog.protocol.wire import Message
from tests.support.sasl import plain_token
from tests.support.sasl_brokers import PASSWORD, Door, horolog

pytestmark = pytest.mark.timeout(120)
MIB = 2**20
SLACK_MIB = 40.0


@pytest.fixture(scope="module")
def entrance(tmp_path_factory: pytest.TempPathFactory):
    with horolog(tmp_path_factory.mktemp("logins") / "data") as (door, broker):
        yield door, broker


def connect(door: Door) -> socket.socket:
    host, _, port = door.closed.rpartition(":")
    return socket.create_connection((host, int(port)), timeout=10)


def frame(key: ApiKey, version: int, message: Message) -> bytes:
    header = struct.pack(">hhih", key, version, 1, -1) + b"\0" * (API[key].request_header_version(version) - 1)
    body = header + encode(message, version)
    return struct.pack(">i", len(body)) + body


def choose(mechanism: str = "PLAIN", version: int = 1) -> bytes:
    return frame(ApiKey.SASL_HANDSHAKE, version, SaslHandshakeRequest(mechanism=mechanism))


def prove(token: bytes) -> bytes:
    return frame(ApiKey.SASL_AUTHENTICATE, 1, SaslAuthenticateRequest(auth_bytes=token))


def answer(peer: socket.socket) -> bytes | None:
    """The next frame; None where the connection has ended."""
    try:
        size = peer.recv(4, socket.MSG_WAITALL)
        return peer.recv(struct.unpack(">i", size)[0], socket.MSG_WAITALL)[4:] if len(size) == 4 else None
    except ConnectionError:
        return None


def is_served(door: Door) -> bool:
    login = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "alice",
        "sasl.password": PASSWORD,
    }
    client = AdminClient({"bootstrap.servers": door.closed, **login})
    return bool(client.list_topics(timeout=60).brokers)


def test_a_flood_of_wrong_passwords_is_slowed_and_others_come_in(entrance) -> None:
    door, broker = entrance
    before = resident_kib(broker.pid) / 1024
    began = time.monotonic()
    peers = []
    for number in range(300):
        peer = connect(door)
        peer.sendall(choose() + prove(plain_token("alice", f"guess {number}")))
        peers.append(peer)
    assert is_served(door)
    for peer in peers:
        assert decode(SaslHandshakeResponse, 1, answer(peer) or b"").error_code == 0
        refused = decode(SaslAuthenticateResponse, 1, answer(peer) or b"")
        assert refused.error_code == 58
        assert answer(peer) is None
        peer.close()
    assert time.monotonic() - began > 0.1
    assert resident_kib(broker.pid) / 1024 - before < SLACK_MIB


def test_one_connection_has_one_guess(entrance) -> None:
    door, _ = entrance
    with connect(door) as peer:
        peer.sendall(choose() + prove(plain_token("alice", "wrong")) + prove(plain_token("alice", PASSWORD)))
        assert answer(peer) is not None
        assert decode(SaslAuthenticateResponse, 1, answer(peer) or b"").error_code == 58
        assert answer(peer) is None


def test_half_handshakes_hold_nothing(entrance) -> None:
    door, broker = entrance
    before = resident_kib(broker.pid) / 1024
    peers = [connect(door) for _ in range(500)]
    for number, peer in enumerate(peers):
        peer.sendall((choose(), choose("SCRAM-SHA-256"), choose()[:7], prove(b"x" * 9)[:-3])[number % 4])
    assert is_served(door)
    assert resident_kib(broker.pid) / 1024 - before < SLACK_MIB
    for peer in peers:
        peer.close()


@pytest.mark.parametrize("version", [0, 1])
def test_a_token_of_a_mebibyte_closes_the_connection_before_it_is_there(entrance, version: int) -> None:
    door, broker = entrance
    before = resident_kib(broker.pid) / 1024
    for _ in range(20):
        with connect(door) as peer:
            peer.sendall(choose(version=version))
            assert answer(peer) is not None
            data = prove(b"n" * MIB) if version else struct.pack(">i", MIB) + b"n" * MIB
            try:
                peer.sendall(data)
            except ConnectionError:
                continue
            assert answer(peer) is None
    assert resident_kib(broker.pid) / 1024 - before < SLACK_MIB
    assert is_served(door)


@pytest.mark.parametrize("mechanism", ["", "plain", "ANONYMOUS", "EXTERNAL", "GSSAPI", "SCRAM-SHA-1", "x" * 30_000])
def test_no_weaker_mechanism_can_be_had(entrance, mechanism: str) -> None:
    door, _ = entrance
    with connect(door) as peer:
        peer.sendall(choose(mechanism) + prove(b""))
        refused = decode(SaslHandshakeResponse, 1, answer(peer) or b"")
        assert (refused.error_code, refused.mechanisms) == (33, ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
        assert answer(peer) is None


def test_the_log_has_addresses_and_names_and_no_password(entrance) -> None:
    door, broker = entrance
    with connect(door) as peer:
        peer.sendall(choose() + prove(plain_token("mallory\n2026 INFO forged", "hunter2")))
        answer(peer), answer(peer)
    log = Path(broker.log_path).read_text()
    assert r"127.0.0.1 on SASL_PLAINTEXT failed to log in as 'mallory\n2026 INFO forged' with PLAIN" in log
    assert "hunter2" not in log
    assert PASSWORD not in log


def test_answers_come_later_the_more_logins_of_an_address_fail(tmp_path: Path) -> None:
    with horolog(tmp_path / "data", **{"horolog.failed.authentication.delay.max.ms": "2000"}) as (door, _):
        took = []
        for number in range(15):
            with connect(door) as peer:
                peer.sendall(choose() + prove(plain_token("alice", f"guess {number}")))
                assert answer(peer) is not None
                began = time.monotonic()
                assert answer(peer) is not None
                took.append(time.monotonic() - began)
        assert took[-1] > 1.5
        assert min(took[:10]) < 1.0
        assert is_served(door)
