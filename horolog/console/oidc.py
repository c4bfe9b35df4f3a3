"""Logins with an OpenID Connect provider (authorization code with PKCE): addresses, open logins, and the checks of a token; no I/O.

A login begins in one browser and must end there: its cookie names it, so a link with the code of another person's login leads
nowhere. The verifier stays here, so a code is of no use to others, and a token counts only with the login's nonce.
"""

import hashlib
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

from horolog.console.roles import BY_WORD, Role, role_of

OPEN_AT_MOST: Final = 256
LONGEST_S: Final = 600.0
"""How long a user has time at the provider."""
RANDOM_BYTES: Final = 32
NAME_CLAIMS: Final = ("preferred_username", "email", "sub")
LONGEST_NAME: Final = 255


class LoginFault(Exception):
    """A login that cannot go on: a sentence for people, and the status of the page."""

    def __init__(self, sentence: str, status: int = 403) -> None:
        super().__init__(sentence)
        self.status = status


@dataclass(frozen=True, slots=True)
class Oidc:
    """The provider, this console as its client, and the roles of its users."""

    issuer: str
    client_id: str
    client_secret: str = field(default="", repr=False)
    """Empty: a public client, which PKCE alone protects."""
    claim: str = "groups"
    roles: Mapping[str, Role] = field(default_factory=lambda: dict(BY_WORD))
    """The role that each value of the claim gives."""
    scope: str = "openid profile email"
    public_url: str = ""
    """The console's address in browsers; empty: as they ask for it."""


class Endpoints(NamedTuple):
    """The addresses of a provider, from its discovery document."""

    issuer: str
    authorization: str
    token: str
    keys: str


@dataclass(frozen=True, slots=True)
class OpenLogin:
    """A login whose user is at the provider."""

    state: str
    nonce: str
    verifier: str = field(repr=False)
    to: str
    """The page to show afterwards."""
    redirect: str
    began: float


class OpenLogins:
    """Those of all browsers, bounded in number and time."""

    def __init__(self) -> None:
        self._open: dict[str, OpenLogin] = {}

    def __repr__(self) -> str:
        return f"<OpenLogins: {len(self._open)}>"

    def begin(self, to: str, redirect: str, now: float) -> OpenLogin:
        """A new login; forgets the oldest if there are too many."""
        self._forget_old(now)
        while len(self._open) >= OPEN_AT_MOST:
            self._open.pop(next(iter(self._open)))
        state, nonce, verifier = (secrets.token_urlsafe(RANDOM_BYTES) for _ in range(3))
        made = OpenLogin(state, nonce, verifier, to, redirect, now)
        self._open[made.state] = made
        return made

    def take(self, state: str, cookie: str, now: float) -> OpenLogin:
        """The login of this state, which ends here; raises LoginFault if this browser has not begun it."""
        self._forget_old(now)
        if not state or not secrets.compare_digest(state.encode(), cookie.encode()) or state not in self._open:
            raise LoginFault("this login is too old, or another browser began it; log in again")
        return self._open.pop(state)

    def _forget_old(self, now: float) -> None:
        for one in [one for one in self._open.values() if now - one.began > LONGEST_S]:
            del self._open[one.state]


def authorization_url(oidc: Oidc, endpoints: Endpoints, login: OpenLogin) -> str:
    """The address at the provider where the user logs in."""
    digest = hashlib.sha256(login.verifier.encode()).digest()
    words = {
        "response_type": "code",
        "client_id": oidc.client_id,
        "redirect_uri": login.redirect,
        "scope": oidc.scope,
        "state": login.state,
        "nonce": login.nonce,
        "code_challenge": urlsafe_b64encode(digest).rstrip(b"=").decode(),
        "code_challenge_method": "S256",
    }
    separator = "&" if "?" in endpoints.authorization else "?"
    return f"{endpoints.authorization}{separator}{urlencode(words)}"


def token_request(oidc: Oidc, login: OpenLogin, code: str) -> dict[str, str]:
    """The form that exchanges a code for tokens."""
    return {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": login.redirect,
        "client_id": oidc.client_id,
        "code_verifier": login.verifier,
    }


def endpoints_of(document: Any, issuer: str) -> Endpoints:
    """Raises ValueError for another document, or that of another provider."""
    names = ("issuer", "authorization_endpoint", "token_endpoint", "jwks_uri")
    try:
        found = Endpoints(*(str(document[name]) for name in names))
    except (KeyError, TypeError) as error:
        raise ValueError("it is not a discovery document") from error
    if found.issuer.rstrip("/") != issuer.rstrip("/"):
        raise ValueError(f"it is the document of another issuer, {found.issuer}")
    wrong = [url for url in found[1:] if not is_safe_url(url)]
    if wrong:
        raise ValueError(f"{wrong[0]} is neither https nor on this machine")
    return found


def is_safe_url(url: str) -> bool:
    """Whether a secret that is sent there stays one: https, or http on this machine."""
    from urllib.parse import urlsplit

    from horolog.base.hosts import is_loopback

    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return bool(parts.hostname) and (
        parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or ""))
    )


def user_of(claims: Mapping[str, Any], oidc: Oidc, login: OpenLogin) -> tuple[str, Role]:
    """The name and the role of a user whose token was verified; raises LoginFault."""
    nonce = claims.get("nonce")
    if not isinstance(nonce, str) or not secrets.compare_digest(nonce.encode(), login.nonce.encode()):
        raise LoginFault("the identity provider answered another login; log in again")
    audience = claims.get("aud")
    if isinstance(audience, list) and len(audience) > 1 and claims.get("azp") != oidc.client_id:
        raise LoginFault("the identity provider's token is for another application")
    name = next((text for one in NAME_CLAIMS if isinstance(text := claims.get(one), str) and text.strip()), "")
    if not name or not name.isprintable():
        raise LoginFault("the identity provider's token names no user")
    role = role_of(claims, oidc.claim, oidc.roles)
    if role is None:
        raise LoginFault(
            f"{name[:LONGEST_NAME]} has no role in this console: no value of the claim {oidc.claim} gives one"
        )
    return name.strip()[:LONGEST_NAME], role
