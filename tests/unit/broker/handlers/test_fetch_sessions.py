"""Fetch sessions: epochs, changes, forgetting, order, and the bound on their number."""

import pytest

from horolog.base.clock import ManualClock
from horolog.broker.handlers import fetch_sessions
from horolog.broker.handlers.fetch_sessions import (
    MAX_SESSION_EPOCH,
    MIN_EVICTION_MS,
    FetchPosition,
    FetchSession,
    FetchSessions,
    PartitionKey,
)
from horolog.broker.handlers.fetch_watch import FetchWatch
from horolog.protocol.errors import ErrorCode


def position(offset: int = 0) -> FetchPosition:
    return FetchPosition(offset, 1024, -1, -1)


def test_epochs_must_follow_each_other() -> None:
    sessions = FetchSessions(10, ManualClock(), 100)
    session = sessions.open({("t", 0): position()})
    assert session is not None
    assert sessions.resume(session.id, 5) is ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert sessions.resume(session.id, 1) is session
    assert sessions.resume(session.id, 1) is ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert sessions.resume(session.id, 2) is session
    assert sessions.resume(session.id + 1, 1) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_session_is_looked_at_without_a_fetch() -> None:
    sessions = FetchSessions(10, ManualClock(), 100)
    session = sessions.open({("t", 0): position()})
    assert session is not None
    assert sessions.find(session.id) is session
    assert sessions.find(session.id + 1) is None
    assert session.epoch == 1


def test_the_epoch_wraps_to_one() -> None:
    session = FetchSession(7, {}, 0.0)
    session.epoch = MAX_SESSION_EPOCH
    session.advance()
    assert session.epoch == 1


def test_changes_keep_what_the_client_was_told() -> None:
    session = FetchSession(7, {("t", 0): position(), ("t", 1): position()}, 0.0)
    session.positions["t", 0].told_high_watermark = 4
    session.apply({("t", 0): position(9), ("u", 0): position(1)}, [("t", 1), ("gone", 3)])
    assert list(session.positions) == [("t", 0), ("u", 0)]
    assert session.positions["t", 0].fetch_offset == 9
    assert session.positions["t", 0].told_high_watermark == 4


def test_who_was_served_goes_last() -> None:
    session = FetchSession(7, {("t", n): position() for n in range(3)}, 0.0)
    session.serve_last([("t", 0)])
    assert list(session.positions) == [("t", 1), ("t", 2), ("t", 0)]


def test_a_full_cache_gives_up_only_old_sessions() -> None:
    clock = ManualClock()
    sessions = FetchSessions(2, clock, 100)
    first, second = sessions.open({}), sessions.open({})
    assert first is not None
    assert second is not None
    assert sessions.open({}) is None
    clock.advance(MIN_EVICTION_MS)
    assert sessions.resume(first.id, 1) is first
    assert sessions.open({}) is not None
    assert sessions.resume(second.id, 1) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert len(sessions) == 2


def test_no_slots_means_no_sessions() -> None:
    assert FetchSessions(0, ManualClock(), 100).open({}) is None


def test_the_partitions_of_all_sessions_are_bounded() -> None:
    clock = ManualClock()
    sessions = FetchSessions(10, clock, 5)
    first = sessions.open({("t", n): position() for n in range(3)})
    assert first is not None
    assert sessions.open({("t", n): position() for n in range(3)}) is None
    second = sessions.open({("t", n): position() for n in range(2)})
    assert second is not None
    first.apply({("u", 0): position()}, [])
    assert sessions.resume(first.id, 1) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND, "it grew beyond the bound"
    assert sessions.resume(second.id, 1) is second
    assert sessions.partition_count == 2
    second.apply({}, [("t", 0)])
    sessions.resume(second.id, 2)
    sessions.close(second.id)
    sessions.close(second.id)
    assert sessions.partition_count == 0


class Noting(FetchWatch):
    """Notes what it is told, and watches nothing."""

    def __init__(self) -> None:
        self.told: list[object] = []

    def ask(self, key: PartitionKey, position: FetchPosition, *, is_new: bool) -> None:
        self.told.append((key, is_new))

    def drop(self, key: PartitionKey) -> None:
        self.told.append(("dropped", key))

    def put_last(self, position: FetchPosition) -> None:
        self.told.append("put last")

    def close(self) -> None:
        self.told.append("closed")


def test_the_lookout_of_a_session_is_told_of_every_change() -> None:
    sessions = FetchSessions(10, ManualClock(), 100)
    session = sessions.open({("t", 0): position()})
    assert session is not None
    session.watch = watch = Noting()
    session.apply({("t", 0): position(9), ("t", 1): position()}, [("t", 0)])
    session.serve_last([("t", 1), ("gone", 0)])
    sessions.close(session.id)
    assert watch.told == [(("t", 0), False), (("t", 1), True), ("dropped", ("t", 0)), "put last", "closed"]


def test_an_id_that_is_taken_is_not_given_again(monkeypatch: pytest.MonkeyPatch) -> None:
    ids = iter([5, 5, 5, 6])
    monkeypatch.setattr(fetch_sessions, "_random_id", lambda: next(ids))
    sessions = FetchSessions(10, ManualClock(), 100)
    assert [repr(sessions.open({})) for _ in range(2)] == [
        "<FetchSession 5 epoch 1, 0 partitions>",
        "<FetchSession 6 epoch 1, 0 partitions>",
    ]
    assert repr(position(7)) == "FetchPosition(offset=7, max_bytes=1024)"
