"""Brokers with SASL logins, horolog or a real Kafka, both from the same settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks import kafka
from benchmarks.process import free_ports
from tests.support.broker_process import BrokerProcess
from tests.support.certificates import Certificates

MODULES = "org.apache.kafka.common.security"
LISTENER = "listener.name.sasl_plaintext."
PASSWORD = "pass word;="
SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
MECHANISMS = ("PLAIN", *SCRAM)


class Door(NamedTuple):
    """The open listener, and the one that requires a login."""

    open: str
    closed: str
    ca: str = ""
    """The authority that signed the broker's certificate, if over TLS."""


def tls_below(certificates: Certificates) -> dict[str, str]:
    """The same listener over TLS."""
    return {
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_SSL",
        f"{LISTENER}ssl.keystore.type": "PEM",
        f"{LISTENER}ssl.keystore.location": str(certificates.server),
    }


def sasl_settings(**more: str) -> dict[str, str]:
    """PLAIN with alice, and SCRAM with any users added."""
    return {
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        f"{LISTENER}plain.sasl.jaas.config": (
            f'{MODULES}.plain.PlainLoginModule required username="x" password="y" user_alice="{PASSWORD}" ;'
        ),
        **{f"{LISTENER}{one.lower()}.sasl.jaas.config": f"{MODULES}.scram.ScramLoginModule required;" for one in SCRAM},
        **more,
    }


@contextmanager
def horolog(data: Path, **more: str) -> Iterator[tuple[Door, BrokerProcess]]:
    plain, asking = free_ports(2)
    listeners = f"PLAINTEXT://127.0.0.1:{plain},SASL_PLAINTEXT://127.0.0.1:{asking}"
    broker = BrokerProcess(data, {"listeners": listeners, **sasl_settings(**more)})
    broker.start()
    try:
        yield Door(f"127.0.0.1:{plain}", f"127.0.0.1:{asking}"), broker
    finally:
        broker.kill()


@contextmanager
def real_kafka(version: str, data: Path, **more: str) -> Iterator[Door]:
    plain, asking, control = free_ports(3)
    clients = f"PLAINTEXT://127.0.0.1:{plain},SASL_PLAINTEXT://127.0.0.1:{asking}"
    settings: Mapping[str, str] = {
        "listeners": f"{clients},CONTROLLER://127.0.0.1:{control}",
        "advertised.listeners": clients,
        "controller.quorum.voters": f"1@127.0.0.1:{control}",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT",
        **sasl_settings(**more),
    }
    try:
        kafka.start(version, data, settings, port=plain, heap_mib=512)
        yield Door(f"127.0.0.1:{plain}", f"127.0.0.1:{asking}")
    finally:
        kafka.stop(data)
