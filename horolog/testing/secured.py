"""A broker in a test that requires TLS, a login or both, by one word: its settings, and those of its clients.

The certificate and its authority are new for each broker, for `localhost` and 127.0.0.1, and are never written to a file.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from horolog.base.clock import SystemClock

TLS, SASL, SASL_TLS = "tls", "sasl", "sasl_tls"
PROTOCOLS = {TLS: "SSL", SASL: "SASL_PLAINTEXT", SASL_TLS: "SASL_SSL"}
USER, PASSWORD = "test", "test-password"
HOST, ADDRESS = "localhost", "127.0.0.1"
LISTENER = "CLIENTS"
LASTS = timedelta(days=1)


class Secured(NamedTuple):
    """Settings of the broker, and of its clients by the names of librdkafka."""

    broker: Mapping[str, str]
    client: Mapping[str, str]


OPEN = Secured({}, {})


class Issued(NamedTuple):
    """A certificate with its key and its authority, as PEM."""

    authority: str
    certificate: str
    key: str


def secured_by(word: str | None) -> Secured:
    """The settings that a word stands for. Raises ValueError for another word, ImportError without the extra `horolog[tls]`."""
    if word is None:
        return OPEN
    if word not in PROTOCOLS:
        raise ValueError(f"security={word!r}: expected one of {', '.join(PROTOCOLS)}")
    protocol = PROTOCOLS[word]
    broker = {
        "listeners": f"{LISTENER}://{ADDRESS}:0",
        "listener.security.protocol.map": f"{LISTENER}:{protocol}",
    }
    client = {"security.protocol": protocol}
    if word != SASL:
        _add_tls(broker, client)
    if word != TLS:
        _add_login(broker, client)
    return Secured(broker, client)


def _add_tls(broker: dict[str, str], client: dict[str, str]) -> None:
    issued = issue()
    broker["ssl.keystore.type"] = "PEM"
    broker["ssl.keystore.certificate.chain"] = issued.certificate
    broker["ssl.keystore.key"] = issued.key
    client["ssl.ca.pem"] = issued.authority


def _add_login(broker: dict[str, str], client: dict[str, str]) -> None:
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    of_listener = f"listener.name.{LISTENER.lower()}"
    broker[f"{of_listener}.sasl.enabled.mechanisms"] = "PLAIN"
    broker[f"{of_listener}.plain.sasl.jaas.config"] = f'{module} required user_{USER}="{PASSWORD}";'
    client |= {"sasl.mechanisms": "PLAIN", "sasl.username": USER, "sasl.password": PASSWORD}


def issue() -> Issued:
    """A new authority, and a certificate for this machine that it has signed."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    def named(name: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])

    now = datetime.fromtimestamp(SystemClock().wall_ms() / 1000, UTC)
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())

    def begun(subject: str, public_key: ec.EllipticCurvePublicKey, *, is_authority: bool) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(named(subject))
            .issuer_name(named("horolog test authority"))
            .public_key(public_key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - LASTS)
            .not_valid_after(now + LASTS)
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        )

    names = x509.SubjectAlternativeName([x509.DNSName(HOST), x509.IPAddress(ipaddress.ip_address(ADDRESS))])
    authority = begun("horolog test authority", ca_key.public_key(), is_authority=True).sign(ca_key, hashes.SHA256())
    builder = begun(HOST, key.public_key(), is_authority=False).add_extension(names, critical=False)
    certificate = builder.sign(ca_key, hashes.SHA256())
    pem = serialization.Encoding.PEM
    key_pem = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return Issued(authority.public_bytes(pem).decode(), certificate.public_bytes(pem).decode(), key_pem.decode())
