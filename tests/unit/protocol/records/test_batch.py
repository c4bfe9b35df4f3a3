"""Batches: everything written is read back, and what cannot be is told so."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horolog.protocol.errors import DecodeError
from horolog.protocol.records import batch
from horolog.protocol.records.compression import Codec
from horolog.protocol.records.record import Record
from tests.support import raw_records as raw

RECORDS = [
    Record(7, 1000, 0, b"k", b"v", ((b"h", b"1"), (b"", None))),
    Record(8, 900, 0, None, None),
    Record(9, 5_000_000_000_000, 0, b"", b"x" * 300),
]


@pytest.mark.parametrize("codec", list(Codec))
def test_records_survive(codec):
    encoded = batch.encode_batch(RECORDS, codec)
    assert list(batch.iter_batch(encoded)) == RECORDS
    header = batch.read_header(encoded)
    assert (header.base_offset, header.last_offset, header.count) == (7, 9, 3)
    assert (header.base_timestamp, header.max_timestamp) == (1000, 5_000_000_000_000)
    assert header.codec == codec
    assert batch.crc_matches(encoded, 0, header.size_bytes)
    assert header.size_bytes == len(encoded)


def test_the_header_is_the_one_of_the_wire():
    encoded = batch.encode_batch(
        [Record(0, 5, 0, None, b"a"), Record(1, 6, 0, None, b"b")], producer_id=9, producer_epoch=2, base_sequence=4
    )
    expected = raw.batch(
        [raw.record(b"a"), raw.record(b"b", offset_delta=1, timestamp_delta=1)],
        base_timestamp=5,
        max_timestamp=6,
        producer=(9, 2, 4),
    )
    assert bytes(encoded) == expected


def test_the_append_time_is_every_records_time():
    encoded = batch.encode_batch(RECORDS, append_time=77)
    assert {(record.timestamp, record.timestamp_type) for record in batch.iter_batch(encoded)} == {(77, 1)}
    assert batch.read_header(encoded).base_timestamp == 1000  # the records keep their deltas


def test_reading_starts_anywhere():
    encoded = b"12345" + bytes(batch.encode_batch(RECORDS)) + b"67"
    assert list(batch.iter_batch(encoded, 5)) == RECORDS


@pytest.mark.parametrize(
    "damaged",
    [
        raw.batch([raw.record()])[:60],
        raw.batch([raw.record()], magic=1),
        raw.batch([raw.record()], length=5),
        raw.batch([raw.record()], length=5000),
        raw.batch([raw.record()], count=2),
        raw.batch([raw.record(), raw.record()], count=1),
        raw.batch([raw.record()], count=-1),
        raw.batch([raw.record()], count=2**31 - 1),
        raw.batch(b"\x0e\x00\x00\x00\x01\x01\x02\x01", count=1),  # a header with a null key
        raw.batch(b"\x0e\x00\x00\x00\x01\x20\x00\x00", count=1),  # a value longer than the record
        raw.batch(b"\x80\x80\x80\x80\x80\x00\x00\x00\x00\x01\x01\x00", count=1),  # a length of six bytes
        raw.batch([raw.record()], attributes=1),
        raw.batch([raw.record()], attributes=5),
        raw.batch([raw.record(timestamp_delta=2**63 - 1)], base_timestamp=1),
    ],
)
def test_damage_is_told(damaged):
    with pytest.raises(DecodeError):
        list(batch.iter_batch(damaged))


def test_any_negative_length_is_null():
    data = raw.batch(b"\x0c\x00\x00\x00\x03\x05\x00", count=1)
    assert [(record.key, record.value) for record in batch.iter_batch(data)] == [(None, None)]


def test_the_crc_covers_all_but_offset_length_and_epoch():
    encoded = batch.encode_batch(RECORDS)
    for position in range(len(encoded)):
        changed = bytearray(encoded)
        changed[position] ^= 0x40
        covered = position >= 17
        assert batch.crc_matches(changed, 0, len(changed)) is not covered


@pytest.mark.parametrize(("delta", "count"), [(-1, 1), (0, -1)])
def test_a_head_that_no_batch_can_have_is_not_written(delta, count):
    header = batch.read_header(batch.encode_batch([Record(7, 5, 0, None, b"v")]))
    with pytest.raises(AssertionError, match=f"a batch at 7 with last offset delta {delta}, {count} records"):
        batch.assemble(header._replace(last_offset_delta=delta, count=count), b"")


@given(st.lists(st.tuples(st.binary(max_size=200), st.none() | st.binary(max_size=200)), max_size=130))
def test_entries_are_records_at_the_time_of_their_batch(entries):
    records = [Record(7 + place, 5, 0, key, value) for place, (key, value) in enumerate(entries)]
    assert batch.encode_entries(entries) == batch.encode_records(records, 7, 5)


@given(
    st.lists(st.tuples(st.binary(max_size=50), st.none() | st.binary(max_size=50)), min_size=1, max_size=9),
    st.sampled_from([(0, -1, batch.NOBODY), (0x10, 7, (5, 1, 0)), (0x30, 0, (5, 1, -1))]),
)
def test_a_brokers_own_batch_is_one_as_any_other(entries, head):
    attributes, leader_epoch, producer = head
    producer_id, producer_epoch, base_sequence = producer
    records = [Record(7 + place, 5, 0, key, value) for place, (key, value) in enumerate(entries)]
    made = batch.encode_own(entries, 7, 5, attributes=attributes, leader_epoch=leader_epoch, producer=producer)
    assert made == batch.encode_batch(
        records,
        attributes=attributes,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
    )
