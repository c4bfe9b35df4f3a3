"""SASL/PLAIN (RFC 4616): a name and a password in plain text. The users are options `user_NAME="PASSWORD"` of the listener's JAAS text."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping

from horolog.broker.base.principal import USER, Principal
from horolog.broker.security.sasl.outcome import OTHER_AUTHORIZATION_ID, Failed, LoggedIn, Outcome, same

NAME = "PLAIN"
USER_OPTION = "user_"
_KEY = secrets.token_bytes(32)
_NOBODY = secrets.token_bytes(32)


class PlainUsers:
    """Names and passwords. Passwords are kept as digests with a key of this process: of one length, and compared in constant time."""

    __slots__ = ("_digests",)

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._digests = {name: _digest(password) for name, password in passwords.items()}

    def __repr__(self) -> str:
        return f"<PlainUsers, {len(self._digests)} of them>"

    def __len__(self) -> int:
        return len(self._digests)

    def has(self, name: str, password: str) -> bool:
        """A name without a user takes as long as a wrong password."""
        return hmac.compare_digest(_digest(password), self._digests.get(name, _NOBODY))


def _digest(password: str) -> bytes:
    return hmac.digest(_KEY, password.encode("utf-8", "surrogatepass"), hashlib.sha256)


def users_of(options: Mapping[str, str]) -> PlainUsers:
    """The users among the options of a login module."""
    return PlainUsers(
        {
            option.removeprefix(USER_OPTION): password
            for option, password in options.items()
            if option.startswith(USER_OPTION)
        }
    )


class PlainLogin:
    """One login by PLAIN; a `Mechanism`."""

    __slots__ = ("_users",)

    def __init__(self, users: PlainUsers) -> None:
        self._users = users

    def step(self, token: bytes) -> Outcome:
        try:
            text = token.decode("utf-8")
        except UnicodeDecodeError:
            return Failed("the token is not UTF-8")
        parts = text.split("\0", 3)
        if len(parts) != 3:
            return same(f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}")
        authorization_id, name, password = parts
        if not name:
            return same("Authentication failed: username not specified")
        if not password:
            return same("Authentication failed: password not specified", name)
        if not self._users.has(name, password):
            return same("Authentication failed: Invalid username or password", name)
        if authorization_id not in {"", name}:
            return same(OTHER_AUTHORIZATION_ID, name)
        return LoggedIn(Principal(USER, name))
