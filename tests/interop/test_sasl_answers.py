"""SASL and its users by raw requests, one after the other, to horolog and to a real Kafka with the same settings: both answer the same."""

from __future__ import annotations

import contextlib
import hashlib
import socket
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

import pytest

from benchmarks import kafka
from horolog.protocol.apis import API
from horolog.protocol.compile import decode, encode
from horolog.protocol.messages.api_versions import ApiVersionsRequest
from horolog.protocol.messages.metadata import MetadataRequest
from horolog.protocol.messages.sasl import SaslAuthenticateRequest, SaslHandshakeRequest
from horolog.protocol.messages.scram import (
    AlterUserScramCredentialsRequest,
    DescribeUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
    UserName,
)
from horolog.protocol.wire import Message
from tests.support.sasl import ScramPeer, plain_token
from tests.support.sasl_brokers import LISTENER, PASSWORD, Door, horolog, real_kafka

pytestmark = [pytest.mark.kafka_jars, pytest.mark.java, pytest.mark.timeout(300)]
RELEASE = "4.3.1"
CLOSED = "closed"
REAUTH_MS = 3000
MORE = {f"{LISTENER}scram-sha-256.connections.max.reauth.ms": str(REAUTH_MS)}
ALICE = plain_token("alice", PASSWORD)


class Peer:
    """A client that sends what it likes."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=10)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def ask(self, message: Message, version: int) -> Any:
        """The answer, or CLOSED."""
        api = next(api for api in API.values() if api.name + "Request" == type(message).__name__)
        header = struct.pack(">hhih", api.key, version, 7, -1) + b"\0" * (api.request_header_version(version) - 1)
        answer = self.token(header + encode(message, version))
        if answer == CLOSED:
            return CLOSED
        return decode(api.response, version, answer, 4 + api.response_header_version(version))

    def token(self, data: bytes) -> Any:
        """The frame that answers a frame, or CLOSED."""
        try:
            self._socket.sendall(struct.pack(">i", len(data)) + data)
            size = self._socket.recv(4, socket.MSG_WAITALL)
            return self._socket.recv(struct.unpack(">i", size)[0], socket.MSG_WAITALL) if len(size) == 4 else CLOSED
        except ConnectionError:
            return CLOSED

    def choose(self, mechanism: str, version: int = 1) -> Any:
        answer = self.ask(SaslHandshakeRequest(mechanism=mechanism), version)
        return answer if answer == CLOSED else (answer.error_code, sorted(answer.mechanisms))

    def prove(self, token: bytes, version: int = 2) -> Any:
        answer = self.ask(SaslAuthenticateRequest(auth_bytes=token), version)
        if answer == CLOSED:
            return CLOSED
        return answer.error_code, answer.error_message, bytes(answer.auth_bytes), answer.session_lifetime_ms

    def is_served(self) -> bool:
        return self.ask(MetadataRequest(topics=[]), 9) != CLOSED

    def scram(self, user: str, password: str) -> Any:
        """The last answer of a login."""
        peer = ScramPeer("SCRAM-SHA-256", user, password)
        challenge = self.prove(peer.first())
        return self.prove(peer.last(challenge[2])) if challenge[0] == 0 else challenge


def put(name: str, mechanism: int = 1, iterations: int = 4096, password: str = "pw") -> ScramCredentialUpsertion:
    salted = hashlib.pbkdf2_hmac(
        "sha256" if mechanism == 1 else "sha512", password.encode(), b"salt", max(iterations, 1)
    )
    return ScramCredentialUpsertion(
        name=name, mechanism=mechanism, iterations=iterations, salt=b"salt", salted_password=salted
    )


def gone(name: str, mechanism: int = 1) -> ScramCredentialDeletion:
    return ScramCredentialDeletion(name=name, mechanism=mechanism)


def alter(peer: Peer, *changes: Any) -> dict[str, Any]:
    deletions = [one for one in changes if isinstance(one, ScramCredentialDeletion)]
    upsertions = [one for one in changes if isinstance(one, ScramCredentialUpsertion)]
    answer = peer.ask(AlterUserScramCredentialsRequest(deletions=deletions, upsertions=upsertions), 0)
    return {one.user: (one.error_code, one.error_message) for one in answer.results}


def describe(peer: Peer, *names: str) -> Any:
    users = [UserName(name=name) for name in names] if names else None
    answer = peer.ask(DescribeUserScramCredentialsRequest(users=users), 0)
    found = {
        one.user: (
            one.error_code,
            one.error_message,
            sorted((info.mechanism, info.iterations) for info in one.credential_infos),
        )
        for one in answer.results
    }
    return answer.error_code, found


# -- requests


def plain(door: Door) -> list[Any]:
    said: list[Any] = []
    tokens = [
        ALICE,
        plain_token("alice", PASSWORD, "alice"),
        plain_token("alice", PASSWORD, "bob"),
        plain_token("alice", "wrong"),
        plain_token("nobody", PASSWORD),
        plain_token("", "x"),
        plain_token("alice", ""),
        b"",
        b"\0alice",
        b"\0a\0b\0c",
    ]
    for token in tokens:
        for version in (0, 2):
            with Peer(door.closed) as peer:
                said += [peer.choose("PLAIN"), peer.prove(token, version), peer.is_served()]
    return said


def tokens_without_requests(door: Door) -> list[Any]:
    said: list[Any] = []
    for token in (ALICE, plain_token("alice", "wrong"), b"x"):
        with Peer(door.closed) as peer:
            said += [peer.choose("PLAIN", 0), peer.token(token), peer.is_served()]
    return said


def mechanisms(door: Door) -> list[Any]:
    said: list[Any] = []
    for name in ("GSSAPI", "plain", "", "OAUTHBEARER"):
        for version in (0, 1):
            with Peer(door.closed) as peer:
                said += [peer.choose(name, version), peer.choose("PLAIN", version)]
    return said


def order(door: Door) -> list[Any]:
    """What may come before a peer is known."""
    said: list[Any] = []
    versions = ApiVersionsRequest(client_software_name="x", client_software_version="1")
    with Peer(door.closed) as peer:
        said += [peer.ask(versions, 3) != CLOSED, peer.choose("PLAIN"), peer.prove(ALICE), peer.is_served()]
    with Peer(door.closed) as peer:
        said += [peer.ask(versions, 3) != CLOSED, peer.ask(versions, 3)]
    with Peer(door.closed) as peer:
        said += [peer.is_served()]
    with Peer(door.closed) as peer:
        said += [peer.prove(ALICE)]
    with Peer(door.closed) as peer:
        said += [peer.choose("PLAIN"), peer.prove(ALICE), peer.choose("PLAIN"), peer.prove(ALICE)[0], peer.is_served()]
    return said


def scram(door: Door) -> list[Any]:
    said: list[Any] = []
    with Peer(door.open) as admin:
        alter(admin, put("ann", password="right"))
    time.sleep(1)  # a Kafka's broker learns of it from its controller
    for user, password in (("ann", "right"), ("ann", "wrong"), ("nobody", "right")):
        with Peer(door.closed) as peer:
            peer.choose("SCRAM-SHA-256")
            code, told, _, lifetime_ms = peer.scram(user, password)
            said += [code, told, lifetime_ms, peer.is_served()]
    for first in (b"", b"y,,n=ann,r=x", b"n,a=bob,n=ann,r=x", b"n,,n=a=b,r=x"):
        with Peer(door.closed) as peer:
            said += [peer.choose("SCRAM-SHA-256"), peer.prove(first)]
    return said


def renewals(door: Door) -> list[Any]:
    said: list[Any] = []

    def known(peer: Peer) -> None:
        peer.choose("SCRAM-SHA-256")
        peer.scram("ann", "right")

    with Peer(door.closed) as peer:
        known(peer)
        said += [peer.choose("SCRAM-SHA-256")[0], peer.scram("ann", "right")[0], peer.is_served()]
        said += [peer.choose("SCRAM-SHA-256")]  # within a second
    with Peer(door.closed) as peer:
        known(peer)
        said += [peer.choose("PLAIN")[0], peer.prove(ALICE)]
    with Peer(door.closed) as peer:
        known(peer)
        said += [peer.choose("SCRAM-SHA-256")[0], peer.scram("ann", "wrong")[:2]]
    with Peer(door.closed) as peer:
        known(peer)
        time.sleep(REAUTH_MS / 1000 + 0.3)
        said += [peer.is_served()]
    return said


def users(door: Door) -> list[Any]:
    said: list[Any] = []
    with Peer(door.open) as peer:
        said += [
            alter(peer, put("bob", 1, 5000)),
            alter(peer, put("bob", 2, 6000), put("cat"), put("", 1)),
            alter(peer, put("dan", 1, 4095), put("eve", 2, 16385), put("fay", 0), put("gus", 3)),
            alter(peer, put("hal", 1), put("hal", 2), put("ida")),
            alter(peer, gone("cat"), put("cat")),
            alter(peer, gone("cat"), gone("nobody"), gone("bob", 9), gone("ida"), gone("ida")),
            alter(peer),
        ]
        time.sleep(1)
        said += [
            describe(peer, "bob", "cat", "nobody", "ida"),
            describe(peer, "bob", "bob", "ida"),
            sorted(set(describe(peer)[1]) - {"ann"}),
        ]
    return said


SCENARIOS: list[Callable[[Door], list[Any]]] = [
    plain,
    tokens_without_requests,
    mechanisms,
    order,
    scram,
    renewals,
    users,
]


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Door, Door]]:
    folder: Path = tmp_path_factory.mktemp("answers")
    try:
        kafka.libs(RELEASE)
    except kafka.MissingJarsError as error:
        pytest.skip(str(error))
    with contextlib.ExitStack() as ends:
        ours, _ = ends.enter_context(horolog(folder / "ours", **MORE))
        yield ours, ends.enter_context(real_kafka(RELEASE, folder / "theirs", **MORE))


@pytest.mark.long
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.__name__)
def test_both_answer_the_same(doors: tuple[Door, Door], scenario: Callable[[Door], list[Any]]) -> None:
    ours, theirs = doors
    assert scenario(ours) == scenario(theirs)
