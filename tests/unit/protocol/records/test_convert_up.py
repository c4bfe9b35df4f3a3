"""Up to v2: what a batch says of old messages, and which are refused."""

import struct
import zlib

import pytest

from horolog.protocol.errors import DecodeError
from horolog.protocol.records import message_set
from horolog.protocol.records.batch import read_header
from horolog.protocol.records.compression import Codec, TooMuchDataError, compress
from horolog.protocol.records.convert_up import WrongChecksumError, iter_up
from horolog.protocol.records.entries import iter_records
from horolog.protocol.records.head import HEADER_BYTES
from horolog.protocol.records.record import Record
from horolog.protocol.records.timestamps import TimestampType
from tests.support import raw_records as raw

CREATE_TIME, APPEND_TIME = int(TimestampType.CREATE_TIME), int(TimestampType.LOG_APPEND_TIME)


def records_of(data, **options):
    return [record for one in iter_up(data, **options) for record in iter_records(one.data)]


def test_v0_has_no_time_and_v1_keeps_its_own():
    data = raw.message(b"a", offset=7, magic=0) + raw.message(None, b"k", offset=9, timestamp=5)
    assert records_of(data) == [Record(7, -1, CREATE_TIME, None, b"a"), Record(9, 5, CREATE_TIME, b"k", None)]


def test_messages_of_one_format_share_a_batch_with_their_gaps():
    data = b"".join(raw.message(b"v", offset=offset, timestamp=offset) for offset in (3, 4, 8))
    (one,) = iter_up(data)
    header = read_header(one.data)
    assert (header.base_offset, header.last_offset, header.count, header.max_timestamp) == (3, 8, 3, 8)
    assert (header.leader_epoch, header.producer_id, header.base_sequence) == (-1, -1, -1)
    assert (one.end, one.next_offset, one.work_bytes) == (len(data), 9, len(data))


def test_a_batch_says_the_epoch_of_its_first_offset():
    data = raw.message(b"a", offset=7) + raw.wrapper(raw.message(b"b", offset=0), offset=30)
    headers = [read_header(one.data) for one in iter_up(data, epoch_of=lambda offset: offset // 10)]
    assert [one.leader_epoch for one in headers] == [0, 3]


def test_append_times_that_differ_need_batches_of_their_own():
    times = (5, 5, 6)
    data = b"".join(raw.message(offset=n, attributes=8, timestamp=time) for n, time in enumerate(times))
    headers = [read_header(one.data) for one in iter_up(data)]
    assert [(one.base_offset, one.count, one.max_timestamp) for one in headers] == [(0, 2, 5), (2, 1, 6)]
    assert {one.timestamp_type for one in headers} == {TimestampType.LOG_APPEND_TIME}
    assert [one.timestamp for one in records_of(data)] == [5, 5, 6]


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
def test_a_wrapper_keeps_its_codec_and_its_messages_their_offsets(magic, codec):
    inner = [Record(offset, 10 * offset if magic else -1, CREATE_TIME, None, b"v" * 50) for offset in (40, 41, 43)]
    (one,) = iter_up(message_set.encode_wrapper(inner, magic, codec))
    header = read_header(one.data)
    assert (header.codec, header.base_offset, header.last_offset) == (codec, 40, 43)
    assert header.max_timestamp == (430 if magic else -1)
    assert list(iter_records(one.data)) == inner


def test_the_append_time_of_a_wrapper_is_that_of_all_in_it():
    inner = raw.message(b"a", offset=0, timestamp=5) + raw.message(b"b", offset=1, timestamp=900)
    (one,) = iter_up(raw.wrapper(inner, offset=11, timestamp=77, attributes=8))
    header = read_header(one.data)
    assert (header.base_timestamp, header.max_timestamp) == (5, 77), "the records keep their distances, as Kafka's do"
    assert [(one.offset, one.timestamp) for one in iter_records(one.data)] == [(10, 77), (11, 77)]


def test_a_batch_reaches_as_far_as_its_wrapper():
    """Or a reader would ask for what follows the last record, and be given the same wrapper again."""
    inner = raw.message(b"a", offset=5, magic=0) + raw.message(b"b", offset=6, magic=0)
    (one,) = iter_up(raw.wrapper(inner, offset=9, magic=0))
    assert read_header(one.data).last_offset == 9
    assert one.next_offset == 10
    with pytest.raises(DecodeError, match="holds offset"):
        list(iter_up(raw.wrapper(inner, offset=2**40, magic=0)))


def test_offsets_that_do_not_ascend_get_batches_of_their_own():
    inner = raw.message(b"a", offset=5, magic=0) + raw.message(b"b", offset=3, magic=0)
    assert [one.offset for one in records_of(raw.wrapper(inner, offset=5, magic=0))] == [5, 3]
    far = raw.message(offset=0) + raw.message(offset=2**31) + raw.message(offset=2**31 + 1)
    assert [read_header(one.data).count for one in iter_up(far)] == [1, 2]
    apart = raw.message(offset=0, timestamp=-(2**63)) + raw.message(offset=1, timestamp=2**63 - 1)
    assert [one.timestamp for one in records_of(apart)] == [-(2**63), 2**63 - 1]


def test_batches_are_no_larger_than_asked_for():
    data = b"".join(raw.message(b"x" * 100, offset=n) for n in range(50))
    for size in (HEADER_BYTES, 400, 1000):
        batches = list(iter_up(data, batch_bytes=size))
        assert all(len(one.data) <= size or read_header(one.data).count == 1 for one in batches)
        assert len(records_of(data, batch_bytes=size)) == 50


def test_damage_is_told_behind_what_is_good():
    good = raw.message(b"a")
    found = iter_up(good + raw.message(b"b", offset=1, crc=1))
    assert next(found).end == len(good)
    with pytest.raises(WrongChecksumError, match=f"at {len(good)}"):
        next(found)
    found = iter_up(good + raw.wrapper(raw.message(b"a")[:-1], offset=1))
    assert next(found).end == len(good)
    with pytest.raises(DecodeError):
        next(found)


KEY_LENGTH_AT, VALUE_LENGTH_AT = 26, 31  # of v1, with a key of one byte


@pytest.mark.parametrize("at", [KEY_LENGTH_AT, VALUE_LENGTH_AT])
def test_a_key_or_value_that_leaves_its_message_is_told_behind_what_is_good(at):
    good, bad = raw.message(b"a"), bytearray(raw.message(b"v", b"k", offset=1))
    struct.pack_into(">i", bad, at, 100)
    struct.pack_into(">I", bad, 12, zlib.crc32(bad[16:]))
    found = iter_up(good + bytes(bad))
    assert next(found).end == len(good)
    with pytest.raises(DecodeError):
        next(found)


def test_messages_of_two_timestamp_types_need_batches_of_their_own():
    data = raw.message(b"a", timestamp=5) + raw.message(b"b", offset=1, timestamp=5, attributes=8)
    assert [one.timestamp_type for one in records_of(data)] == [CREATE_TIME, APPEND_TIME]
    assert len(list(iter_up(data))) == 2


def test_times_need_not_ascend():
    data = b"".join(raw.message(b"v", offset=n, timestamp=timestamp) for n, timestamp in enumerate((5, 3, 9, 4)))
    (one,) = iter_up(data)
    assert [record.timestamp for record in iter_records(one.data)] == [5, 3, 9, 4]
    assert read_header(one.data).max_timestamp == 9


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
def test_what_would_grow_too_large_is_refused(codec):
    inner = b"".join(raw.message(bytes(10_000), offset=n) for n in range(10))
    bomb = message_set.encode_message(9, 1, None, compress(codec, inner, 1), 1, attributes=codec)
    assert len(records_of(bomb)) == 10
    with pytest.raises(TooMuchDataError):
        records_of(bomb, limit_bytes=50_000)


def test_a_codec_that_does_not_exist_is_refused():
    with pytest.raises(DecodeError, match="codec 4"):
        records_of(raw.message(b"z", attributes=4))
