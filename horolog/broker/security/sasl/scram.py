"""SASL/SCRAM (RFC 5802 and 7677) in the form that Kafka speaks: no channel binding, names and nonces in ASCII.

The peer proves that it knows the password without sending it. A name without a user is treated like a wrong password: it gets
a salt that is always the same for it, and is refused at the end. With the extension `tokenauth=true` the name is the id of a delegation
token. Every id takes the same steps: a salt of its own, and at the end the keys of the HMAC that a token of this id would have.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import re
import secrets
from collections.abc import Callable
from typing import Final, Protocol

from horolog.broker.base.principal import USER, Principal
from horolog.broker.security.sasl import scram_keys
from horolog.broker.security.sasl.outcome import OTHER_AUTHORIZATION_ID, Challenge, Failed, LoggedIn, Outcome, same
from horolog.broker.security.sasl.scram_keys import USUAL, Form, ScramKeys, ScramKind

_SAFE_NAME: Final = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_PRINTABLE: Final = r"[\x21-\x2b\x2d-\x7e]+"
_EXTENSIONS: Final = r"(?:,[A-Za-z]+=[\x01-\x2b\x2d-\x7f]+)*"
_BASE64: Final = r"(?:[a-zA-Z0-9/+]{4})*(?:[a-zA-Z0-9/+]{3}=|[a-zA-Z0-9/+]{2}==)?"
_FIRST: Final = re.compile(
    rf"(?P<gs2>n,(?:a=(?P<authzid>{_SAFE_NAME}))?,)(?P<bare>n=(?P<name>{_SAFE_NAME}),r=(?P<nonce>{_PRINTABLE})(?P<extensions>{_EXTENSIONS}))"
)
_FINAL: Final = re.compile(
    rf"(?P<unproved>c=(?P<binding>{_BASE64}),r=(?P<nonce>{_PRINTABLE}){_EXTENSIONS}),p=(?P<proof>{_BASE64})"
)
_NO_BINDING: Final = "n,,"
"""Kafka's own client binds to this even where it names an authorization id."""

MAX_NONCE_LENGTH: Final = 1024
NONCE_BYTES: Final = 24

TOKEN_AUTH: Final = "tokenauth"  # noqa: S105 - the extension

KeysOf = Callable[[str], ScramKeys | None]
"""The credential of a user; None where there is no such user."""


class IssuedToken(Protocol):
    """A delegation token, as a login sees it."""

    @property
    def id(self) -> str: ...
    @property
    def owner(self) -> Principal: ...
    @property
    def expires_ms(self) -> int: ...


class TokenLogins(Protocol):
    """The delegation tokens by which logins are allowed."""

    def password_of(self, token_id: str) -> str:
        """The password that a token of this id has, or would have."""
        ...

    def valid(self, token_id: str) -> IssuedToken | None:
        """The token of this id, if it lets its holder in now."""
        ...


def name_of(escaped: str) -> str:
    return escaped.replace("=2C", ",").replace("=3D", "=")


class Scram:
    """One login by SCRAM; a `Mechanism`."""

    __slots__ = (
        "_bare",
        "_by_token",
        "_form",
        "_gs2",
        "_is_known",
        "_keys",
        "_keys_of",
        "_kind",
        "_name",
        "_nonce",
        "_secret",
        "_server_first",
        "_tokens",
    )

    def __init__(
        self, kind: ScramKind, keys_of: KeysOf, secret: bytes, form: Form = USUAL, tokens: TokenLogins | None = None
    ) -> None:
        """Salts for names without a user are derived from `secret`, the cluster's, in the form that most users have.

        Without `tokens` there are no logins by token.
        """
        self._kind = kind
        self._form = form
        self._keys_of = keys_of
        self._secret = secret
        self._keys = scram_keys.of_nobody(kind, "", secret)
        self._is_known = False
        self._tokens = tokens
        self._by_token = False
        self._name = ""
        self._gs2 = self._bare = self._nonce = self._server_first = ""

    def step(self, token: bytes) -> Outcome:
        try:
            text = token.decode("ascii")
        except UnicodeDecodeError:
            return Failed("the message is not ASCII", self._name)
        return self._last(text) if self._server_first else self._first(text)

    def _first(self, text: str) -> Outcome:
        said = _FIRST.fullmatch(text)
        if said is None:
            return Failed("the first message has not the form of SCRAM without channel binding")
        self._name = name = name_of(said["name"])
        self._by_token = _asks_for_token(said["extensions"])
        if self._by_token and self._tokens is None:
            return Failed("delegation tokens are switched off", name)
        if len(said["nonce"]) > MAX_NONCE_LENGTH:
            return Failed("the nonce is too long", name)
        if name_of(said["authzid"] or "") not in {"", name}:
            return same(OTHER_AUTHORIZATION_ID, name)
        known = None if self._by_token else self._keys_of(name)
        form = USUAL if self._by_token else self._form
        nobody = scram_keys.of_nobody(self._kind, name, self._secret, form)
        self._is_known = known is not None
        self._keys = shown = nobody if known is None else known
        self._gs2, self._bare = said["gs2"], said["bare"]
        self._nonce = said["nonce"] + secrets.token_urlsafe(NONCE_BYTES)
        salt = base64.b64encode(shown.salt).decode("ascii")
        self._server_first = f"r={self._nonce},s={salt},i={shown.iterations}"
        return Challenge(self._server_first.encode("ascii"))

    def _last(self, text: str) -> Outcome:
        name = self._name
        said = _FINAL.fullmatch(text)
        if said is None:
            return Failed("the final message has not the form of SCRAM", name)
        if not hmac.compare_digest(said["nonce"], self._nonce):
            return Failed("the nonce is not the one of this login", name)
        if _decoded(said["binding"]) not in {self._gs2.encode("ascii"), _NO_BINDING.encode("ascii")}:
            return Failed("the channel binding is not the one of the first message", name)
        signed = f"{self._bare},{self._server_first},{said['unproved']}".encode("ascii")
        if self._by_token and self._tokens is not None:
            return self._last_of_token(self._tokens, signed, _decoded(said["proof"]))
        keys = self._keys
        if not (self._is_proved(keys, signed, _decoded(said["proof"])) and self._is_known):
            return Failed("wrong password" if self._is_known else "no such user", name)
        signature = base64.b64encode(self._kind.hmac(keys.server_key, signed))
        return LoggedIn(Principal(USER, name), b"v=" + signature)

    def _last_of_token(self, tokens: TokenLogins, signed: bytes, proof: bytes) -> Outcome:
        """The keys are made only now, and for each login: a peer learns nothing from the time that this takes."""
        name, shown = self._name, self._keys
        keys = scram_keys.of_password(self._kind, tokens.password_of(name), shown.iterations, shown.salt)
        is_proved, token = self._is_proved(keys, signed, proof), tokens.valid(name)
        if not is_proved or token is None:
            reason = "wrong HMAC of the delegation token" if token is not None else "no such delegation token"
            return Failed(reason, name)
        signature = base64.b64encode(self._kind.hmac(keys.server_key, signed))
        return LoggedIn(token.owner, b"v=" + signature, token.expires_ms, token.id)

    def _is_proved(self, keys: ScramKeys, signed: bytes, proof: bytes) -> bool:
        signature = self._kind.hmac(keys.stored_key, signed)
        if len(proof) != len(signature):
            proof = bytes(len(signature))
        client_key = bytes(one ^ other for one, other in zip(proof, signature, strict=True))
        return hmac.compare_digest(self._kind.digest(client_key), keys.stored_key)


def _asks_for_token(extensions: str) -> bool:
    given = dict(one.partition("=")[::2] for one in extensions.split(","))
    return given.get(TOKEN_AUTH, "").lower() == "true"


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        return b""
