"""What happens to every kind of record set that a producer may send, by the rules of its era."""

import gzip
import struct
from dataclasses import replace
from itertools import pairwise

import pytest

from horolog.broker.log.producers import ProducerBatch
from horolog.broker.log.validation import check
from horolog.broker.log.validation.validate import Mark, RefusedSet
from horolog.protocol.errors import ErrorCode
from horolog.protocol.records import batch, control, entries, message_set
from horolog.protocol.records.compression import Codec
from horolog.protocol.records.head import heads_in
from horolog.protocol.records.record import Record
from tests.support import raw_records as raw
from tests.support.logs import marks_of, topic_config

NOW = 1_700_000_000_000
HOUR = 3_600_000
UNBOUNDED = 2**63 - 1
NEXT = 1000

OPEN = replace(topic_config(), before_max_ms=UNBOUNDED, after_max_ms=UNBOUNDED)
APPENDED = replace(OPEN, log_append_time=True)
BOUNDED = replace(OPEN, before_max_ms=2 * HOUR, after_max_ms=HOUR)
COMPACTED = replace(OPEN, compact=True)
SMALL = replace(OPEN, max_message_bytes=1000)


def verdict(records, config=OPEN, version=None):
    if version is None:
        version = 9 if len(records) > 16 and records[16] == 2 else 2
    frame = b"front" + bytes(records) + b"back"
    view = memoryview(frame)[5:-4]
    checked = check(view, NEXT, config, NOW, produce_version=version, leader_epoch=4)
    assert len(checked.data) == checked.size_bytes
    assert bytes(frame[5:-4]) == bytes(records)
    return checked


def stored(records, config=OPEN, version=None):
    return bytes(verdict(records, config, version).data)


def refusal(records, config=OPEN, version=None):
    with pytest.raises(RefusedSet) as refused:
        verdict(records, config, version)
    return refused.value


def plain(timestamps, magic=1, **fields):
    return b"".join(
        raw.message(b"v%d" % index, b"k", offset=index, magic=magic, timestamp=timestamp, **fields)
        for index, timestamp in enumerate(timestamps)
    )


def wrapped(timestamps, magic=1, *, timestamp=None, attributes=0, inner_attributes=0, start=0):
    inner = b"".join(
        raw.message(b"v", b"k", offset=start + index, magic=magic, timestamp=each, attributes=inner_attributes)
        for index, each in enumerate(timestamps)
    )
    outer = max(timestamps) if timestamp is None else timestamp
    return raw.wrapper(inner, offset=len(timestamps) - 1, magic=magic, timestamp=outer, attributes=attributes)


def batched(timestamps, codec=Codec.NONE, *, attributes=0, base=None, max_timestamp=None, key=b"k", **fields):
    base = timestamps[0] if base is None else base
    body = b"".join(
        raw.record(b"v", key, offset_delta=index, timestamp_delta=timestamp - base)
        for index, timestamp in enumerate(timestamps)
    )
    return raw.batch(
        {Codec.NONE: bytes, Codec.GZIP: gzip.compress}[codec](body),
        count=fields.pop("count", len(timestamps)),
        attributes=attributes | codec,
        base_timestamp=base,
        max_timestamp=max(timestamps) if max_timestamp is None else max_timestamp,
        **fields,
    )


def records_of(data):
    for entry in heads_in(data):
        assert entries.check_crc(data, entry.position, entry.size_bytes, entry.magic)
    return list(entries.iter_records(data))


class TestOffsetsAndMarks:
    @pytest.mark.parametrize("count", [1, 3, 50])
    def test_plain_messages_are_numbered_and_otherwise_untouched(self, count):
        sent = plain(range(count))
        kept = stored(sent)
        assert [record.offset for record in records_of(kept)] == list(range(NEXT, NEXT + count))
        assert [message[1:] for message in raw.read_set(kept)] == [message[1:] for message in raw.read_set(sent)]

    def test_messages_of_different_sizes(self):
        sent = b"".join(raw.message(b"v" * (index % 7), timestamp=index) for index in range(40))
        kept = stored(sent)
        assert [(message[0], message[3], message[6]) for message in raw.read_set(kept)] == [
            (NEXT + index, index, True) for index in range(40)
        ]

    def test_a_wrapper_gets_the_offset_of_its_last_message_and_keeps_its_payload(self):
        sent = wrapped([5, 9, 7])
        kept = stored(sent)
        assert [record.offset for record in records_of(kept)] == [NEXT, NEXT + 1, NEXT + 2]
        assert raw.read_set(kept)[0][5] == raw.read_set(sent)[0][5]

    @pytest.mark.parametrize("start", [1, 100])
    def test_a_wrapper_numbered_otherwise_is_written_anew(self, start):
        kept = stored(wrapped([5, 9, 7], start=start))
        _, inner = message_set.inner_messages(message_set.read_message(kept))
        assert [message.offset for message in inner] == [0, 1, 2]
        assert [record.timestamp for record in records_of(kept)] == [5, 9, 7]

    def test_a_batch_gets_offset_and_epoch_and_keeps_its_crc(self):
        sent = batched([5, 9, 7])
        kept = stored(sent)
        assert kept[21:] == sent[21:]
        header = raw.read_batch_header(kept)
        assert (header["base_offset"], header["leader_epoch"], header["crc_is_right"]) == (NEXT, 4, True)

    def test_the_verdict_on_a_batch(self):
        checked = verdict(batched([5, 9, 7], producer=(8, 1, 2**31 - 2), attributes=0x10))
        assert checked[2:9] == (NEXT, NEXT + 2, 3, 9, NEXT + 2, 9, -1)
        assert marks_of(checked) == [Mark(0, NEXT, NEXT + 2, 9, NEXT + 2)]
        assert checked.batches == (ProducerBatch(8, 1, 2**31 - 2, 0, NEXT, NEXT + 2, 9, True),)
        assert checked.stored_magic == 2

    def test_batches_without_a_producer_teach_nothing(self):
        assert verdict(batched([5])).batches == ()

    def test_the_verdict_on_plain_messages_names_the_first_of_the_largest(self):
        checked = verdict(plain([5, 9, 7, 9]))
        assert checked[2:9] == (NEXT, NEXT + 3, 4, 9, NEXT + 1, 5, -1)
        assert marks_of(checked) == [Mark(0, NEXT, NEXT + 3, 9, NEXT + 1)]
        assert checked.stored_magic == 1

    def test_the_verdict_on_a_wrapper(self):
        checked = verdict(wrapped([5, 9, 7]))
        assert checked[2:9] == (NEXT, NEXT + 2, 3, 9, NEXT + 2, 9, -1)
        assert marks_of(checked) == [Mark(0, NEXT, NEXT + 2, 9, NEXT + 2)]

    @pytest.mark.parametrize("same_size", [True, False])
    def test_marks_divide_a_long_set_by_the_index_interval(self, same_size):
        times = [(index * 37) % 101 for index in range(200)]
        sent = b"".join(
            raw.message(b"v" * (100 if same_size else 80 + index % 50), timestamp=time)
            for index, time in enumerate(times)
        )
        interval = 1000
        checked = verdict(sent, replace(OPEN, index_interval_bytes=interval))
        positions = [mark.position for mark in marks_of(checked)]
        starts = [entry.position for entry in heads_in(bytes(checked.data))]
        assert set(positions) <= set(starts)
        assert all(interval < after - before <= interval + 200 for before, after in pairwise(positions))
        expected = NEXT
        for mark in marks_of(checked):
            assert mark.first_offset == expected
            assert mark.position == starts[mark.first_offset - NEXT]
            group = times[mark.first_offset - NEXT : mark.last_offset - NEXT + 1]
            assert mark.max_timestamp == max(group)
            assert mark.max_timestamp_offset == mark.first_offset + group.index(max(group))
            expected = mark.last_offset + 1
        assert expected == NEXT + 200
        assert checked.max_timestamp == max(times)
        assert checked.max_timestamp_offset == NEXT + times.index(max(times))

    def test_what_is_stored_does_not_refer_to_the_frame(self):
        for sent in (plain([1, 2]), wrapped([1, 2]), batched([1, 2])):
            frame = bytearray(sent)
            version = 9 if sent[16] == 2 else 2
            checked = check(memoryview(frame).toreadonly(), NEXT, OPEN, NOW, produce_version=version, leader_epoch=0)
            before = bytes(checked.data)
            frame[:] = bytes(len(frame))
            assert bytes(checked.data) == before

    @pytest.mark.parametrize("config", [OPEN, replace(OPEN, log_append_time=True), replace(OPEN, compression="lz4")])
    def test_a_batch_in_a_writable_view_is_stored_as_one_that_is_copied(self, config):
        for sent in (batched([1, 2]), batched(list(range(100)))):
            frame = bytearray(sent)
            copied = check(sent, NEXT, config, NOW, produce_version=9, leader_epoch=3)
            handed_over = check(memoryview(frame), NEXT, config, NOW, produce_version=9, leader_epoch=3)
            assert bytes(handed_over.data) == bytes(copied.data)
            assert handed_over[1:] == copied[1:]
            assert (bytes(frame) == bytes(copied.data)) is (config.compression != "lz4"), "corrected where it lies"


class TestCreateTime:
    @pytest.mark.parametrize("claimed", [0, 9, 10**15])
    def test_the_wrappers_time_is_the_largest_inner_one(self, claimed):
        sent = wrapped([5, 9, 7], timestamp=claimed)
        ((_, _, attributes, timestamp, _, value, crc_is_right),) = raw.read_set(stored(sent))
        assert (attributes, timestamp, crc_is_right) == (1, 9, True)
        assert value == raw.read_set(sent)[0][5]

    @pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
    @pytest.mark.parametrize("claimed", [0, 9, 10**15])
    def test_the_batchs_largest_time_is_what_its_records_say(self, claimed, codec):
        sent = batched([5, 9, 7], codec, max_timestamp=claimed)
        kept = stored(sent)
        header = raw.read_batch_header(kept)
        assert (header["max_timestamp"], header["base_timestamp"], header["crc_is_right"]) == (9, 5, True)
        assert kept[61:] == sent[61:]

    def test_times_below_the_base_timestamp(self):
        assert verdict(batched([10, 50], base=100)).max_timestamp == 50

    @pytest.mark.parametrize("timestamps", [[-1, -1], [-5, -5]])
    def test_batches_without_times(self, timestamps):
        checked = verdict(batched(timestamps))
        assert (checked.max_timestamp, checked.first_timestamp) == (-1, -1)
        assert raw.read_batch_header(bytes(checked.data))["max_timestamp"] == -1

    @pytest.mark.parametrize("sent", [plain([-1, -1]), wrapped([-1, -1])])
    def test_sets_without_times(self, sent):
        checked = verdict(sent)
        assert (checked.max_timestamp, checked.first_timestamp) == (-1, -1)

    @pytest.mark.parametrize("timestamp", [0, 2**63 - 1])
    def test_every_time_is_accepted_by_default(self, timestamp):
        for sent in (plain([timestamp]), wrapped([timestamp]), batched([timestamp])):
            assert verdict(sent).max_timestamp == timestamp

    @pytest.mark.parametrize("timestamp", [-2, -(2**63)])
    @pytest.mark.parametrize("make", [plain, wrapped])
    def test_old_sets_know_no_negative_time_but_minus_one(self, make, timestamp):
        refused = refusal(make([5, timestamp]))
        assert refused.code == ErrorCode.INVALID_TIMESTAMP
        assert refused.record_errors[0][0] == 1

    def test_times_beyond_64_bits(self):
        sent = raw.batch([raw.record(timestamp_delta=100)], base_timestamp=2**63 - 50, max_timestamp=5)
        assert refusal(sent).code == ErrorCode.INVALID_TIMESTAMP

    def test_producers_may_not_claim_append_times_in_sets(self):
        for sent in (plain([5], attributes=8), wrapped([5, 6], attributes=8), wrapped([5, 6], inner_attributes=8)):
            assert refusal(sent).code == ErrorCode.INVALID_TIMESTAMP

    def test_an_inner_claim_is_named(self):
        inner = raw.message(b"a", timestamp=5) + raw.message(b"b", offset=1, attributes=8, timestamp=6)
        assert refusal(raw.wrapper(inner, offset=1, timestamp=6)).record_errors[0][0] == 1

    @pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
    def test_a_batch_that_claims_append_time_loses_the_claim(self, codec):
        header = raw.read_batch_header(stored(batched([5, 9], codec, attributes=8)))
        assert (header["attributes"], header["max_timestamp"], header["crc_is_right"]) == (codec, 9, True)

    def test_bit_three_of_v0_is_no_claim(self):
        assert raw.read_set(stored(plain([0], magic=0, attributes=8)))[0][2:4] == (0, -1)

    def test_unknown_attribute_bits_of_a_batch_stay(self):
        assert raw.read_batch_header(stored(batched([5], attributes=0x7F40)))["attributes"] == 0x7F40


class TestBounds:
    @pytest.mark.parametrize("make", [plain, wrapped, batched])
    @pytest.mark.parametrize(
        ("timestamp", "excess"),
        [
            (NOW, 0),
            (NOW - 2 * HOUR, 0),
            (NOW + HOUR, 0),
            (NOW - 2 * HOUR - 1, 1),
            (NOW + HOUR + 250, 250),
            (0, NOW - 2 * HOUR),
        ],
    )
    def test_both_directions(self, make, timestamp, excess):
        sent = make([NOW, timestamp, NOW])
        if not excess:
            assert verdict(sent, BOUNDED).count == 3
            return
        refused = refusal(sent, BOUNDED)
        assert refused.code == ErrorCode.INVALID_TIMESTAMP
        ((index, text),) = refused.record_errors
        assert index == 1
        for said in (text, refused.message):
            assert f"({excess} ms) " in said
            assert "TimestampExceededThreshold: " in said
            assert str(timestamp) in said

    def test_every_offending_record_is_named(self):
        refused = refusal(batched([NOW, 5, NOW, 6]), BOUNDED)
        assert [index for index, _ in refused.record_errors] == [1, 3]

    def test_the_list_of_offenders_is_bounded(self):
        assert len(refusal(batched([0] * 3000), BOUNDED).record_errors) == 1000

    def test_no_time_under_a_bound(self):
        assert verdict(batched([-1, NOW]), BOUNDED).max_timestamp == NOW
        assert refusal(plain([-1]), BOUNDED).code == ErrorCode.INVALID_TIMESTAMP
        assert refusal(wrapped([-1]), BOUNDED).code == ErrorCode.INVALID_TIMESTAMP
        assert refusal(plain([0], magic=0), BOUNDED).code == ErrorCode.INVALID_TIMESTAMP
        assert refusal(wrapped([0], magic=0), BOUNDED).code == ErrorCode.INVALID_TIMESTAMP

    def test_no_time_under_a_bound_on_the_future_only(self):
        assert verdict(plain([-1]), replace(OPEN, after_max_ms=5)).count == 1

    def test_messages_stored_without_times_are_not_judged(self):
        assert verdict(plain([0], magic=0), replace(BOUNDED, stored_magic=0)).count == 1

    def test_the_wrappers_and_headers_own_claims_are_not_judged(self):
        assert verdict(wrapped([NOW], timestamp=1), BOUNDED).max_timestamp == NOW
        assert verdict(batched([NOW], max_timestamp=2**62), BOUNDED).max_timestamp == NOW

    @pytest.mark.parametrize("make", [plain, wrapped, batched])
    def test_append_times_make_bounds_idle(self, make):
        assert verdict(make([5, 6]), replace(BOUNDED, log_append_time=True)).append_time == NOW


class TestLogAppendTime:
    @pytest.mark.parametrize("count", [1, 3, 50])
    def test_plain_messages_are_stamped(self, count):
        checked = verdict(plain(range(count)), APPENDED)
        for message in raw.read_set(bytes(checked.data)):
            assert message[2:4] == (8, NOW)
            assert message[6]
        assert checked[5:9] == (NOW, NEXT, NOW, NOW)

    def test_attribute_bits_of_no_meaning_stay(self):
        assert raw.read_set(stored(plain([1], attributes=0xF0), APPENDED))[0][2] == 0xF8

    def test_only_the_wrapper_is_stamped(self):
        sent = wrapped([5, 6])
        checked = verdict(sent, APPENDED)
        ((_, _, attributes, timestamp, _, value, crc_is_right),) = raw.read_set(bytes(checked.data))
        assert (attributes, timestamp, crc_is_right) == (9, NOW, True)
        assert value == raw.read_set(sent)[0][5]
        assert checked[5:9] == (NOW, NEXT + 1, NOW, NOW)

    @pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
    def test_only_the_batchs_header_is_stamped(self, codec):
        sent = batched([5, 6], codec)
        checked = verdict(sent, APPENDED)
        kept = bytes(checked.data)
        header = raw.read_batch_header(kept)
        assert (header["attributes"], header["max_timestamp"], header["base_timestamp"]) == (8 | codec, NOW, 5)
        assert header["crc_is_right"]
        assert kept[61:] == sent[61:]
        assert checked[5:9] == (NOW, NEXT + 1, NOW, NOW)

    def test_producers_may_not_claim_append_times(self):
        for sent in (
            plain([5], attributes=8),
            wrapped([5], attributes=8),
            wrapped([5], inner_attributes=8),
            batched([5], attributes=8),
            batched([5], Codec.GZIP, attributes=8),
        ):
            assert refusal(sent, APPENDED).code == ErrorCode.INVALID_TIMESTAMP

    def test_v0_messages_get_the_append_time(self):
        assert raw.read_set(stored(plain([0, 0], magic=0), APPENDED))[1][1:4] == (1, 8, NOW)
        kept = stored(wrapped([0, 0], magic=0), APPENDED)
        assert raw.read_set(kept)[0][1:4] == (1, 9, NOW)
        _, inner = message_set.inner_messages(message_set.read_message(kept))
        assert [(message.magic, message.timestamp, message.attributes) for message in inner] == [(1, -1, 0)] * 2

    def test_structure_is_checked_all_the_same(self):
        assert refusal(batched([5, 6], count=3, last_delta=2), APPENDED).code == ErrorCode.INVALID_RECORD
        assert refusal(plain([5], crc=1), APPENDED).code == ErrorCode.CORRUPT_MESSAGE


class TestOldFormats:
    def test_v0_becomes_v1_without_a_time(self):
        kept = raw.read_set(stored(plain([0, 0, 0], magic=0)))
        assert [message[:4] for message in kept] == [(NEXT + index, 1, 0, -1) for index in range(3)]
        assert [message[5] for message in kept] == [b"v0", b"v1", b"v2"]

    def test_a_v0_wrapper_becomes_a_v1_wrapper_numbered_from_0(self):
        kept = stored(wrapped([0, 0], magic=0))
        assert raw.read_set(kept)[0][:4] == (NEXT + 1, 1, 1, -1)
        assert [record.offset for record in records_of(kept)] == [NEXT, NEXT + 1]

    def test_v0_stays_where_the_topic_keeps_it(self):
        keep = replace(OPEN, stored_magic=0)
        assert [message[:4] for message in raw.read_set(stored(plain([0, 0], magic=0), keep))] == [
            (NEXT, 0, 0, -1),
            (NEXT + 1, 0, 0, -1),
        ]
        kept = stored(wrapped([0, 0], magic=0), keep)
        _, inner = message_set.inner_messages(message_set.read_message(kept))
        assert [(message.magic, message.offset) for message in inner] == [(0, NEXT), (0, NEXT + 1)]

    @pytest.mark.parametrize("config", [OPEN, APPENDED])
    def test_what_is_stored_without_times_has_none(self, config):
        for sent in (plain([5, 6]), wrapped([5, 6]), plain([0], magic=0)):
            checked = verdict(sent, replace(config, stored_magic=0))
            assert (checked.max_timestamp, checked.first_timestamp, checked.stored_magic) == (-1, -1, 0)
            assert {record.timestamp for record in records_of(bytes(checked.data))} == {-1}

    def test_v1_is_welcome_in_produce_v0(self):
        assert verdict(plain([5]), version=0).max_timestamp == 5

    def test_mixtures_of_v0_and_v1(self):
        assert [message[3] for message in raw.read_set(stored(plain([0], magic=0) + plain([7])))] == [-1, 7]

    @pytest.mark.parametrize(
        "sent",
        [
            wrapped([5, 6]) + plain([7]),
            plain([5]) + wrapped([6, 7]),
            wrapped([5]) + wrapped([6, 7]),
            wrapped([5]) + plain([6]) + wrapped([7]),
        ],
    )
    def test_a_set_with_a_wrapper_among_others_becomes_one_wrapper(self, sent):
        checked = verdict(sent)
        kept = bytes(checked.data)
        assert len(raw.read_set(kept)) == 1
        assert [(record.offset, record.timestamp) for record in records_of(kept)] == [
            (NEXT, 5),
            (NEXT + 1, 6),
            (NEXT + 2, 7),
        ]
        assert (checked.count, checked.max_timestamp) == (3, 7)

    def test_the_last_codec_counts(self):
        snappy = message_set.encode_wrapper([Record(0, 5, 0, None, b"v")], 1, Codec.SNAPPY)
        assert raw.read_set(stored(wrapped([5]) + snappy))[0][2] == Codec.SNAPPY

    @pytest.mark.parametrize(
        "sent",
        [b"", b"\x00" * 11, plain([5])[:-1], plain([5])[:20], wrapped([5])[:-1], wrapped([5])[:20]],
    )
    def test_nothing_whole_is_an_empty_set(self, sent):
        checked = verdict(sent, version=2)
        assert (checked.data, checked.count, checked.size_bytes, checked.marks) == (b"", 0, 0, ())
        assert (checked.first_offset, checked.last_offset) == (NEXT, NEXT - 1)

    @pytest.mark.parametrize("sent", [plain([5, 6]), wrapped([5, 6])])
    def test_a_cut_message_at_the_end_is_passed_over(self, sent):
        assert [record.timestamp for record in records_of(stored(sent + plain([9])[:-1]))] == [5, 6]

    @pytest.mark.parametrize(
        "sent",
        [
            plain([5], crc=1),
            plain([0], magic=0, crc=1),
            plain([5]) + plain([6], crc=1),
            plain([5] * 20) + plain([6], crc=1),
            plain([5], size=5),
            plain([5], size=-1),
            raw.wrapper(raw.message(b"a", crc=1)),
            raw.wrapper(b""),
            raw.wrapper(raw.message(b"a")[:-1]),
            raw.wrapper(wrapped([5])),
            raw.wrapper(raw.message(b"a", magic=0)),
            raw.wrapper(raw.message(b"a"), magic=0),
            raw.message(None, attributes=1),
            raw.message(b"", attributes=1),
            raw.message(b"no gzip", attributes=1),
            plain([5])[:16] + b"\x05" + plain([5])[17:],
            bytes((index * 131 + 7) & 255 for index in range(200)),
            plain([5]) + batched([5]),
        ],
    )
    def test_damage_refuses_the_whole_set(self, sent):
        assert refusal(sent, version=2).code == ErrorCode.CORRUPT_MESSAGE

    @pytest.mark.parametrize("codec", [4, 5, 7])
    def test_codecs_that_messages_do_not_have(self, codec):
        assert refusal(raw.message(b"x", attributes=codec)).code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE

    @pytest.mark.parametrize(("at", "length"), [(26, 9999), (30, 9999), (30, 3)])
    def test_lengths_that_run_past_the_message(self, at, length):
        data = bytearray(raw.message(b"vv", timestamp=1))
        data[at : at + 4] = struct.pack(">i", length)
        message_set.write_crc(data)
        assert refusal(bytes(data)).code == ErrorCode.CORRUPT_MESSAGE

    def test_a_size_that_covers_more_than_the_set_cannot_be_made_right_by_its_crc(self):
        """The crc of the bytes that are there, in a message that claims more, with lengths only the claim has room for."""
        data = bytearray(raw.message(b"x" * 50, b"k" * 20, timestamp=1)[:40])
        message_set.write_crc(data)
        assert verdict(bytes(data)).count == 0

    def test_negative_lengths_are_null(self):
        data = bytearray(raw.message(b"vv", timestamp=1))
        data[30:34] = struct.pack(">i", -5)
        message_set.write_crc(data)
        assert records_of(stored(bytes(data)))[0].value is None


class TestSizes:
    @pytest.mark.parametrize(("size", "fits"), [(1000, True), (1001, False)])
    def test_messages_one_by_one(self, size, fits):
        sent = raw.message(b"v" * (size - 34), timestamp=5)
        assert len(sent) == size
        for records in (sent, sent * 3, plain([5]) + sent, sent * 20):
            if fits:
                verdict(records, SMALL)
            else:
                assert refusal(records, SMALL).code == ErrorCode.MESSAGE_TOO_LARGE

    @pytest.mark.parametrize(("size", "fits"), [(1000, True), (1001, False)])
    def test_batches_as_a_whole(self, size, fits):
        sent = raw.batch([raw.record(b"v" * (size - 70))])
        assert len(sent) == size
        if fits:
            verdict(sent, SMALL)
        else:
            assert refusal(sent, SMALL).code == ErrorCode.MESSAGE_TOO_LARGE

    def test_compressed_size_counts(self):
        verdict(raw.wrapper(raw.message(bytes(5000))), SMALL)
        verdict(raw.batch(gzip.compress(raw.record(bytes(5000))), count=1, attributes=1), SMALL)

    def test_what_grows_beyond_the_limit_is_refused(self):
        sent = raw.wrapper(raw.message(bytes(5000)))
        assert refusal(sent, replace(SMALL, compression="uncompressed")).code == ErrorCode.MESSAGE_TOO_LARGE

    @pytest.mark.parametrize("magic", [0, 1, 2])
    def test_bombs(self, magic):
        bomb = gzip.compress(bytes(65 << 20))
        if magic == 2:
            sent = raw.batch(bomb, count=1, attributes=1)
        else:
            sent = raw.message(bomb, magic=magic, attributes=1)
        assert refusal(sent).code == ErrorCode.MESSAGE_TOO_LARGE


class TestBatchRules:
    @pytest.mark.parametrize(
        ("sent", "code"),
        [
            (b"", ErrorCode.INVALID_RECORD),
            (b"\x00" * 11, ErrorCode.INVALID_RECORD),
            (plain([5]), ErrorCode.INVALID_RECORD),
            (plain([5] * 3), ErrorCode.INVALID_RECORD),
            (batched([5], magic=3), ErrorCode.CORRUPT_MESSAGE),
            (batched([5], crc=1), ErrorCode.CORRUPT_MESSAGE),
            (batched([5], length=40), ErrorCode.CORRUPT_MESSAGE),
            (batched([5], length=500), ErrorCode.INVALID_RECORD),
            (batched([5])[:-1], ErrorCode.INVALID_RECORD),
            (batched([5])[:40], ErrorCode.INVALID_RECORD),
            (batched([5]) + batched([6]), ErrorCode.INVALID_RECORD),
            (batched([5], base_offset=7), ErrorCode.INVALID_RECORD),
            (batched([5, 6], count=3, last_delta=2), ErrorCode.INVALID_RECORD),
            (batched([5, 6], count=1, last_delta=0), ErrorCode.INVALID_RECORD),
            (batched([5], count=-1), ErrorCode.INVALID_RECORD),
            (raw.batch([], last_delta=-1), ErrorCode.INVALID_RECORD),
            (batched([5, 6], last_delta=5), ErrorCode.INVALID_RECORD),
            (batched([5], attributes=0x20), ErrorCode.INVALID_RECORD),
            (batched([5], producer=(5, 0, -1)), ErrorCode.INVALID_RECORD),
            (batched([5], attributes=5), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
            (batched([5], attributes=1), ErrorCode.INVALID_RECORD),
            (raw.batch([raw.record(), raw.record(offset_delta=2)]), ErrorCode.INVALID_RECORD),
            (raw.batch([raw.record(), raw.record(offset_delta=-1)]), ErrorCode.INVALID_RECORD),
        ],
    )
    def test_what_is_refused(self, sent, code):
        assert refusal(sent, version=9).code == code

    def test_bytes_behind_the_batch_that_are_no_batch_are_dropped(self):
        sent = batched([5])
        assert stored(sent + bytes(10), version=9)[21:] == sent[21:]
        assert stored(sent + sent[:-5], version=9)[21:] == sent[21:]
        assert refusal(sent + bytes(20), version=9).code == ErrorCode.CORRUPT_MESSAGE

    def test_zstd_needs_a_version_that_knows_it(self):
        sent = batch.encode_batch([Record(0, 5, 0, None, b"v")], Codec.ZSTD)
        assert refusal(sent, version=6).code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        assert verdict(sent, version=7).count == 1

    def test_a_batch_in_an_old_request_is_a_batch(self):
        assert stored(batched([5]), version=2)[21:] == batched([5])[21:]

    def test_equal_offsets_stay_as_brokers_leave_them(self):
        records = [raw.record(b"a"), raw.record(b"b")]
        assert [record.offset for record in records_of(stored(raw.batch(records)))] == [NEXT, NEXT]

    def test_wrong_offsets_in_compressed_batches_are_refused(self):
        records = b"".join([raw.record(b"a"), raw.record(b"b"), raw.record(b"c", offset_delta=9)])
        sent = raw.batch(gzip.compress(records), count=3, attributes=1)
        assert refusal(sent).code == ErrorCode.INVALID_RECORD

    def test_control_batches_are_the_brokers_own(self):
        marker = control.encode_marker(control.Marker(True, 0), 0, 5, producer_id=1, producer_epoch=0, leader_epoch=0)
        assert refusal(marker).code == ErrorCode.INVALID_RECORD


class TestCompaction:
    def test_every_record_needs_a_key(self):
        refused = refusal(raw.batch([raw.record(key=b"k"), raw.record(offset_delta=1)]), COMPACTED)
        assert refused.code == ErrorCode.INVALID_RECORD
        assert [index for index, _ in refused.record_errors] == [1]
        for sent in (
            raw.message(b"v", b"k") + raw.message(b"v"),
            raw.message(b"v") * 20,
            raw.message(b"v", magic=0),
            raw.wrapper(raw.message(b"v", b"k") + raw.message(b"v", offset=1), offset=1),
        ):
            assert refusal(sent, COMPACTED).code == ErrorCode.CORRUPT_MESSAGE

    def test_keyed_records_pass(self):
        for sent in (plain([5] * 20), wrapped([5, 6]), batched([5, 6], Codec.GZIP), batched([5], key=b"")):
            verdict(sent, COMPACTED)

    def test_keys_and_times_are_told_together(self):
        sent = raw.batch([raw.record(), raw.record(key=b"k", offset_delta=1, timestamp_delta=-NOW)], base_timestamp=NOW)
        refused = refusal(sent, replace(BOUNDED, compact=True))
        assert refused.code == ErrorCode.INVALID_TIMESTAMP
        assert [index for index, _ in refused.record_errors] == [0, 1]


class TestCodecOfTheTopic:
    @pytest.mark.parametrize("name", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
    @pytest.mark.parametrize("make", [plain, wrapped, batched, lambda times: batched(times, Codec.GZIP)])
    @pytest.mark.parametrize("config", [OPEN, APPENDED])
    def test_records_are_stored_with_it(self, make, name, config):
        sent = make([5, 9, 7])
        checked = verdict(sent, replace(config, compression=name))
        kept = bytes(checked.data)
        codec = Codec.NONE if name == "uncompressed" else Codec[name.upper()]
        assert {entry.attributes & 7 for entry in heads_in(kept)} == {codec}
        # Messages cannot carry zstd: a batch is what comes of it.
        assert {entry.magic for entry in heads_in(kept)} == {2 if name == "zstd" or sent[16] == 2 else 1}
        times = [NOW] * 3 if config.log_append_time else [5, 9, 7]
        found = records_of(kept)
        assert [(record.offset, record.timestamp) for record in found] == list(
            zip(range(NEXT, NEXT + 3), times, strict=True)
        )
        assert checked[5:9] == (max(times), checked.max_timestamp_offset, checked.first_timestamp, checked.append_time)

    def test_producer_and_sequence_survive(self):
        checked = verdict(batched([5, 6], producer=(8, 1, 3), attributes=0x10), replace(OPEN, compression="gzip"))
        header = raw.read_batch_header(bytes(checked.data))
        assert (header["producer_id"], header["producer_epoch"], header["base_sequence"]) == (8, 1, 3)
        assert (header["attributes"], header["leader_epoch"]) == (0x11, 4)
        assert checked.batches == (ProducerBatch(8, 1, 3, 4, NEXT, NEXT + 1, 6, True),)

    def test_zstd_in_old_messages_is_refused(self):
        config = replace(OPEN, compression="zstd", stored_magic=1)
        assert refusal(plain([5]), config).code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


class TestFormatOfTheTopic:
    @pytest.mark.parametrize("magic", [0, 1, 2])
    @pytest.mark.parametrize("make", [plain, wrapped, batched, lambda times: batched(times, Codec.GZIP)])
    @pytest.mark.parametrize("config", [OPEN, APPENDED])
    def test_records_are_stored_in_it(self, make, magic, config):
        checked = verdict(make([5, 9, 7]), replace(config, stored_magic=magic))
        kept = bytes(checked.data)
        assert {entry.magic for entry in heads_in(kept)} == {magic}
        assert checked.stored_magic == magic
        times = [NOW] * 3 if config.log_append_time else [5, 9, 7]
        times = times if magic else [-1] * 3
        assert [(record.offset, record.timestamp, record.key) for record in records_of(kept)] == [
            (NEXT + index, time, b"k") for index, time in enumerate(times)
        ]
        assert checked.max_timestamp == max(times)
        assert checked.append_time == (NOW if config.log_append_time else -1)

    def test_what_older_messages_cannot_say(self):
        older = replace(OPEN, stored_magic=1)
        for sent in (
            batched([5], producer=(5, 0, 0)),
            batched([5], attributes=0x10),
            raw.batch([raw.record(headers=((b"h", b"1"),))]),
        ):
            assert refusal(sent, older).code == ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT
        zstd = batch.encode_batch([Record(0, 5, 0, None, b"v")], Codec.ZSTD)
        assert refusal(zstd, older).code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


class TestManyMessagesAlike:
    """They are read by columns, as long as all of them have the same layout."""

    COUNT = 40

    def numbered(self, magic, **changes):
        fields = [{"value": b"v", "key": b"k", "offset": place, "timestamp": 7} for place in range(self.COUNT)]
        fields[17] |= changes
        return b"".join(raw.message(magic=magic, **each) for each in fields)

    def test_sizes_alone_do_not_make_a_layout(self):
        sent = self.numbered(1, value=b"", key=b"kk")
        assert [one.offset for one in entries.iter_records(stored(sent))] == list(range(NEXT, NEXT + self.COUNT))
        assert verdict(sent).count == self.COUNT

    def test_one_wrong_checksum_is_found(self):
        assert refusal(self.numbered(1, crc=1)).code is ErrorCode.CORRUPT_MESSAGE

    def test_those_in_a_wrapper_are_numbered_from_0(self):
        last = NEXT + self.COUNT - 1
        kept = stored(raw.wrapper(self.numbered(1), offset=self.COUNT - 1, timestamp=7))
        assert [one.offset for one in entries.iter_records(kept)] == list(range(NEXT, last + 1))
        again = stored(raw.wrapper(self.numbered(1, offset=3), offset=self.COUNT - 1, timestamp=7))
        assert [one.offset for one in entries.iter_records(again)] == list(range(NEXT, last + 1))
