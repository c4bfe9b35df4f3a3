"""A real Kafka and a broker process with the same settings: an authorizer, and clients that log in by SASL PLAIN.

Every client on the open listener is a super user.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks import process
from benchmarks.kafka import node
from horolog.protocol.messages.sasl import SaslAuthenticateRequest, SaslHandshakeRequest
from tests.support.broker_process import BrokerProcess
from tests.support.guarded_broker import STANDARD_AUTHORIZER
from tests.support.raw_wire import RawWire

Addresses = tuple[str, str]
"""The addresses of the open listener, and of the one that requires a login, where the password is the user's name."""


def settings(open_port: int, users_port: int, users: Sequence[str]) -> dict[str, str]:
    known = " ".join(f'user_{name}="{name}"' for name in users)
    listeners = f"PLAINTEXT://127.0.0.1:{open_port},USERS://127.0.0.1:{users_port}"
    return {
        "listeners": listeners,
        "advertised.listeners": listeners,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,USERS:SASL_PLAINTEXT",
        "listener.name.users.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.users.plain.sasl.jaas.config": (
            f"org.apache.kafka.common.security.plain.PlainLoginModule required {known};"
        ),
        "authorizer.class.name": STANDARD_AUTHORIZER,
        "super.users": "User:ANONYMOUS;User:admin",
        "auto.create.topics.enable": "false",
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.num.partitions": "1",
    }


@contextmanager
def guarded_kafka(release: str, users: Sequence[str]) -> Iterator[Addresses]:
    open_port, users_port, controller = process.free_ports(3)
    given = settings(open_port, users_port, users)
    given["listeners"] += f",CONTROLLER://127.0.0.1:{controller}"
    given["listener.security.protocol.map"] += ",CONTROLLER:PLAINTEXT"
    given["controller.quorum.voters"] = f"1@127.0.0.1:{controller}"
    with tempfile.TemporaryDirectory(prefix="kafka-") as folder:
        data = Path(folder)
        node.start(release, data, given, port=open_port, heap_mib=512)
        try:
            yield f"127.0.0.1:{open_port}", f"127.0.0.1:{users_port}"
        finally:
            node.stop(data)


@contextmanager
def guarded_process(data: Path, users: Sequence[str]) -> Iterator[Addresses]:
    open_port, users_port = process.free_ports(2)
    given = settings(open_port, users_port, users) | {"group.initial.rebalance.delay.ms": "0"}
    broker = BrokerProcess(data, given).start()
    try:
        yield f"127.0.0.1:{open_port}", f"127.0.0.1:{users_port}"
    finally:
        assert broker.stop() == 0
        assert "Traceback" not in broker.log()


def wire_of(address: str, user: str) -> RawWire:
    """A connection as this user."""
    wire = RawWire(address)
    assert wire.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == 0
    token = f"\0{user}\0{user}".encode()
    assert wire.ask(SaslAuthenticateRequest(auth_bytes=token), 2).error_code == 0
    return wire
