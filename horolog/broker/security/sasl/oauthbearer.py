"""SASL/OAUTHBEARER (RFC 7628): a signed token says who the peer is, and until when.

The first message has the token; a token that is refused is answered with an error as JSON, and the peer's next message ends the login.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from horolog.broker.base.principal import USER, Principal
from horolog.broker.security.sasl.outcome import Challenge, Failed, LoggedIn, Outcome, same

NAME: Final = "OAUTHBEARER"
_SAFE_NAME: Final = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_VALUE: Final = r"[\x21-\x7e \t\r\n]+"
_FIRST: Final = re.compile(rf"n,(?:a=(?P<authzid>{_SAFE_NAME}))?,\x01(?P<pairs>(?:[A-Za-z]+={_VALUE}\x01)*)\x01")
_AUTH: Final = re.compile(r"(?P<scheme>\w+) +(?P<token>[-_~+/.a-zA-Z0-9]+=*)", re.ASCII)
_FIRST_MESSAGE: Final = "Invalid OAUTHBEARER client first message"


class TokenRefused(Exception):
    """A token is refused; the message is for the log, and shows only names of it."""

    def __init__(self, reason: str, subject: str = "") -> None:
        super().__init__(reason)
        self.subject = subject


@dataclass(frozen=True, slots=True)
class Token:
    """What a token with a trusted signature says."""

    subject: str
    ends_ms: int
    scopes: frozenset[str] = frozenset()


ReadToken = Callable[[str], Token]
"""Raises TokenRefused."""


class OAuthBearer:
    """One login by OAUTHBEARER; a `Mechanism`."""

    __slots__ = ("_read", "_refusal")

    def __init__(self, read: ReadToken) -> None:
        self._read = read
        self._refusal: Failed | None = None

    def step(self, token: bytes) -> Outcome:
        if self._refusal is not None:
            return self._refusal  # whatever the peer answers to the refusal
        said = _FIRST.fullmatch(token.decode("latin-1"))
        if said is None:
            return same(_FIRST_MESSAGE)
        pairs = dict(pair.split("=", 1) for pair in said["pairs"].split("\x01") if pair)
        if "auth" not in pairs:
            return same(f"{_FIRST_MESSAGE}: 'auth' not specified")
        auth = _AUTH.fullmatch(pairs["auth"])
        if auth is None:
            return same(f"{_FIRST_MESSAGE}: invalid 'auth' format")
        if auth["scheme"].lower() != "bearer":
            return same("Invalid scheme in OAUTHBEARER client first message: not bearer")
        authorization_id = (said["authzid"] or "").replace("=2C", ",").replace("=3D", "=")
        return self._decide(auth["token"], authorization_id)

    def _decide(self, text: str, authorization_id: str) -> Outcome:
        try:
            found = self._read(text)
        except TokenRefused as refused:
            answer = json.dumps({"status": "invalid_token"}, separators=(",", ":"))
            self._refusal = Failed(str(refused), refused.subject, answer)
            return Challenge(answer.encode("ascii"))
        if authorization_id not in {"", found.subject}:
            return same(
                f"Authentication failed: Client requested an authorization id ({authorization_id})"
                f" that is different from the token's principal name ({found.subject})",
                found.subject,
            )
        return LoggedIn(Principal(USER, found.subject), ends_ms=found.ends_ms)
