"""Share sessions: their epochs, their number, and the connections that they belong to."""

from horolog.broker.share.sessions import CLOSE_EPOCH, LARGEST_EPOCH, ShareSessions
from horolog.protocol.errors import ErrorCode

KEY, OTHER = ("g", "ann"), ("g", "bob")
A, B, C = (b"t", 0), (b"t", 1), (b"u", 0)


def test_the_epoch_grows_with_each_request_and_begins_again_at_one():
    sessions = ShareSessions()
    session = sessions.open(KEY, [A], "wire", 10)
    assert sessions.resume(KEY, 1) is session
    assert sessions.resume(KEY, 1) == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert sessions.resume(KEY, 2) is session
    session.epoch = LARGEST_EPOCH
    assert sessions.resume(KEY, LARGEST_EPOCH) is session
    assert session.epoch == 1
    assert sessions.resume(KEY, CLOSE_EPOCH) is session
    assert sessions.resume(OTHER, 1) == ErrorCode.SHARE_SESSION_NOT_FOUND


def test_there_are_only_so_many_but_a_member_may_begin_again():
    sessions = ShareSessions()
    first = sessions.open(KEY, [A], "wire", 1)
    assert sessions.open(OTHER, [A], "wire", 1) == ErrorCode.SHARE_SESSION_LIMIT_REACHED
    second = sessions.open(KEY, [B], "wire", 1)
    assert sessions.is_open(second)
    assert not sessions.is_open(first)
    assert len(sessions) == 1


def test_partitions_come_and_go_and_take_turns():
    session = ShareSessions().open(KEY, [A, B], "wire", 1)
    session.apply([C], [A])
    assert list(session.places) == [B, C]
    session.serve_last([B, A])
    assert list(session.places) == [C, B]


def test_a_connection_has_its_sessions_until_they_close():
    sessions = ShareSessions()
    sessions.open(KEY, [A], "wire", 9)
    sessions.open(OTHER, [A], "wire", 9)
    assert sessions.of_connection("wire") == [KEY, OTHER]
    assert sessions.close(KEY).key == KEY
    assert sessions.of_connection("wire") == [OTHER]
    sessions.close(OTHER)
    assert sessions.of_connection("wire") == []
    assert sessions.close(OTHER) is None
    assert "0 of 0" in repr(sessions)
