"""What a step of a SASL mechanism can give."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from horolog.broker.base.principal import Principal


@dataclass(frozen=True, slots=True)
class Challenge:
    """The peer has to answer this."""

    token: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class LoggedIn:
    """The peer is known. Its credentials may expire at a time of the wall clock."""

    principal: Principal
    token: bytes = field(default=b"", repr=False)
    ends_ms: int | None = None
    token_id: str = ""
    """The delegation token by which the peer logged in."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The peer is refused. The reason is for the log, and holds no secret. The peer gets the text `told`: None stands for an unspecific
    text, and an empty one closes the connection without an answer.
    """

    reason: str
    user: str = ""
    told: str | None = None


Outcome = Challenge | LoggedIn | Failed


class Mechanism(Protocol):
    """One authentication of one peer. After Done or Failed there is no further step."""

    def step(self, token: bytes) -> Outcome: ...


def same(reason: str, user: str = "") -> Failed:
    """A refusal whose reason the peer may hear."""
    return Failed(reason, user, reason)


OTHER_AUTHORIZATION_ID = "Authentication failed: Client requested an authorization id that is different from username"
