"""The login of one connection, step by step: which request is allowed next, and who the peer is.

    begin -> versions sent -> mechanism chosen -> known        failed: from anywhere, and for good
                                   ^                |
                                   +-- again -------+          where logins end by themselves

A peer stays known until its login ends. It may authenticate again before, as the same principal and by the same mechanism.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from enum import Enum
from typing import Final

from horolog.broker.base.principal import USER, Principal
from horolog.broker.security.audit import Who
from horolog.broker.security.sasl.door import ENDED_SESSIONS, NO_MECHANISM, SaslDoor
from horolog.broker.security.sasl.outcome import Challenge, Failed, LoggedIn, Mechanism
from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode

log = logging.getLogger(__name__)

LEAST_BETWEEN_RENEWALS_S: Final = 1.0
FIRST_VERSION_WITH_HEADERS: Final = 1
"""Of SaslHandshake: after an older version, tokens follow without a request around them."""

MAX_SHOWN: Final = 100
"""Characters of a name that the log shows."""


class Stage(Enum):
    """How far a login is."""

    BEGIN = "begin"
    VERSIONS_TOLD = "versions told"
    CHOSEN = "mechanism chosen"
    KNOWN = "known"
    FAILED = "failed"


_MAY_COME: Final = {
    Stage.BEGIN: (ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE),
    Stage.VERSIONS_TOLD: (ApiKey.SASL_HANDSHAKE,),
    Stage.CHOSEN: (ApiKey.SASL_AUTHENTICATE,),
    Stage.KNOWN: (),
    Stage.FAILED: (),
}


@dataclass(frozen=True, slots=True)
class LoginAccepted:
    """The token for the peer, and how long the login lasts; 0: forever, or the login is not complete yet."""

    token: bytes
    lifetime_ms: int = 0


@dataclass(frozen=True, slots=True)
class LoginRefused:
    """The text that the peer gets once it has waited; an empty one: no answer."""

    told: str


class Login:
    """See the module's docstring."""

    __slots__ = (
        "_anew",
        "_began_s",
        "_door",
        "_ends_s",
        "_mechanism",
        "_name",
        "client_id",
        "headers",
        "peer_host",
        "principal",
        "stage",
        "token_id",
    )

    def __init__(self, door: SaslDoor, peer_host: str = "") -> None:
        self._door = door
        self._mechanism: Mechanism | None = None
        self._name = ""
        self._anew = False
        self._began_s: float | None = None  # the newest renewal
        self._ends_s: float | None = None
        self.peer_host = peer_host
        self.client_id: str | None = None
        self.headers = True
        self.principal: Principal | None = None
        self.token_id = ""
        """The delegation token by which the peer logged in; empty: by a credential of its own."""
        self.stage = Stage.BEGIN

    def __repr__(self) -> str:
        return f"<Login of {self.principal} at {self.peer_host}: {self.stage.value}>"

    @property
    def door(self) -> SaslDoor:
        return self._door

    @property
    def takes_raw_tokens(self) -> bool:
        return self.stage is Stage.CHOSEN and not self.headers

    @property
    def ends(self) -> bool:
        """Whether it ends by itself at some time."""
        return self._ends_s is not None

    def may_come(self, api_key: int) -> bool:
        return api_key in _MAY_COME[self.stage]

    def versions_told(self) -> None:
        self.stage = Stage.VERSIONS_TOLD

    # -- authentication

    def choose(self, mechanism: str, version: int) -> bool:
        """Begin with a mechanism; False where it is not enabled."""
        self.headers = version >= FIRST_VERSION_WITH_HEADERS
        make = self._door.mechanisms.get(mechanism)
        if make is None:
            self._fail(Failed(f"the mechanism {mechanism[:MAX_SHOWN]!r} is not enabled"), NO_MECHANISM)
            return False
        if self._anew and mechanism != self._name:
            self._mechanism = _Never(
                f"SASL mechanism '{mechanism}' requested by client is not supported for re-authentication"
                f" of mechanism '{self._name}'"
            )
        else:
            self._name = mechanism
            self._mechanism = make()
        self.stage = Stage.CHOSEN
        return True

    def prove(self, token: bytes) -> LoginAccepted | LoginRefused:
        """Take the next token of the mechanism that was chosen."""
        assert self._mechanism is not None, "no mechanism was chosen"
        outcome = self._mechanism.step(token)
        if isinstance(outcome, Challenge):
            return LoginAccepted(outcome.token)
        self._mechanism = None
        if isinstance(outcome, LoggedIn):
            if not self._anew or self.principal == outcome.principal:
                return self._succeed(outcome)
            outcome = self._other_principal(outcome.principal)
        return self._fail(outcome, self._name)

    def _other_principal(self, now: Principal) -> Failed:
        was = self.principal
        assert was is not None, "it was known"
        reason = f"Cannot change principals during re-authentication from {was.type}.{was.name}: {now.type}.{now.name}"
        return Failed(reason, now.name, reason)

    def _succeed(self, done: LoggedIn) -> LoginAccepted:
        self.principal, self.token_id = done.principal, done.token_id
        self.stage = Stage.KNOWN
        self._door.count(self._name, anew=self._anew, succeeded=True)
        by = f"delegation token {done.token_id}" if done.token_id else ""
        self._tell(str(done.principal), self._name, ErrorCode.NONE, by)
        log.debug("%s at %s on %s, by %s", done.principal, self.peer_host, self._door.listener, self._name)
        self._anew = False
        lifetimes_ms = []
        if done.ends_ms is not None:
            lifetimes_ms.append(max(done.ends_ms - self._door.clock.wall_ms(), 0))
        if self._door.max_reauth_ms.get(self._name, 0) > 0:
            lifetimes_ms.append(self._door.max_reauth_ms[self._name])
        if not lifetimes_ms:
            self._ends_s = None
            return LoginAccepted(done.token)
        self._ends_s = self._door.clock.monotonic() + min(lifetimes_ms) / 1000
        return LoginAccepted(done.token, min(lifetimes_ms))

    def _fail(self, failed: Failed, mechanism: str) -> LoginRefused:
        self.stage = Stage.FAILED
        self._door.count(mechanism, anew=self._anew, succeeded=False)
        user = f"{USER}:{failed.user}" if failed.user else None
        code = (
            ErrorCode.UNSUPPORTED_SASL_MECHANISM if mechanism == NO_MECHANISM else ErrorCode.SASL_AUTHENTICATION_FAILED
        )
        self._tell(user, mechanism, code, failed.reason)
        log.warning(
            "%s on %s failed to log in as %r with %s: %s",
            self.peer_host or "a client",
            self._door.listener,
            failed.user[:MAX_SHOWN],
            mechanism,
            failed.reason,
        )
        during = "re-authentication" if self._anew else "authentication"
        unspecific = f"Authentication failed during {during} due to invalid credentials with SASL mechanism {mechanism}"
        return LoginRefused(unspecific if failed.told is None else failed.told)

    def _tell(self, principal: str | None, mechanism: str, outcome: ErrorCode, reason: str = "") -> None:
        if self._door.audit is not None:
            who = Who(principal, self.peer_host, self._door.listener, self.client_id)
            self._door.audit.login(who, mechanism, outcome.name, renewal=self._anew, detail=reason)

    # -- once it is known

    def begins_anew(self) -> bool:
        """Whether the peer may authenticate again now; if so, it has begun to."""
        now_s = self._door.clock.monotonic()
        if not self.ends or (self._began_s is not None and now_s - self._began_s < LEAST_BETWEEN_RENEWALS_S):
            return False
        self._began_s = now_s
        self._anew = True
        self.stage = Stage.VERSIONS_TOLD
        return True

    def has_ended(self) -> bool:
        """Whether a request comes too late; if so, that is counted."""
        if self._ends_s is None or self._door.clock.monotonic() <= self._ends_s:
            return False
        self._door.metrics.counter(ENDED_SESSIONS, self._door.listener).value += 1
        return True


class _Never:
    """A `Mechanism` that always fails."""

    def __init__(self, why: str) -> None:
        self._why = why

    def step(self, token: bytes) -> Failed:  # noqa: ARG002 - whatever it says
        return Failed(self._why, told="")
