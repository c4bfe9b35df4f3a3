"""Markers in the log: bytes that a reader knows, no part in times, fences, and the same after a restart."""

import pytest

from horolog.broker.log.partition import append_marker, lookups
from horolog.broker.log.validation import RefusedSet
from horolog.protocol.errors import ErrorCode
from horolog.protocol.records.batch import read_header
from horolog.protocol.records.control import Marker
from horolog.protocol.records.entries import iter_records
from tests.support.log_model import NOW_MS, Model, small_config
from tests.support.transactional import aborted_in, batch

OLD_MS = NOW_MS - 10_000_000
LATER_MS = NOW_MS + 5_000_000


@pytest.fixture
def model():
    return Model(small_config())


def put(partition, producer_id=7, epoch=0, sequence=0):
    records = batch([b"v"], producer_id, epoch, sequence, timestamp=OLD_MS)
    partition.append(records, NOW_MS, produce_version=9)


@pytest.mark.parametrize("committed", [True, False])
def test_a_marker_ends_the_transaction_and_is_told_to_readers(model, committed):
    partition = model.partition
    put(partition)
    partition.flush()
    assert partition.last_stable_offset == 0
    append_marker(partition, 7, 0, Marker(committed, 3), LATER_MS)
    assert partition.last_stable_offset == 0  # it is not written yet
    partition.flush()
    assert partition.last_stable_offset == partition.high_watermark == 2
    assert aborted_in(partition, 0, 2) == ([] if committed else [(7, 0)])
    header = read_header(partition.read(1, 1000))
    assert (header.is_control, header.is_transactional, header.base_offset, header.producer_id) == (True, True, 1, 7)
    assert [record.value for record in iter_records(partition.read(0, 1000))] == [b"v"]


def test_the_time_of_a_marker_plays_no_part(model):
    partition = model.partition
    put(partition)
    append_marker(partition, 7, 0, Marker(True, 0), LATER_MS)
    partition.flush()
    for _ in range(2):
        assert partition.segments[-1].max_timestamp == OLD_MS
        assert lookups.largest_timestamp(partition).offset == 0
        assert lookups.first_at_or_after(partition, OLD_MS + 1) is None
        model.kill_and_open()
        partition = model.partition


def test_markers_of_the_past_are_refused(model):
    partition = model.partition
    put(partition, epoch=2)
    for epoch, coordinator_epoch, code in (
        (1, 0, ErrorCode.INVALID_PRODUCER_EPOCH),
        (2, 5, None),
        (2, 4, ErrorCode.TRANSACTION_COORDINATOR_FENCED),
        (3, 5, None),
    ):
        if code is None:
            append_marker(partition, 7, epoch, Marker(False, coordinator_epoch), NOW_MS)
        else:
            with pytest.raises(RefusedSet) as refused:
                append_marker(partition, 7, epoch, Marker(False, coordinator_epoch), NOW_MS)
            assert refused.value.code == code
    with pytest.raises(RefusedSet):
        put(partition, epoch=2, sequence=1)
    put(partition, epoch=3)
