"""What retention would delete within the hour, told before it is deleted."""

import pytest

from horolog.broker.adoption.forecast import SOON_MS, Expiring, expiring
from horolog.broker.log.partition import log_start
from tests.support.log_model import NOW_MS, Model, send, small_config

HOUR_MS = 3_600_000


def filled(batches=2, **config):
    """Segments of one batch of two records each; the newest stays active."""
    model = Model(small_config(segment_bytes=100, **config))
    for number in range(batches):
        send(model, 2 * number)
    return model.partition


def test_nothing_is_said_where_nothing_expires():
    assert expiring([filled(), filled(retention_ms=2 * HOUR_MS)], NOW_MS) == []


@pytest.mark.parametrize(("early_ms", "told"), [(0, 1), (-2, 0)])
def test_it_looks_an_hour_ahead(early_ms, told):
    assert len(expiring([filled(retention_ms=SOON_MS - 1)], NOW_MS + early_ms)) == told


def test_the_amount_is_what_retention_then_deletes():
    partition = filled(3, retention_ms=1000)
    sizes = {one.base_offset: one.size_bytes for one in partition.segments}
    (one,) = expiring([partition], NOW_MS)
    gone = partition.expiry.decide(partition, NOW_MS + SOON_MS).expired
    assert one == Expiring(
        "t",
        0,
        segments=len(gone),
        size_bytes=sum(sizes[found.base_offset] for found in gone),
        offsets=6,
        newest_ms=NOW_MS,
        causes=("time",),
    )


def test_each_cause_is_named_once():
    (one,) = expiring([filled(4, retention_bytes=1)], NOW_MS)
    assert one.causes == ("size",)
    assert one.segments > 1


def test_offsets_that_were_deleted_before_are_not_counted_again():
    partition = filled(3, retention_ms=1000)
    log_start.delete_records_before(partition, 3)
    (one,) = expiring([partition], NOW_MS)
    assert one.offsets == 3


def test_a_compacted_topic_loses_only_what_was_deleted_by_its_owner():
    partition = filled(3, delete=False, compact=True, retention_ms=1000)
    assert expiring([partition], NOW_MS) == []
    log_start.delete_records_before(partition, 4)
    (one,) = expiring([partition], NOW_MS)
    assert one.causes == ("log start offset",)


def test_a_partition_that_is_offline_is_not_spoken_of():
    partition = filled(retention_ms=1000)
    partition.condition.go_offline("bad sector")
    assert expiring([partition], NOW_MS) == []
