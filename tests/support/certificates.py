"""Certificates for tests: an authority, a broker's certificate, and clients' certificates signed by it or not."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)
from cryptography.x509 import load_pem_x509_certificate

PASSWORD = "do not show this"


class Certificates:
    """PEM files in a folder: `ca`, the broker's `server`, a client's `alice`, and `mallory`, signed by another authority."""

    def __init__(self, folder: Path, key_type: trustme.KeyType = trustme.KeyType.ECDSA) -> None:
        self.folder = folder
        self.key_type = key_type
        self.authority = trustme.CA()
        self.ca = folder / "ca.pem"
        self.authority.cert_pem.write_to_path(str(self.ca))
        self.server = folder / "server.pem"
        self.renew()
        self.alice = self._client(self.authority, "alice")
        self.mallory = self._client(trustme.CA(), "mallory")

    def renew(
        self,
        expires: datetime | None = None,
        *,
        subject: str = "broker",
        alternatives: Sequence[str] = ("localhost", "127.0.0.1"),
    ) -> None:
        """Issue a new certificate for the broker."""
        named = {"common_name": subject, "organization_unit_name": "Brokers"}  # else a random unit is made up each time
        _write(
            self.server, self.authority.issue_cert(*alternatives, not_after=expires, key_type=self.key_type, **named)
        )

    def encrypt_key(self, password: str = PASSWORD) -> None:
        """Give the broker's key a password."""
        text = self.server.read_text()
        key = load_pem_private_key(text.encode(), None)
        encryption = BestAvailableEncryption(password.encode())
        encrypted = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)
        self.server.write_text(encrypted.decode() + text[text.index("-----BEGIN CERT") :])

    def _client(self, authority: trustme.CA, name: str) -> Path:
        issued = authority.issue_cert(f"{name}@example.org", common_name=name, organization_name="Logs, Inc")
        path = self.folder / f"{name}.pem"
        _write(path, issued)
        return path

    def settings(self, **more: str) -> dict[str, str]:
        """Settings of a broker that speaks TLS, on a free port."""
        given = {
            "listeners": "SSL://127.0.0.1:0",
            "ssl_keystore_type": "PEM",
            "ssl_keystore_location": str(self.server),
            "ssl_truststore_type": "PEM",
            "ssl_truststore_location": str(self.ca),
            **more,
        }
        return {key.replace("_", "."): value for key, value in given.items()}

    def client(self, shown: Path | None = None, newest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> ssl.SSLContext:
        """A client's context that trusts the broker, with or without a certificate."""
        context = ssl.create_default_context(cafile=str(self.ca))
        context.maximum_version = newest
        if shown is not None:
            context.load_cert_chain(str(shown))
        return context

    def pkcs12(self, pem: Path, password: str = PASSWORD) -> Path:
        """The same as a PKCS12 file."""
        data = pem.read_bytes()
        key = load_pem_private_key(data, None)
        path = pem.with_suffix(".p12")
        written = pkcs12.serialize_key_and_certificates(
            b"broker", key, load_pem_x509_certificate(data), None, BestAvailableEncryption(password.encode())
        )
        path.write_bytes(written)
        return path

    def trusted_pkcs12(self, password: str = PASSWORD) -> Path:
        """The authority alone as a PKCS12 file."""
        path = self.folder / "ca.p12"
        certificate = load_pem_x509_certificate(self.ca.read_bytes())
        encryption = BestAvailableEncryption(password.encode())
        path.write_bytes(pkcs12.serialize_key_and_certificates(None, None, None, [certificate], encryption))
        return path


def _write(path: Path, issued: trustme.LeafCert) -> None:
    """Write key and chain; the key in a form that Java reads too."""
    key = load_pem_private_key(issued.private_key_pem.bytes(), None)
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path.write_bytes(text + b"".join(one.bytes() for one in issued.cert_chain_pems))


def soon(**more: float) -> datetime:
    return datetime.now(UTC) + timedelta(**more)


def shake_hands(server: ssl.SSLContext, client: ssl.SSLContext) -> tuple[ssl.SSLObject, ssl.SSLObject]:
    """The client's and the server's end after a handshake in memory; raises the error of either."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = (
        client.wrap_bio(to_client, to_server, server_hostname="localhost"),
        server.wrap_bio(to_server, to_client, server_side=True),
    )
    waiting = list(ends)
    for _ in range(10):
        for end in list(waiting):
            with contextlib.suppress(ssl.SSLWantReadError):
                end.do_handshake()
                waiting.remove(end)
    assert not waiting
    return ends
