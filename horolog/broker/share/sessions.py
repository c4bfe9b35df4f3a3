"""Share sessions: the partitions that a member of a share group reads, so that a request need only say what has changed.

A session belongs to the connection that opened it: when that ends, the session ends, and what its member has acquired is released. Its
epoch is 0 for the request that opens it and grows by one with each request; -1 closes it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from horolog.protocol.errors import ErrorCode

OPEN_EPOCH: Final = 0
CLOSE_EPOCH: Final = -1
LARGEST_EPOCH: Final = 2**31 - 1

SessionKey = tuple[str, str]
"""Group and member."""
Place = tuple[bytes, int]
"""Topic id and partition."""


class ShareSession:
    """One member's session; `epoch` is that of its next request. Partitions that were served go to the end."""

    __slots__ = ("connection", "epoch", "key", "places")

    def __init__(self, key: SessionKey, places: Iterable[Place], connection: object) -> None:
        self.key = key
        self.places = dict.fromkeys(places)
        self.connection = connection
        self.epoch = OPEN_EPOCH + 1

    def __repr__(self) -> str:
        return f"<ShareSession of {self.key} epoch {self.epoch}, {len(self.places)} partitions>"

    def apply(self, added: Iterable[Place], forgotten: Iterable[Place]) -> None:
        self.places |= dict.fromkeys(added)
        for place in forgotten:
            self.places.pop(place, None)

    def serve_last(self, places: Iterable[Place]) -> None:
        for place in places:
            if place in self.places:
                del self.places[place]
                self.places[place] = None


class ShareSessions:
    """All sessions of a broker, up to a number."""

    def __init__(self) -> None:
        self._sessions: dict[SessionKey, ShareSession] = {}
        self._by_connection: dict[object, dict[SessionKey, None]] = {}

    def __repr__(self) -> str:
        return f"<ShareSessions: {len(self._sessions)} of {len(self._by_connection)} connections>"

    def __len__(self) -> int:
        return len(self._sessions)

    def is_open(self, session: ShareSession) -> bool:
        return self._sessions.get(session.key) is session

    def has(self, group: str) -> bool:
        """Whether a member of the group has a session here."""
        return any(of == group for of, _ in self._sessions)

    def open(self, key: SessionKey, places: Iterable[Place], connection: object, most: int) -> ShareSession | ErrorCode:
        """A new session, in place of the one that the member may have."""
        if key not in self._sessions and len(self._sessions) >= most:
            return ErrorCode.SHARE_SESSION_LIMIT_REACHED
        self.close(key)
        session = self._sessions[key] = ShareSession(key, places, connection)
        self._by_connection.setdefault(connection, {})[key] = None
        return session

    def resume(self, key: SessionKey, epoch: int) -> ShareSession | ErrorCode:
        """The session of a request that comes at this epoch; `CLOSE_EPOCH` fits any."""
        session = self._sessions.get(key)
        if session is None:
            return ErrorCode.SHARE_SESSION_NOT_FOUND
        if epoch == CLOSE_EPOCH:
            return session
        if session.epoch != epoch:
            return ErrorCode.INVALID_SHARE_SESSION_EPOCH
        session.epoch = 1 if epoch == LARGEST_EPOCH else epoch + 1
        return session

    def close(self, key: SessionKey) -> ShareSession | None:
        session = self._sessions.pop(key, None)
        if session is not None:
            keys = self._by_connection[session.connection]
            del keys[key]
            if not keys:
                del self._by_connection[session.connection]
        return session

    def of_connection(self, connection: object) -> list[SessionKey]:
        return list(self._by_connection.get(connection, ()))
