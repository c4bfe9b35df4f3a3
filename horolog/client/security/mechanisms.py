"""The client's side of each SASL mechanism: a generator yields the client's messages and is sent the server's.

A generator that ends has accepted the server; ServerFault says why it has not. The server itself says whether it accepts
the client.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping

from horolog.base.scram_client import ServerFault, new_nonce, scram
from horolog.client.security.settings import Sasl, SecurityError

Conversation = Generator[bytes, bytes, None]


async def conversation_of(sasl: Sasl) -> Conversation:
    """The conversation of one login; fetches a bearer token first."""
    if sasl.mechanism == "OAUTHBEARER":
        assert sasl.token is not None
        return bearer(await sasl.token(), sasl.extensions)
    if sasl.mechanism == "PLAIN":
        return plain(sasl.username, sasl.password)
    return scram(sasl.mechanism, sasl.username, sasl.password, new_nonce(), by_token=sasl.by_token)


def plain(username: str, password: str) -> Conversation:
    if "\0" in username + password:
        raise SecurityError("PLAIN cannot send a user name or password that contains a NUL")
    yield f"\0{username}\0{password}".encode()


def bearer(token: str, extensions: Mapping[str, str]) -> Conversation:
    """RFC 7628. A response with content is the reason for a refusal; the server ends once the client has acknowledged it."""
    if not token.isascii() or not token.isprintable() or not token:
        raise SecurityError("the bearer token is empty, or has characters that a token cannot have")
    more = "".join(f"{name}={value}\x01" for name, value in extensions.items())
    reason = yield f"n,,\x01auth=Bearer {token}\x01{more}\x01".encode()
    if reason:
        yield b"\x01"
        raise ServerFault(f"it refused the token: {_status(reason)}")


def _status(reason: bytes) -> str:
    try:
        told = json.loads(reason)
    except ValueError:
        told = None
    status = told.get("status") if isinstance(told, dict) else None
    return repr(status)[:80] if isinstance(status, str) else "no reason is given"
