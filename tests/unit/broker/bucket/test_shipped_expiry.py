"""What has expired stays until the start has moved behind it."""

import pytest

from horolog.broker.log.partition import log_start
from tests.support.log_model import NOW_MS, small_config
from tests.support.shipping import append, new_partition

LATER_MS = NOW_MS + 1_000_000


@pytest.fixture
def partition():
    partition = new_partition()
    partition.configure(small_config(retention_ms=1000, delete=True))
    append(partition, *range(30))
    partition.shipped(25)
    assert len(partition.segments) > 2
    return partition


def bases(partition):
    return [one.base_offset for one in partition.segments]


def test_nothing_expires_that_is_not_led(partition):
    before = bases(partition)
    assert log_start.apply_retention(partition, LATER_MS) == []
    assert (bases(partition), partition.log_start_offset) == (before, 0)


def test_the_start_is_asked_for_and_segments_go_once_it_has_moved(partition):
    asked, before = [], bases(partition)
    partition.move_start_by(asked.append)
    assert log_start.apply_retention(partition, LATER_MS) == []
    last_shipped = max(base for base in before if base <= partition.high_watermark)
    assert (bases(partition), asked) == (before, [last_shipped])
    log_start.move(partition, last_shipped)
    assert log_start.apply_retention(partition, LATER_MS) != []
    assert bases(partition)[0] == last_shipped
    assert asked == [last_shipped]


def test_all_that_is_shipped_may_expire(partition):
    asked = []
    partition.shipped(30)
    partition.move_start_by(asked.append)
    log_start.apply_retention(partition, LATER_MS)
    assert asked == [30]
    log_start.move(partition, 30)
    log_start.apply_retention(partition, LATER_MS)
    assert (bases(partition), partition.log_end_offset) == ([30], 30)
