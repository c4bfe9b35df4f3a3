"""Plain values of share partitions."""

from horolog.broker.share.terms import Acquired


def test_acquired_records_have_a_size():
    assert Acquired(5, 9, 1).size == 5
