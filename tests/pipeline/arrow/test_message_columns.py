"""Messages of v0 and v1 read together; unexpected bytes are left to the plain decoder."""

import struct

import pytest

from horolog.pipeline.arrow.message_columns import SetPlace, decode_messages
from horolog.pipeline.base.varints import Irregular
from horolog.protocol.records import message_set
from horolog.protocol.records.record import Record
from horolog.protocol.records.timestamps import NO_TIMESTAMP
from tests.pipeline.samples import BASE_MS


def messages(magic, count=3):
    records = [Record(n, BASE_MS + n, 0, b"k" if n else None, b"v%d" % n, ()) for n in range(count)]
    return bytes(message_set.encode_set(records, magic))


def plain(data, **more):
    return SetPlace(0, len(data), **{"last_offset": None, "wrapper_attributes": 0, "wrapper_timestamp": 0, **more})


@pytest.mark.parametrize("magic", [0, 1])
def test_fields_are_read_of_all_messages_together(magic):
    data = messages(magic)
    found = decode_messages(data, [plain(data)], magic)
    assert found.offsets.tolist() == [0, 1, 2]
    assert found.timestamps.tolist() == ([BASE_MS, BASE_MS + 1, BASE_MS + 2] if magic else [NO_TIMESTAMP] * 3)
    values = [data[start:end] for start, end in zip(found.spans.value_start, found.spans.value_end, strict=True)]
    assert (values, found.spans.key_is_null.tolist()) == ([b"v0", b"v1", b"v2"], [True, False, False])


def test_a_wrapper_says_the_last_offset_and_may_say_the_time():
    data = messages(1)
    found = decode_messages(data, [plain(data, last_offset=102)], 1)
    assert found.offsets.tolist() == [100, 101, 102]
    arrived = plain(data, last_offset=102, wrapper_attributes=8, wrapper_timestamp=7)
    assert decode_messages(data, [arrived], 1).timestamps.tolist() == [7, 7, 7]


def patched(data, at, replacement):
    return data[:at] + replacement + data[at + len(replacement) :]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda data: patched(data, 16, b"\x00"), "of another magic"),
        (lambda data: data[:5], "ends inside its head"),
        (lambda data: patched(data, 8, struct.pack(">i", 3)), "smaller than its head"),
        (lambda data: data[:-1], "does not end where it should"),
        (lambda data: patched(data, 26, struct.pack(">i", 1 << 20)), "runs past the end of"),
        (lambda data: b"", "does not end where it should"),
    ],
)
def test_what_is_not_as_expected_is_irregular(change, said):
    data = change(messages(1))
    with pytest.raises(Irregular, match=said):
        decode_messages(data, [plain(data)], 1)


def test_a_number_beyond_the_data_is_irregular():
    data = messages(1, 1)
    shorter = patched(data[:-6], 8, struct.pack(">i", len(data) - 12))
    with pytest.raises(Irregular):
        decode_messages(shorter, [SetPlace(0, len(data), None, 0, 0)], 1)


def test_a_wrapper_inside_a_wrapper_is_irregular():
    data = patched(messages(1), 17, b"\x01")
    with pytest.raises(Irregular, match="a wrapper inside a wrapper"):
        decode_messages(data, [plain(data, last_offset=9)], 1)
