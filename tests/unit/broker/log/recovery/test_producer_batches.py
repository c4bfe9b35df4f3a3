"""What stored batches say about their producers."""

import pytest

from horolog.broker.log.integrity import Batch, scan
from horolog.broker.log.recovery.producer_batches import last_sequence, producer_batch
from horolog.protocol.records.batch import encode_batch
from horolog.protocol.records.control import LeaderChange, Marker, encode_leader_change, encode_marker
from horolog.protocol.records.head import CONTROL_BIT, TRANSACTIONAL_BIT
from horolog.protocol.records.record import Record

CONTROL = CONTROL_BIT | TRANSACTIONAL_BIT


def scanned(data):
    (found,) = scan(lambda size, at: data[at : at + size], len(data), first_offset=0, end_offset=1 << 31)
    assert isinstance(found, Batch)
    return found


def stored(**more):
    records = [Record(4 + n, 100 + n, 0, None, b"v") for n in range(3)]
    return scanned(bytes(encode_batch(records, **more)))


def test_a_batch_without_a_producer_says_nothing():
    assert producer_batch(stored()) is None


def test_a_data_batch_tells_its_sequences():
    found = producer_batch(stored(producer_id=7, producer_epoch=2, base_sequence=10, attributes=TRANSACTIONAL_BIT))
    assert (found.producer_id, found.producer_epoch) == (7, 2)
    assert (found.base_sequence, found.last_sequence) == (10, 12)
    assert (found.first_offset, found.last_offset, found.max_timestamp) == (4, 6, 102)
    assert found.transactional
    assert found.marker is None


@pytest.mark.parametrize("committed", [True, False])
def test_a_marker_tells_how_the_transaction_ended(committed):
    marker = Marker(committed=committed, coordinator_epoch=3)
    data = bytes(encode_marker(marker, 9, 100, producer_id=7, producer_epoch=2, leader_epoch=0))
    found = producer_batch(scanned(data))
    assert found.marker == marker
    assert (found.base_sequence, found.last_sequence, found.last_offset) == (-1, -1, 9)


def test_a_new_leader_says_nothing_about_producers():
    assert producer_batch(scanned(bytes(encode_leader_change(LeaderChange(1, (), ()), 9, 100, leader_epoch=1)))) is None


@pytest.mark.parametrize(
    ("base", "delta", "last"), [(0, 0, 0), (5, 4, 9), (2**31 - 1, 0, 2**31 - 1), (2**31 - 1, 1, 0), (-1, 0, -1)]
)
def test_sequences_begin_again_behind_the_largest(base, delta, last):
    assert last_sequence(base, delta) == last


def test_a_control_batch_that_says_nothing_we_know_is_passed_over():
    data = encode_batch([Record(4, 100, 0, b"\0\0\0\x09", b"v")], producer_id=7, producer_epoch=0, attributes=CONTROL)
    assert producer_batch(scanned(bytes(data))) is None


def test_a_marker_that_cannot_be_read_is_none():
    data = encode_batch([Record(4, 100, 0, b"", b"")], producer_id=7, producer_epoch=0, attributes=CONTROL)
    assert producer_batch(scanned(bytes(data))) is None
