"""A real Kafka with an authorizer, and clients that come in by SASL PLAIN; anybody on its open listener is a super user."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks import process
from benchmarks.kafka import node
from horolog.protocol.messages.sasl import SaslAuthenticateRequest, SaslHandshakeRequest
from tests.support.raw_wire import RawWire

STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


@contextmanager
def guarded_kafka(release: str, users: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """The addresses of the open listener and of the one that asks for a user, whose password is his name."""
    free, asking, controller = process.free_ports(3)
    known = " ".join(f'user_{name}="{name}"' for name in users)
    settings = {
        "listeners": f"PLAINTEXT://127.0.0.1:{free},USERS://127.0.0.1:{asking},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{free},USERS://127.0.0.1:{asking}",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,USERS:SASL_PLAINTEXT",
        "listener.name.users.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.users.plain.sasl.jaas.config": (
            f"org.apache.kafka.common.security.plain.PlainLoginModule required {known};"
        ),
        "authorizer.class.name": STANDARD_AUTHORIZER,
        "super.users": "User:ANONYMOUS;User:admin",
        "auto.create.topics.enable": "false",
    }
    with tempfile.TemporaryDirectory(prefix="kafka-") as folder:
        data = Path(folder)
        node.start(release, data, settings, port=free, heap_mib=512)
        try:
            yield f"127.0.0.1:{free}", f"127.0.0.1:{asking}"
        finally:
            node.stop(data)


def wire_of(address: str, user: str) -> RawWire:
    """A connection as this user."""
    wire = RawWire(address)
    assert wire.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == 0
    token = f"\0{user}\0{user}".encode()
    assert wire.ask(SaslAuthenticateRequest(auth_bytes=token), 2).error_code == 0
    return wire
