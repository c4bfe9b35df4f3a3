"""Record formats with any content: everything written is read back, and damaged bytes are told, never anything else."""

import gzip
from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from horolog.protocol.errors import DecodeError
from horolog.protocol.records import batch, entries, message_set
from horolog.protocol.records.compression import Codec
from horolog.protocol.records.convert import ConversionError, convert_down, encode
from horolog.protocol.records.head import heads_in
from horolog.protocol.records.record import Record
from horolog.protocol.records.scan import scan_records
from tests.support import raw_records as raw

INT64 = st.integers(-(2**63), 2**63 - 1)
TIMES = st.one_of(st.integers(-1, 2_000_000_000_000), st.sampled_from([-1, 0, 1_700_000_000_000]))
SMALL_BYTES = st.one_of(st.none(), st.binary(max_size=20), st.integers(0, 300).map(lambda size: b"x" * size))
HEADERS = st.lists(st.tuples(st.binary(max_size=5), st.one_of(st.none(), st.binary(max_size=5))), max_size=2)
OLD_CODECS = st.sampled_from([Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4])


@st.composite
def record_lists(draw, times=TIMES, headers=HEADERS):
    offset = draw(st.integers(0, 2**40))
    found = []
    for _ in range(draw(st.integers(1, 8))):
        made = Record(offset, draw(times), 0, draw(SMALL_BYTES), draw(SMALL_BYTES), tuple(draw(headers)))
        found.append(made)
        offset += draw(st.integers(1, 3))
    return found


@st.composite
def similar_records(draw):
    """Encoded records in runs of the same shape, as batches have them: (bytes, how many)."""
    parts = []
    index = draw(st.sampled_from([0, 0, 50, 8180]))
    for _ in range(draw(st.integers(1, 4))):
        size = draw(st.integers(0, 200))
        key = draw(st.sampled_from([None, b"", b"key"]))
        spread = draw(st.sampled_from([0, 1, 40]))
        headers = draw(HEADERS)
        step = draw(st.sampled_from([0, 1, -3, 900, 10**7]))
        for _ in range(draw(st.integers(1, 60))):
            value = b"v" * (size + index * 7 % (spread + 1))
            parts.append(raw.record(value, key, index, step * index, headers))
            index += draw(st.sampled_from([1] * 40 + [0, 2]))
    return b"".join(parts), len(parts)


def model_of(records, count):
    """What reading record by record says; None if it cannot be read. Bit 3: no time is computed, so none can overflow."""
    header = batch.BatchHeader(0, 0, 0, 2, 0, 8, 0, 0, 0, -1, -1, -1, count)
    try:
        found = list(batch.iter_records_of(records, header))
    except DecodeError:
        return None
    in_order = [record.offset for record in found] == list(range(count))
    return in_order, any(record.key is None for record in found)


def times_of(records, count):
    header = batch.BatchHeader(0, 0, 0, 2, 0, 0, 0, 0, 0, -1, -1, -1, count)
    found = [record.timestamp for record in batch.iter_records_of(records, header)]
    return min(found), max(found)


@given(similar_records())
def test_a_scan_says_what_reading_says(made):
    records, count = made
    scan = scan_records(records, 0, count)
    assert (scan.in_order, scan.has_null_key) == model_of(records, count)
    assert scan[:2] == times_of(records, count)
    for buffer in (bytearray(b"front" + records), memoryview(bytearray(b"front" + records))):
        assert scan_records(buffer, 5, count) == scan


@given(similar_records(), st.data())
def test_a_scan_refuses_exactly_what_cannot_be_read(made, data):
    records, count = made
    damaged = bytearray(records)
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(
            st.one_of(st.integers(0, 255), st.sampled_from([0, 1, 2, 0x7F, 0x80, 0xFF]))
        )
    count += data.draw(st.sampled_from([0, 0, 0, 1, -1]))
    expected = model_of(bytes(damaged), count)
    try:
        scan = scan_records(bytes(damaged), 0, count)
    except DecodeError:
        assert expected is None
    else:
        assert (scan.in_order, scan.has_null_key) == expected


@given(record_lists(times=INT64), st.sampled_from(Codec))
def test_batches_survive(records, codec):
    if any(not -(2**63) <= record.timestamp - records[0].timestamp < 2**63 for record in records):
        return  # farther apart than a batch can say
    assert list(entries.iter_records(bytes(batch.encode_batch(records, codec)))) == records


@given(record_lists(headers=st.just([])), st.sampled_from([0, 1]), OLD_CODECS)
def test_message_sets_survive(records, magic, codec):
    written = bytes(encode(records, magic, codec))
    if magic == 0:
        records = [record._replace(timestamp=-1, timestamp_type=-1) for record in records]
    assert list(entries.iter_records(written)) == records


@given(record_lists(), st.sampled_from([1, 2]), st.sampled_from([0, 1]), OLD_CODECS)
def test_converting_down_keeps_all_but_what_the_format_lacks(records, source, target, codec):
    data = bytes(encode(records, source, codec))
    expected = [record._replace(headers=()) for record in records]
    if target == 0:
        expected = [record._replace(timestamp=-1, timestamp_type=-1) for record in expected]
    converted = convert_down(data, target)
    assert list(entries.iter_records(converted)) == expected
    assert convert_down(converted, target) == converted


@given(st.lists(st.tuples(record_lists(), st.sampled_from([0, 1, 2]), OLD_CODECS), min_size=1, max_size=4), st.data())
def test_damaged_logs_raise_nothing_but_decode_errors(parts, data):
    log = bytearray(b"".join(bytes(encode(records, magic, codec)) for records, magic, codec in parts))
    for _ in range(data.draw(st.integers(1, 4))):
        log[data.draw(st.integers(0, len(log) - 1))] = data.draw(st.integers(0, 255))
    del log[data.draw(st.integers(1, len(log))) :]
    for read in (
        lambda: list(entries.iter_records(bytes(log), include_control=True)),
        lambda: convert_down(bytes(log), 0),
        lambda: [entries.check_crc(log, one.position, one.size_bytes, one.magic) for one in heads_in(log)],
    ):
        with suppress(DecodeError, ConversionError):
            read()


@given(st.binary(max_size=200))
def test_any_bytes_raise_nothing_but_decode_errors(data):
    for records in (
        data,
        raw.message(data, attributes=1),
        raw.wrapper(data),
        raw.batch(gzip.compress(data), count=1, attributes=1),
    ):
        try:
            found = list(entries.iter_records(records))
        except DecodeError:
            continue
        assert all(isinstance(record, Record) for record in found)


@given(st.integers(1, 2**31 - 1), st.binary(max_size=50))
def test_counts_that_lie_cost_nothing(count, body):
    """A count is believed only as far as the bytes go, before anything is made for it."""
    lying = raw.batch(body, count=count)
    with suppress(DecodeError):
        assert len(list(batch.iter_batch(lying))) == count


def test_wrappers_are_read_as_messages_say():
    records = [Record(5, 10, 0, None, b"a"), Record(6, 20, 0, b"k", None)]
    data = message_set.encode_wrapper(records, 1, Codec.LZ4)
    assert [message[:4] for message in raw.read_set(data)] == [(6, 1, 3, 20)]
