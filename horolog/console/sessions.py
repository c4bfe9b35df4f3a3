"""Keeps sessions, bounded in number and time, each with clients of its own if users log in with their own credentials.

Credentials are kept in memory only. A session expires, and its connections with it.
"""

import asyncio
import secrets
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from horolog.console.options import (
    LOGINS_A_MINUTE,
    LOGINS_OF_AN_ADDRESS,
    SESSION_IDLE_S,
    SESSION_LONGEST_S,
    SESSIONS_AT_MOST,
    Cluster,
    Login,
    Options,
)
from horolog.console.roles import Role

if TYPE_CHECKING:
    from horolog.base.clock import Clock
    from horolog.client.security import Security
    from horolog.client.wire.client import Client

CLIENT_ID = "horolog-console"
TOKEN_BYTES = 24
MINUTE_S = 60.0
ANY_USER = "\0"
"""No name has it: forms bring none."""


@dataclass(slots=True)
class Session:
    """One logged-in browser, or everybody if there is no login."""

    id: str
    user: str
    csrf: str = field(repr=False)
    began: float
    seen: float
    credentials: "tuple[str, str] | None" = field(default=None, repr=False)
    role: Role = Role.ADMIN
    """What it may change, if the console allows changes; with other logins than OIDC the broker decides alone."""
    clients: "dict[str, Client]" = field(default_factory=dict, repr=False)

    async def close(self) -> None:
        clients, self.clients = list(self.clients.values()), {}
        self.credentials = None
        await asyncio.gather(*(client.close() for client in clients), return_exceptions=True)


@dataclass(slots=True, eq=False)
class Attempt:
    """A login attempt; it counts as failed until `counts` is set to False."""

    began: float
    counts: bool = True


class Guesses:
    """The logins of one kind that failed within a minute, or are in progress."""

    __slots__ = ("attempts",)

    def __init__(self) -> None:
        self.attempts: deque[Attempt] = deque()

    def __repr__(self) -> str:
        return f"<Guesses: {len(self.attempts)}>"

    def count(self, now: float) -> int:
        while self.attempts and now - self.attempts[0].began > MINUTE_S:
            self.attempts.popleft()
        return len(self.attempts)

    def forget(self, attempt: Attempt) -> None:
        if attempt in self.attempts:  # else it has expired
            self.attempts.remove(attempt)


class Sessions:
    def __init__(self, options: Options, clock: "Clock") -> None:
        self.options = options
        self._clock = clock
        self._sessions: dict[str, Session] = {}
        self._guesses: dict[tuple[str, str], Guesses] = {}
        self.everybody = self._new("")
        """With a token, too, all sessions share the console's own connections."""

    def __len__(self) -> int:
        return len(self._sessions)

    def _new(self, user: str, credentials: tuple[str, str] | None = None, role: Role = Role.ADMIN) -> Session:
        now = self._clock.monotonic()
        identity, csrf = secrets.token_urlsafe(TOKEN_BYTES), secrets.token_urlsafe(TOKEN_BYTES)
        return Session(identity, user, csrf, now, now, credentials, role)

    async def find(self, identity: str) -> Session | None:
        """The session of a cookie, if it has not expired; the shared one if there is no login."""
        if self.options.login is Login.NONE:
            return self.everybody
        await self._end_old()
        found = self._sessions.get(identity)
        if found is not None:
            found.seen = self._clock.monotonic()
        return found

    async def _end_old(self) -> None:
        now = self._clock.monotonic()
        for one in list(self._sessions.values()):
            if now - one.seen > SESSION_IDLE_S or now - one.began > SESSION_LONGEST_S:
                await self.end(one)

    async def begin(self, user: str, credentials: tuple[str, str] | None = None, role: Role = Role.ADMIN) -> Session:
        """A new session; evicts the longest idle one if there are too many."""
        if len(self._sessions) >= SESSIONS_AT_MOST:
            await self.end(min(self._sessions.values(), key=lambda one: one.seen))
        session = self._new(user, credentials, role)
        self._sessions[session.id] = session
        return session

    async def end(self, session: Session) -> None:
        if self._sessions.pop(session.id, None) is not None:
            await session.close()

    async def close(self) -> None:
        for one in [*self._sessions.values(), self.everybody]:
            await one.close()
        self._sessions.clear()

    # -- logins

    @contextmanager
    def trying(self, address: str, user: str) -> Iterator["Attempt | None"]:
        """One login, counted as failed before it is tried; None after too many of this user, or of all from this address."""
        now = self._clock.monotonic()
        for key in [one for one, guesses in self._guesses.items() if not guesses.count(now)]:
            del self._guesses[key]
        bounds = {(address, user): LOGINS_A_MINUTE, (address, ANY_USER): LOGINS_OF_AN_ADDRESS}
        counted = [self._guesses.setdefault(key, Guesses()) for key in bounds]
        if any(one.count(now) >= most for one, most in zip(counted, bounds.values(), strict=True)):
            yield None
            return
        attempt = Attempt(now)
        for one in counted:
            one.attempts.append(attempt)
        try:
            yield attempt
        except BaseException:
            attempt.counts = False
            raise
        finally:
            if not attempt.counts:
                for one in counted:
                    one.forget(attempt)

    def is_token(self, given: str) -> bool:
        wanted = self.options.token
        return bool(wanted) and secrets.compare_digest(given.encode(), wanted.encode())

    # -- clients

    def client(self, session: Session, cluster: Cluster) -> "Client":
        """The session's client of a cluster: with the user's credentials, or the console's own."""
        owner = session if session.credentials is not None else self.everybody
        if cluster.name not in owner.clients:
            owner.clients[cluster.name] = self.new_client(cluster, owner.credentials)
        return owner.clients[cluster.name]

    def new_client(self, cluster: Cluster, credentials: tuple[str, str] | None = None) -> "Client":
        from horolog.client.wire.client import Client
        from horolog.client.wire.retry import RetryPolicy

        timeout_ms = self.options.timeout_ms
        return Client(
            cluster.bootstrap,
            security=self._security(cluster, credentials),
            client_id=CLIENT_ID,
            connect_timeout_ms=timeout_ms,
            request_timeout_ms=timeout_ms,
            retry=RetryPolicy(timeout_ms=timeout_ms),
            metadata_max_age_ms=60_000,
        )

    def _security(self, cluster: Cluster, credentials: tuple[str, str] | None) -> "Security | None":
        if credentials is None:
            return cluster.security
        from horolog.client.security import Security
        from horolog.client.security.settings import Sasl

        user, password = credentials
        sasl = Sasl(self.options.mechanism, user, password)
        return Security(sasl=sasl) if cluster.security is None else replace(cluster.security, sasl=sasl)
