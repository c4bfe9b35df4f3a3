"""Frames of the load generator: read back by the product's own codecs, which were written apart from them."""

import struct
import zlib

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import frames
from horolog.protocol.compile import decode
from horolog.protocol.messages.list_offsets import ListOffsetsRequest
from horolog.protocol.records import batch

VALUES = st.lists(st.binary(max_size=300), min_size=1, max_size=40)
TIMES = st.integers(0, 2**41)
STEPS = st.integers(0, 5000)


@given(values=VALUES, first=TIMES, step_ms=STEPS)
def test_a_batch_reads_back_with_its_values_and_times(values, first, step_ms):
    data = frames.batch(values, first, step_ms)
    header = batch.read_header(data)
    records = list(batch.iter_batch(data))
    assert batch.crc_matches(data, 0, len(data))
    assert [record.value for record in records] == values
    assert [record.timestamp for record in records] == [first + number * step_ms for number in range(len(values))]
    assert [record.offset for record in records] == list(range(len(values)))
    assert header.max_timestamp == records[-1].timestamp


@given(values=VALUES, first=TIMES, later=TIMES, step_ms=STEPS)
def test_retimed_is_the_batch_with_another_base_time(values, first, later, step_ms):
    assert frames.retimed(frames.batch(values, first, step_ms), len(values), later, step_ms) == frames.batch(
        values, later, step_ms
    )


@pytest.mark.parametrize("codec", frames.CODECS)
@given(values=VALUES, first=TIMES, step_ms=STEPS)
def test_a_compressed_batch_reads_back_as_the_plain_one(codec, values, first, step_ms):
    plain = frames.batch(values, first, step_ms)
    data = frames.compressed(plain, codec)
    assert batch.crc_matches(data, 0, len(data))
    assert batch.read_header(data).codec.name.lower() == codec
    assert list(batch.iter_batch(data)) == list(batch.iter_batch(plain))


def test_each_record_has_the_headers_asked_for():
    data = frames.batch([b"a", b"b"], 1000, headers=3)
    assert batch.crc_matches(data, 0, len(data))
    for record in batch.iter_batch(data):
        assert [key for key, _ in record.headers] == [b"header-0", b"header-1", b"header-2"]
        assert all(len(value) == 16 for _, value in record.headers)


def test_records_of_a_mixed_batch_vary():
    data = frames.mixed_batch(50, 1000)
    records = list(batch.iter_batch(data))
    assert batch.crc_matches(data, 0, len(data))
    assert all(20 <= len(record.value) <= 600 for record in records)
    assert min(len({record.key for record in records}), len({len(record.value) for record in records})) > 30


@pytest.mark.parametrize(
    ("frame", "version", "timestamp", "head_size"),
    [
        (frames.first_offset_at("topic", -1, 3), 0, -1, 4 + 10 + len(frames.CLIENT_ID)),
        (frames.offset_of_max_timestamp("topic", 3), 7, -3, 4 + 10 + len(frames.CLIENT_ID) + 1),
    ],
)
def test_look_ups_ask_for_what_they_say(frame, version, timestamp, head_size):
    assert struct.unpack(">i", frame[:4])[0] == len(frame) - 4
    (asked,) = decode(ListOffsetsRequest, version, frame, head_size, to_the_end=True).topics
    assert (asked.name, [(one.partition_index, one.timestamp) for one in asked.partitions]) == (
        "topic",
        [(3, timestamp)],
    )


@given(values=VALUES, first=TIMES, step_ms=STEPS)
def test_a_message_set_holds_magic_1_messages_with_their_crc(values, first, step_ms):
    data, at = frames.message_set(values, first, step_ms), 0
    for number, value in enumerate(values):
        offset, size, crc, magic, attributes, timestamp, key, length = struct.unpack_from(">qiIbbqii", data, at)
        body = data[at + 16 : at + 12 + size]
        assert (offset, magic, attributes, key, length) == (number, 1, 0, -1, len(value))
        assert timestamp == first + number * step_ms
        assert crc == zlib.crc32(body)
        assert body[-len(value) or len(body) :] == value
        at += 12 + size
    assert at == len(data)


@given(st.integers(-(2**31), 2**31 - 1))
def test_varints_read_back(value):
    shifted = sum((byte & 0x7F) << 7 * place for place, byte in enumerate(frames.varint(value)))
    assert (shifted >> 1) ^ -(shifted & 1) == value


def test_every_frame_says_its_own_length():
    made = [
        frames.produce(2, "t", frames.message_set([b"v"], 0)),
        frames.produce(3, "t", frames.batch([b"v"], 0), acks=-1),
        frames.fetch(2, "t", 5),
        frames.fetch(4, "t", 5),
        frames.list_offsets("t", -1),
        frames.metadata(None),
        frames.metadata(["a", "b"]),
        frames.api_versions(),
        frames.create_topics(2, ["a"], 3, {"retention.ms": "-1"}),
        frames.delete_topics(1, ["a"]),
    ]
    assert all(struct.unpack(">i", frame[:4])[0] == len(frame) - 4 for frame in made)


def test_payloads_have_the_size_asked_for_and_are_the_same_every_time():
    values = frames.payloads(100, 50)
    assert {len(value) for value in values} == {100}
    assert len(set(values)) == 50
    assert values == frames.payloads(100, 50)


def test_records_of_a_batch_are_covered_by_its_checksum():
    data = bytearray(frames.batch([b"value"], 1))
    (stored,) = struct.unpack_from(">I", data, 17)
    assert stored == crc32c(bytes(data[21:]))
    data[-2] ^= 1
    assert stored != crc32c(bytes(data[21:]))


def test_answers_to_many_look_ups_are_read_by_partition():
    rows = [(1, 0, 500, 7), (0, 3, -1, -1)]
    head = struct.pack(">iii", 0, 9, 1) + frames.text("topic") + struct.pack(">i", len(rows))
    reply = head + b"".join(struct.pack(">ihqq", *row) for row in rows)
    assert len(reply) == frames.lookups_reply_size("topic", 2)
    assert frames.answered_lookups(reply, "topic") == sorted(rows)
    assert struct.unpack_from(">h", reply, frames.lookup_error_at("topic")) == (0,)


def test_many_look_ups_name_each_partition_once():
    asked = frames.list_all_offsets("topic", [5, 6, 7])
    assert struct.unpack_from(">i", asked)[0] == len(asked) - 4
    assert asked.endswith(struct.pack(">i" + "iq" * 3, 3, 0, 5, 1, 6, 2, 7))
