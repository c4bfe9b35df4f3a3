"""The keys that are stored for a SCRAM user's password, with their salt and iteration count.

They do not give the password back; they can check a proof, but not make one (RFC 5802).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

LEAST_ITERATIONS = 4096
MOST_ITERATIONS = 16384
SALT_BYTES = 26
"""As many as Kafka's own tools make."""


@dataclass(frozen=True, slots=True)
class ScramKind:
    """One of the two forms of SCRAM that Kafka has; `number` stands for it on the wire and in records."""

    name: str
    number: int
    hash: str
    key_bytes: int

    def hmac(self, key: bytes, message: bytes) -> bytes:
        return hmac.digest(key, message, self.hash)

    def digest(self, message: bytes) -> bytes:
        return hashlib.new(self.hash, message).digest()

    def salted(self, password: str, salt: bytes, iterations: int) -> bytes:
        return hashlib.pbkdf2_hmac(self.hash, password.encode(), salt, iterations)


SCRAM_SHA_256 = ScramKind("SCRAM-SHA-256", 1, "sha256", 32)
SCRAM_SHA_512 = ScramKind("SCRAM-SHA-512", 2, "sha512", 64)
KINDS = {kind.name: kind for kind in (SCRAM_SHA_256, SCRAM_SHA_512)}
BY_NUMBER = {kind.number: kind for kind in KINDS.values()}


@dataclass(frozen=True, slots=True)
class ScramKeys:
    """The credential of one user for one kind."""

    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int

    def content(self) -> dict[str, Any]:
        """As it is stored in the cluster file."""
        return {
            "salt": _text(self.salt),
            "stored_key": _text(self.stored_key),
            "server_key": _text(self.server_key),
            "iterations": self.iterations,
        }

    @classmethod
    def of_content(cls, content: Mapping[str, Any]) -> ScramKeys:
        """Raises KeyError, TypeError or ValueError where that is no credential."""
        salt, stored_key, server_key = (
            base64.b64decode(content[key], validate=True) for key in ("salt", "stored_key", "server_key")
        )
        return cls(salt, stored_key, server_key, int(content["iterations"]))


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def of_salted(kind: ScramKind, salted: bytes, salt: bytes, iterations: int) -> ScramKeys:
    """The keys of a password that was salted and hashed elsewhere."""
    stored_key = kind.digest(kind.hmac(salted, b"Client Key"))
    return ScramKeys(salt, stored_key, kind.hmac(salted, b"Server Key"), iterations)


def new_salt() -> bytes:
    return secrets.token_bytes(SALT_BYTES)


def of_password(kind: ScramKind, password: str, iterations: int = LEAST_ITERATIONS, salt: bytes = b"") -> ScramKeys:
    """The keys of a password, with a new salt unless one is given."""
    salt = salt or new_salt()
    return of_salted(kind, kind.salted(password, salt, iterations), salt, iterations)


class Form(NamedTuple):
    """What any peer that begins a login sees of a credential."""

    salt_bytes: int
    iterations: int


USUAL: Final = Form(SALT_BYTES, LEAST_ITERATIONS)


def of_nobody(kind: ScramKind, name: str, secret: bytes, form: Form = USUAL) -> ScramKeys:
    """The answer for a name without a user: always the same for one secret, and no password fits."""
    named = f"{kind.name} {name}".encode("utf-8", "surrogatepass")
    salt = hashlib.shake_256(hmac.digest(secret, named, "sha512")).digest(form.salt_bytes)
    return ScramKeys(salt, secrets.token_bytes(kind.key_bytes), bytes(kind.key_bytes), form.iterations)
