"""Incremental fetch sessions (KIP-227): the partitions that a consumer has asked for, so that its next request names changes only.

A session keeps its partitions in the order in which they are answered, and the last answer for each. The cache is bounded by
`max.incremental.fetch.session.cache.slots`; the least recently used session may be evicted after `MIN_EVICTION_MS`. If none may
be, or if the partitions of all sessions together exceed `horolog.fetch.session.partitions.max`, the client is served without a
session.
"""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Iterable

from horolog.base.clock import Clock
from horolog.broker.handlers.fetch_watch import FetchWatch
from horolog.protocol.errors import ErrorCode

MIN_EVICTION_MS = 120_000
MAX_SESSION_EPOCH = 2**31 - 1
FULL_FETCH_EPOCH = 0
NO_SESSION_EPOCH = -1

TopicKey = str | bytes
PartitionKey = tuple[TopicKey, int]


class FetchPosition:
    """A client's request for one partition, and the last answer."""

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "last_fetched_epoch",
        "max_bytes",
        "told_high_watermark",
        "told_log_start_offset",
        "turn",
    )

    def __init__(self, fetch_offset: int, max_bytes: int, current_leader_epoch: int, last_fetched_epoch: int) -> None:
        self.fetch_offset = fetch_offset
        self.max_bytes = max_bytes
        self.current_leader_epoch = current_leader_epoch
        self.last_fetched_epoch = last_fetched_epoch
        self.told_high_watermark = -1
        self.told_log_start_offset = -1
        self.turn = 0  # its place in a watch's order of answers

    def __repr__(self) -> str:
        return f"FetchPosition(offset={self.fetch_offset}, max_bytes={self.max_bytes})"

    def move_to(self, wanted: FetchPosition) -> None:
        self.fetch_offset = wanted.fetch_offset
        self.max_bytes = wanted.max_bytes
        self.current_leader_epoch = wanted.current_leader_epoch
        self.last_fetched_epoch = wanted.last_fetched_epoch


Positions = dict[PartitionKey, FetchPosition]


class FetchSession:
    """One client's remembered fetch."""

    __slots__ = ("counted", "epoch", "id", "last_used_s", "positions", "watch")

    def __init__(self, session_id: int, positions: Positions, now_s: float) -> None:
        self.id = session_id
        self.epoch = 1
        self.positions = positions
        self.watch: FetchWatch | None = None  # from the first incremental fetch on
        self.counted = len(positions)  # when it was last looked at
        self.last_used_s = now_s

    def __repr__(self) -> str:
        return f"<FetchSession {self.id} epoch {self.epoch}, {len(self.positions)} partitions>"

    def advance(self) -> None:
        self.epoch = 1 if self.epoch == MAX_SESSION_EPOCH else self.epoch + 1

    def apply(self, changed: Positions, forgotten: Iterable[PartitionKey]) -> None:
        for key, wanted in changed.items():
            known = self.positions.setdefault(key, wanted)
            if known is not wanted:
                known.move_to(wanted)
            if self.watch is not None:
                self.watch.ask(key, known, is_new=known is wanted)
        for key in forgotten:
            self.positions.pop(key, None)
            if self.watch is not None:
                self.watch.drop(key)

    def serve_last(self, keys: Iterable[PartitionKey]) -> None:
        """Partitions that were just served go to the end, so that none starves behind a busy one."""
        for key in keys:
            position = self.positions.pop(key, None)
            if position is not None:
                self.positions[key] = position
                if self.watch is not None:
                    self.watch.put_last(position)


class FetchSessions:
    """The bounded cache of sessions."""

    def __init__(self, max_sessions: int, clock: Clock, max_partitions: int) -> None:
        self._max_sessions = max_sessions
        self._max_partitions = max_partitions
        self.partition_count = 0
        self._clock = clock
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sessions)

    def find(self, session_id: int) -> FetchSession | None:
        """A session, without marking it as used."""
        return self._sessions.get(session_id)

    def resume(self, session_id: int, epoch: int) -> FetchSession | ErrorCode:
        """The session of an incremental fetch, at the epoch the client expects."""
        session = self._sessions.get(session_id)
        if session is None:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        if session.epoch != epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH
        self.partition_count += len(session.positions) - session.counted
        session.counted = len(session.positions)
        if self.partition_count > self._max_partitions:
            self.close(session_id)
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        session.advance()
        session.last_used_s = self._clock.monotonic()
        self._sessions.move_to_end(session_id)
        return session

    def open(self, positions: Positions) -> FetchSession | None:
        """A new session for a full fetch, or None when the cache has no room."""
        now_s = self._clock.monotonic()
        if len(self._sessions) >= self._max_sessions and not self._evict_one(now_s):
            return None
        if self.partition_count + len(positions) > self._max_partitions:
            return None
        self.partition_count += len(positions)
        session_id = _random_id()
        while session_id in self._sessions:
            session_id = _random_id()
        session = FetchSession(session_id, positions, now_s)
        self._sessions[session_id] = session
        return session

    def close(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self.partition_count -= session.counted
            if session.watch is not None:
                session.watch.close()

    def _evict_one(self, now_s: float) -> bool:
        if not self._sessions:
            return False
        oldest = next(iter(self._sessions.values()))
        if (now_s - oldest.last_used_s) * 1000 < MIN_EVICTION_MS:
            return False
        self.close(oldest.id)
        return True


def _random_id() -> int:
    """Random, so that ids of an earlier run of the broker do not match by chance; they are no secret."""
    return random.randint(1, 2**31 - 1)  # noqa: S311
