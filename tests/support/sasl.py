"""A SASL client, written independently from RFC 5802, and logins whose time the test sets."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable, Mapping
from typing import Any

from horolog.base.clock import ManualClock
from horolog.broker.base.metrics import Metrics
from horolog.broker.security.audit import AuditTrail
from horolog.broker.security.sasl.door import AUTHENTICATIONS, SaslDoor
from horolog.broker.security.sasl.outcome import Mechanism
from horolog.broker.security.sasl.plain import PlainLogin, PlainUsers

NOW_MS = 1_700_000_000_000
HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}


def plain_token(user: str, password: str, authorization_id: str = "") -> bytes:
    return f"{authorization_id}\0{user}\0{password}".encode()


class ScramPeer:
    """The client's side of one SCRAM login."""

    def __init__(
        self, mechanism: str, user: str, password: str, *, gs2: str = "n,,", extensions: str = "", nonce: str = "abc"
    ) -> None:
        self._hash = HASHES[mechanism]
        self._password = password.encode()
        self._gs2 = gs2
        escaped = user.replace("=", "=3D").replace(",", "=2C")
        self.nonce = nonce
        self._bare = f"n={escaped},r={nonce}{extensions}"
        self.server_signature = b""

    def first(self) -> bytes:
        return (self._gs2 + self._bare).encode()

    def last(self, challenge: bytes, binding: str | None = None) -> bytes:
        said = dict(part.split("=", 1) for part in challenge.decode().split(","))
        assert said["r"].startswith(self.nonce)
        assert len(said["r"]) > len(self.nonce)
        salt, count = base64.b64decode(said["s"]), int(said["i"])
        salted = hashlib.pbkdf2_hmac(self._hash, self._password, salt, count)
        bound = base64.b64encode((self._gs2 if binding is None else binding).encode()).decode()
        unproved = f"c={bound},r={said['r']}"
        signed = f"{self._bare},{challenge.decode()},{unproved}".encode()
        client_key = self._hmac(salted, b"Client Key")
        signature = self._hmac(hashlib.new(self._hash, client_key).digest(), signed)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        self.server_signature = self._hmac(self._hmac(salted, b"Server Key"), signed)
        return f"{unproved},p={base64.b64encode(proof).decode()}".encode()

    def believes(self, final: bytes) -> bool:
        """Whether the server has proved that it knows the user's keys."""
        return final == b"v=" + base64.b64encode(self.server_signature)

    def _hmac(self, key: bytes, message: bytes) -> bytes:
        return hmac.new(key, message, self._hash).digest()


class Hourglass:
    """A scheduler of later calls, run by the test."""

    def __init__(self) -> None:
        self.waiting: list[tuple[float, Callable[[], None]]] = []

    def later(self, delay_s: float, call: Callable[[], None]) -> Hourglass._Entry:
        entry = delay_s, call
        self.waiting.append(entry)
        return Hourglass._Entry(self, entry)

    def run(self) -> list[float]:
        """Make all calls; returns how long each had to wait."""
        due, self.waiting = self.waiting, []
        for _, call in due:
            call()
        return [delay_s for delay_s, _ in due]

    class _Entry:
        def __init__(self, glass: Hourglass, entry: Any) -> None:
            self._glass = glass
            self._entry = entry

        def cancel(self) -> None:
            if self._entry in self._glass.waiting:
                self._glass.waiting.remove(self._entry)


def door(
    mechanisms: Mapping[str, Callable[[], Mechanism]] | None = None,
    max_reauth_ms: Mapping[str, int] | None = None,
    glass: Hourglass | None = None,
    clock: ManualClock | None = None,
    max_receive_bytes: int = 1000,
    audit: AuditTrail | None = None,
) -> SaslDoor:
    """By default alice logs in with the password `secret`, by PLAIN."""
    made = (
        {"PLAIN": lambda: PlainLogin(PlainUsers({"alice": "secret", "bob": "other"}))}
        if mechanisms is None
        else mechanisms
    )
    return SaslDoor(
        "IN",
        made,
        max_reauth_ms or {},
        max_receive_bytes,
        lambda _: 0.1,
        clock or ManualClock(NOW_MS),
        Metrics(),
        (glass or Hourglass()).later,
        audit,
    )


def counted(one: SaslDoor) -> dict[tuple[str, ...], int]:
    """Logins by mechanism, kind and outcome."""
    samples: Any = one.metrics.samples(AUTHENTICATIONS)
    return {labels[1:]: count for labels, count in samples}
