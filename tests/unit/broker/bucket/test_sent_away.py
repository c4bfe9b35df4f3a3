"""A reader that comes back without a record is not sent away again, for a while."""

from horolog.broker.bucket import sent_away
from horolog.broker.bucket.sent_away import STAYS_S, SentAway
from horolog.broker.cluster.placement import Reader

READER, PLACE = Reader("a", "c", "host"), (b"t" * 16, 0)


class Now:
    def __init__(self):
        self.s = 0.0

    def __call__(self):
        return self.s


def test_a_reader_that_comes_back_with_the_same_offset_stays_for_a_while():
    now = Now()
    sent = SentAway(now)
    assert sent.send(READER, PLACE, 5)
    assert not sent.send(READER, PLACE, 5)
    now.s = STAYS_S - 1
    assert not sent.send(READER, PLACE, 6), "it is served here, wherever it goes on"
    now.s = STAYS_S
    assert sent.send(READER, PLACE, 6)
    assert "1 readers" in repr(sent)


def test_a_reader_that_has_read_records_elsewhere_may_be_sent_there_again():
    sent = SentAway(Now())
    assert sent.send(READER, PLACE, 5)
    assert sent.send(READER, PLACE, 6)
    assert sent.send(READER, (PLACE[0], 1), 6)
    assert sent.send(READER._replace(host="other"), PLACE, 6)


def test_only_so_many_readers_are_remembered(monkeypatch):
    monkeypatch.setattr(sent_away, "MOST_READERS", 2)
    sent = SentAway(Now())
    assert all(sent.send(READER, (PLACE[0], index), 5) for index in (0, 1, 2, 0))
    assert not sent.send(READER, (PLACE[0], 2), 5)
