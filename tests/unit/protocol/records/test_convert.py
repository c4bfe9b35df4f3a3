"""Going down in formats: which fields are kept or dropped, and what cannot be said."""

import pytest

from horolog.protocol.errors import ErrorCode
from horolog.protocol.records import batch, control, entries, message_set
from horolog.protocol.records.compression import Codec
from horolog.protocol.records.convert import ConversionError, convert_down, encode
from horolog.protocol.records.head import heads_in
from horolog.protocol.records.record import Record
from tests.support import raw_records as raw

RECORDS = [Record(5, 100, 0, b"k", b"a", ((b"h", b"1"),)), Record(6, 90, 0, None, b"b"), Record(9, 95, 0, b"", None)]
BARE = [record._replace(headers=()) for record in RECORDS]
OLD_CODECS = [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4]


def expected(magic):
    return BARE if magic else [record._replace(timestamp=-1, timestamp_type=-1) for record in BARE]


@pytest.mark.parametrize("codec", OLD_CODECS)
@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("source", [1, 2])
def test_records_survive_without_headers(source, magic, codec):
    data = bytes(encode(RECORDS, source, codec))
    converted = convert_down(data, magic)
    assert list(entries.iter_records(converted)) == expected(magic)
    assert {one.magic for one in heads_in(converted)} == {magic}
    assert {message_set.read_message(converted).codec} == {codec}
    assert len(list(heads_in(converted))) == (len(RECORDS) if codec == Codec.NONE else 1)
    for one in heads_in(converted):
        assert entries.check_crc(converted, one.position, one.size_bytes, one.magic)


def test_what_is_old_enough_passes_byte_for_byte():
    old = message_set.encode_wrapper(BARE, 1, Codec.GZIP)
    new = bytes(batch.encode_batch([record._replace(offset=record.offset + 10) for record in BARE]))
    assert convert_down(old + new, 1).startswith(old)
    assert convert_down(old + new, 2) == old + new


@pytest.mark.parametrize("codec", OLD_CODECS)
def test_the_append_time_goes_into_every_message(codec):
    converted = convert_down(bytes(batch.encode_batch(RECORDS, codec, append_time=777)), 1)
    message = message_set.read_message(converted)
    assert (message.timestamp, message.timestamp_type) == (777, 1)
    assert {(record.timestamp, record.timestamp_type) for record in entries.iter_records(converted)} == {(777, 1)}
    if codec:
        _, inner = message_set.inner_messages(message)
        assert {(each.timestamp, each.timestamp_type) for each in inner} == {(777, 1)}


def test_the_wrapper_carries_the_largest_time():
    converted = convert_down(bytes(batch.encode_batch(RECORDS, Codec.GZIP)), 1)
    ((offset, _, attributes, timestamp, key, _, crc_is_right),) = raw.read_set(converted)
    assert (offset, attributes, timestamp, key, crc_is_right) == (9, 1, 100, None, True)


def test_control_batches_are_left_out():
    marker = control.encode_marker(control.Marker(False, 0), 9, 1, producer_id=1, producer_epoch=0, leader_epoch=0)
    assert convert_down(bytes(marker), 1) == b""
    assert len(raw.read_set(convert_down(bytes(batch.encode_batch(RECORDS)) + bytes(marker), 1))) == 3


def test_plain_records_before_the_wanted_one_are_left_out():
    plain, packed = (bytes(batch.encode_batch(RECORDS, codec)) for codec in (Codec.NONE, Codec.GZIP))
    assert [record.offset for record in entries.iter_records(convert_down(plain, 1, 6))] == [6, 9]
    assert [record.offset for record in entries.iter_records(convert_down(packed, 1, 6))] == [5, 6, 9]
    assert convert_down(plain, 1, 50) == b""


@pytest.mark.parametrize("codec", OLD_CODECS)
@pytest.mark.parametrize("magic", [0, 1])
def test_batches_that_grow_beyond_the_bound_wait_for_the_next_request(magic, codec):
    first, second = (bytes(batch.encode_batch([one], codec)) for one in RECORDS[:2])
    small, both = len(convert_down(first, magic)), len(convert_down(first + second, magic))
    assert convert_down(first + second, magic, max_bytes=both) == convert_down(first + second, magic)
    for max_bytes in (both - 1, small, small - 1, 0):
        assert convert_down(first + second, magic, max_bytes=max_bytes) == convert_down(first, magic)


def test_old_messages_behind_what_has_grown_wait_too():
    new, old = bytes(batch.encode_batch(RECORDS[:1])), bytes(encode(BARE[1:], 1, Codec.NONE))
    assert convert_down(new + old, 1, max_bytes=len(new + old)) == convert_down(new, 1) + old
    assert convert_down(new + old, 1, max_bytes=len(convert_down(new, 1))) == convert_down(new, 1)


def test_the_bound_counts_neither_control_batches_nor_records_before_the_wanted_one():
    marker = control.encode_marker(control.Marker(False, 0), 9, 1, producer_id=1, producer_epoch=0, leader_epoch=0)
    before, wanted = (bytes(batch.encode_batch([one])) for one in RECORDS[:2])
    assert convert_down(before + bytes(marker) + wanted, 1, 6, max_bytes=0) == convert_down(wanted, 1)


def test_zstd_has_no_older_format():
    packed = bytes(batch.encode_batch(RECORDS, Codec.ZSTD))
    with pytest.raises(ConversionError) as refused:
        convert_down(packed, 1)
    assert refused.value.code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    plain = bytes(batch.encode_batch([Record(1, 1, 0, None, b"first")]))
    assert [record.value for record in entries.iter_records(convert_down(plain + packed, 1))] == [b"first"]


def test_v0_readers_get_the_lz4_checksum_that_they_expect():
    packed = bytes(batch.encode_batch(RECORDS, Codec.LZ4))
    old, new = (message_set.read_message(convert_down(packed, magic)).value for magic in (0, 1))
    assert old[6] != new[6]
