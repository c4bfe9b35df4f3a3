"""Messages and wrappers of v0 and v1: against bytes written by hand, in both numberings of the inner messages."""

import pytest

from horolog.protocol.errors import DecodeError
from horolog.protocol.records import message_set
from horolog.protocol.records.compression import Codec
from horolog.protocol.records.record import Record
from tests.support import raw_records as raw

RECORDS = [Record(10, 500, 0, b"k", b"v"), Record(11, 700, 0, None, b""), Record(14, 600, 0, b"", None)]


def read_all(data):
    found = []
    position = 0
    while position < len(data):
        message = message_set.read_message(data, position)
        found += message_set.iter_message(message)
        position += message.size_bytes
    return found


def without_times(records):
    return [record._replace(timestamp=-1, timestamp_type=-1) for record in records]


@pytest.mark.parametrize("magic", [0, 1])
def test_plain_messages_are_those_of_the_wire(magic):
    written = message_set.encode_set(RECORDS, magic)
    by_hand = b"".join(
        raw.message(record.value, record.key, offset=record.offset, magic=magic, timestamp=record.timestamp)
        for record in RECORDS
    )
    assert written == by_hand
    assert read_all(written) == (RECORDS if magic else without_times(RECORDS))


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
@pytest.mark.parametrize("magic", [0, 1])
def test_wrappers_keep_offsets_with_gaps(magic, codec):
    written = message_set.encode_wrapper(RECORDS, magic, codec)
    assert read_all(written) == (RECORDS if magic else without_times(RECORDS))
    message = message_set.read_message(written)
    assert (message.offset, message.timestamp, message.codec) == (14, 700 if magic else -1, codec)
    content, inner = message_set.inner_messages(message)
    assert [each.offset for each in inner] == ([0, 1, 4] if magic else [10, 11, 14])
    assert all(message_set.crc_matches(content, each.position, each.size_bytes) for each in inner)


@pytest.mark.parametrize("first_inner", [0, 100])
def test_inner_offsets_of_v1_count_back_from_the_wrappers(first_inner):
    inner = b"".join(raw.message(b"x", offset=first_inner + index) for index in range(3))
    message = message_set.read_message(raw.wrapper(inner, offset=52))
    assert [record.offset for record in message_set.iter_message(message)] == [50, 51, 52]


def test_the_append_time_of_a_wrapper_is_every_messages_time():
    written = message_set.encode_wrapper(RECORDS, 1, Codec.GZIP, append_time=9999)
    assert {(record.timestamp, record.timestamp_type) for record in read_all(written)} == {(9999, 1)}
    _, inner = message_set.inner_messages(message_set.read_message(written))
    assert [each.timestamp for each in inner] == [500, 700, 600]


def test_bit_three_means_nothing_in_v0():
    message = message_set.read_message(raw.message(magic=0, attributes=8))
    assert message.timestamp_type == -1


def test_negative_lengths_are_null():
    data = bytearray(raw.message(b"vv"))
    data[-6:-2] = (-5).to_bytes(4, "big", signed=True)
    assert message_set.read_message(bytes(data)).value is None


@pytest.mark.parametrize(
    "inner",
    [
        b"",
        raw.message(b"x")[:-1],
        raw.message(b"x", magic=0),
        raw.wrapper(raw.message(b"x")),
        raw.message(b"x", size=5),
        raw.message(b"x", size=2**30),
    ],
)
def test_what_may_not_be_in_a_wrapper(inner):
    with pytest.raises(DecodeError):
        message_set.inner_messages(message_set.read_message(raw.wrapper(inner)))


def test_a_wrapper_needs_a_value():
    for value in (None, b"", b"no gzip"):
        with pytest.raises(DecodeError):
            message_set.inner_messages(message_set.read_message(raw.message(value, attributes=1)))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        raw.message(b"x")[:20],
        raw.message(b"x")[:-1],
        raw.message(b"x", size=13),
        raw.message(b"x", size=-1),
        raw.message(b"x", magic=0, size=13),
        raw.message(b"x")[:16] + b"\x05" + raw.message(b"x")[17:],
        raw.message(b"x")[:26] + b"\x00\x00\x00\x63" + raw.message(b"x")[30:],
        raw.message(b"x")[:30] + b"\x00\x00\x00\x63" + raw.message(b"x")[34:],
    ],
)
def test_damage_is_told(data):
    with pytest.raises(DecodeError):
        message_set.read_message(data)


def test_the_crc_covers_all_but_offset_and_size():
    data = raw.message(b"value", b"key", timestamp=5)
    for position in range(len(data)):
        changed = bytearray(data)
        changed[position] ^= 1
        assert message_set.crc_matches(changed, 0, len(changed)) is (position < 12)


def test_where_a_set_is_cut_short():
    data = raw.message(b"value")
    assert not message_set.is_cut_short(data, 0)
    assert all(message_set.is_cut_short(data[:size], 0) for size in range(len(data)))
    assert message_set.is_cut_short(data, len(data))


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
def test_the_offsets_inside_a_wrapper_are_those_of_its_records(magic, codec):
    wrapper = message_set.read_message(message_set.encode_wrapper(RECORDS, magic, codec))
    found = [record.offset for record in message_set.iter_message(wrapper)]
    assert message_set.offsets_in_wrapper(wrapper) == (found[0], found[-1])


@pytest.mark.parametrize("content", [b"", b"x" * 11, bytes(8) + b"\xff" * 4, bytes(11) + b"\x01"])
def test_what_is_no_whole_set_inside_a_wrapper_is_refused(content):
    with pytest.raises(DecodeError):
        message_set.offsets_in_wrapper(message_set.read_message(raw.wrapper(content)))
