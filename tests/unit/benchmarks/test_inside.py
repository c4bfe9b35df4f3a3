"""Whole requests without a socket: every case answers, and answers without an error."""

import pytest

from benchmarks import frames, inside


@pytest.fixture
def at():
    with inside.inside() as made:
        yield made


@pytest.mark.parametrize("case", ["small", "small-16", "old"])
def test_every_request_of_a_case_is_answered(at, case):
    _, requests, prepare = inside.CASES[case]
    step = prepare(at)
    before = at.peer.answers
    step()
    step()
    assert at.peer.answers - before == 2 * requests
    error_at = frames.produce_error_at("produced")
    assert bytes(at.peer.last)[error_at : error_at + 2] == b"\0\0"


def test_an_answer_that_does_not_come_is_told(at):
    frame = frames.produce(3, at.topic("quiet"), frames.batch([b"v"], 1), acks=0)
    with pytest.raises(ConnectionError, match="0 answers instead of 1"):
        at.send(frame, 1)


@pytest.mark.parametrize("case", ["session-idle", "session-woken"])
def test_a_session_is_answered_when_a_record_comes_or_its_time_is_up(at, case, monkeypatch):
    monkeypatch.setattr(inside, "SESSION_PARTITIONS", 3)
    step = inside.CASES[case][2](at)
    step()
    step()
    monkeypatch.setattr(inside.Session, "wait", lambda *_, **__: None)
    if case == "session-woken":
        step()  # which waits from before
    with pytest.raises(ConnectionError, match="a session was not answered"):
        step()
