"""Control batches: written and read back, and against the bytes that brokers write."""

import pytest

from horolog.protocol.errors import DecodeError
from horolog.protocol.records import batch, control


@pytest.mark.parametrize("committed", [True, False])
def test_markers(committed):
    marker = control.Marker(committed, 7)
    data = control.encode_marker(marker, 42, 1234, producer_id=9, producer_epoch=3, leader_epoch=1)
    header = batch.read_header(data)
    assert header.is_control
    assert header.is_transactional
    assert (header.producer_id, header.producer_epoch, header.base_sequence, header.leader_epoch) == (9, 3, -1, 1)
    (record,) = batch.iter_batch(data)
    assert (record.offset, record.timestamp) == (42, 1234)
    assert record.key == bytes([0, 0, 0, committed])
    assert record.value == b"\x00\x00\x00\x00\x00\x07"
    assert control.decode_marker(record.key, record.value) == marker


def test_leader_changes():
    change = control.LeaderChange(3, (1, 2, 3), (3, 1))
    data = control.encode_leader_change(change, 0, 5, leader_epoch=8)
    header = batch.read_header(data)
    assert header.is_control
    assert not header.is_transactional
    (record,) = batch.iter_batch(data)
    assert control.control_type(record.key) == control.ControlType.LEADER_CHANGE
    assert control.decode_leader_change(record.key, record.value) == change
    voters = b"\x00\x00\x00\x01\x00" + b"\x00\x00\x00\x02\x00" + b"\x00\x00\x00\x03\x00"
    assert record.value == b"\x00\x00\x00\x00\x00\x03\x04" + voters + b"\x03" + voters[10:] + voters[:5] + b"\x00"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"\x00" * 6),
        (b"\x00\x00", b"\x00" * 6),
        (b"\x00\x00\x00\x02", b"\x00" * 6),
        (b"\x00\x00\x00\x01", None),
        (b"\x00\x00\x00\x01", b"\x00" * 5),
    ],
)
def test_what_is_no_marker(key, value):
    with pytest.raises(DecodeError):
        control.decode_marker(key, value)


@pytest.mark.parametrize(
    "value",
    [None, b"\x00", b"\x00\x01\x00\x00\x00\x01\x01\x01\x00", b"\x00\x00\x00\x00\x00\x01\xff\xff\xff\x0f", b"\x00" * 6],
)
def test_what_is_no_leader_change(value):
    with pytest.raises(DecodeError):
        control.decode_leader_change(b"\x00\x00\x00\x02", value)
