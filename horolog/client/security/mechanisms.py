"""What a client says for each mechanism of SASL: a generator yields its messages and is sent the server's.

One that ends is satisfied with the server; ServerFault says why it is not. Whether the server is satisfied with the client, the
server says itself.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping

from horolog.client.security.scram import ServerFault, new_nonce, scram
from horolog.client.security.settings import Sasl, SecurityError

Conversation = Generator[bytes, bytes, None]


async def conversation_of(sasl: Sasl) -> Conversation:
    """The conversation of one login; a bearer token is got first."""
    if sasl.mechanism == "OAUTHBEARER":
        assert sasl.token is not None
        return bearer(await sasl.token(), sasl.extensions)
    if sasl.mechanism == "PLAIN":
        return plain(sasl.username, sasl.password)
    return scram(sasl.mechanism, sasl.username, sasl.password, new_nonce())


def plain(username: str, password: str) -> Conversation:
    if "\0" in username + password:
        raise SecurityError("PLAIN has no way to say a name or a password with a NUL in it")
    yield f"\0{username}\0{password}".encode()


def bearer(token: str, extensions: Mapping[str, str]) -> Conversation:
    """RFC 7628. An answer with content is the reason of a refusal; the server ends once the client has said that it heard."""
    if not token.isascii() or not token.isprintable() or not token:
        raise SecurityError("the bearer token is empty, or has characters that no token has")
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
