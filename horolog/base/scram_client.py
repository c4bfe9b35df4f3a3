"""SASL/SCRAM (RFC 5802 and 7677) from the client's side, as Kafka speaks it: without channel binding.

The password is never sent, and the server has to prove that it knows it too.
"""

from __future__ import annotations

import binascii
import hashlib
import hmac
import re
import secrets
from base64 import b64decode, b64encode
from collections.abc import Callable, Generator
from typing import Final

DIGESTS: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
MIN_ITERATIONS: Final = 4096
MAX_ITERATIONS: Final = 1_000_000
"""The most iterations a server may ask for: each costs the client time, before the server has proved anything."""
TOKEN_AUTH: Final = ",tokenauth=true"  # noqa: S105 - the extension
_GS2: Final = "n,,"
_FIRST: Final = re.compile(r"r=([\x21-\x2b\x2d-\x7e]+),s=([A-Za-z0-9+/=]+),i=([0-9]{1,10})(?:,.*)?")
_SIGNED: Final = re.compile(r"v=([A-Za-z0-9+/=]+)(?:,.*)?")


class ServerFault(Exception):
    """The server's message violates the mechanism."""


def new_nonce() -> str:
    return secrets.token_urlsafe(24)


def scram(
    mechanism: str,
    username: str,
    password: str,
    nonce: str,
    *,
    by_token: bool = False,
    derive: Callable[[str, bytes, bytes, int], bytes] = hashlib.pbkdf2_hmac,
) -> Generator[bytes, bytes, None]:
    """Yields the client's messages; the server's are sent in. Ends once the server has proved that it knows the password.

    With `by_token` name and password are those of a delegation token. `derive` salts the password, which takes milliseconds: a caller that logs in often may cache the result.
    """
    digest = DIGESTS[mechanism]
    bare = f"n={username.replace('=', '=3D').replace(',', '=2C')},r={nonce}{TOKEN_AUTH if by_token else ''}"
    challenge = _text((yield (_GS2 + bare).encode()))
    server_nonce, salt, iterations = _parsed(challenge, nonce)
    unproved = f"c={b64encode(_GS2.encode()).decode()},r={server_nonce}"
    signed = f"{bare},{challenge},{unproved}".encode()
    salted = derive(digest, password.encode(), salt, iterations)
    client_key = hmac.digest(salted, b"Client Key", digest)
    signature = hmac.digest(hashlib.new(digest, client_key).digest(), signed, digest)
    proof = bytes(one ^ other for one, other in zip(client_key, signature, strict=True))
    last = _text((yield f"{unproved},p={b64encode(proof).decode()}".encode()))
    server_key = hmac.digest(salted, b"Server Key", digest)
    _check_signature(last, hmac.digest(server_key, signed, digest))


def _parsed(challenge: str, nonce: str) -> tuple[str, bytes, int]:
    found = _FIRST.fullmatch(challenge)
    if found is None:
        raise ServerFault("its first message has not the form of SCRAM")
    if not found[1].startswith(nonce) or found[1] == nonce:
        raise ServerFault("its nonce does not extend the client's")
    iterations = int(found[3])
    if not MIN_ITERATIONS <= iterations <= MAX_ITERATIONS:
        raise ServerFault(f"it requires {iterations} iterations; {MIN_ITERATIONS} to {MAX_ITERATIONS} are accepted")
    return found[1], _decoded(found[2]), iterations


def _check_signature(last: str, expected: bytes) -> None:
    if last.startswith("e="):
        raise ServerFault(f"it ends with the error {last[2:82]!r}")
    found = _SIGNED.fullmatch(last)
    if found is None:
        raise ServerFault("its last message has not the form of SCRAM")
    if not hmac.compare_digest(_decoded(found[1]), expected):
        raise ServerFault("its signature is wrong: it does not know the password, and is not the server meant")


def _text(message: bytes) -> str:
    try:
        return message.decode()
    except UnicodeDecodeError as error:
        raise ServerFault("its message is not text") from error


def _decoded(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except binascii.Error as error:
        raise ServerFault("its message has not the form of SCRAM") from error
