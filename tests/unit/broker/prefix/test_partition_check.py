"""Offsets that no object has."""

from horolog.broker.bucket.seams import Stretch
from horolog.broker.prefix.findings import missing
from horolog.broker.prefix.partition_check import check_partition, gaps
from horolog.broker.prefix.wal_check import Extent
from tests.support.prefix_objects import ENDED, FIRST, LIVES

LINEAGE = (Stretch(0, ENDED, 4), Stretch(1, LIVES))


def of(ended, lives):
    return {ENDED: {(FIRST, 0): [Extent(*one) for one in ended]}, LIVES: {(FIRST, 1): [Extent(*one) for one in lives]}}


def test_nothing_is_missing():
    assert list(gaps(FIRST, LINEAGE, of([(0, 4)], [(4, 6)]), 0)) == []
    assert list(gaps(FIRST, LINEAGE, {}, 0)) == []


def test_gaps_between_and_before():
    assert list(gaps(FIRST, LINEAGE, of([(1, 3)], [(4, 6), (8, 9)]), 0)) == [(0, 1), (3, 4), (6, 8)]


def test_before_the_start_nothing_has_to_be_there():
    assert list(gaps(FIRST, LINEAGE, of([(1, 3)], [(4, 6)]), 2)) == [(3, 4)]
    assert list(gaps(FIRST, LINEAGE, of([(1, 3)], [(4, 6)]), 5)) == []


def test_what_was_shipped_twice_is_no_gap():
    assert list(gaps(FIRST, LINEAGE, of([(0, 3), (1, 2)], [(3, 6)]), 0)) == []


def test_a_gap_as_a_finding():
    assert list(check_partition("t-0", iter([Extent(3, 5)]))) == [missing("t-0", "offsets 3 to 4 are in no object")]
