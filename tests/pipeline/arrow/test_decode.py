"""The columnar decoder gives what the plain one gives, whatever the bytes, and tells damage as it does."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from horolog.pipeline.arrow import columns
from horolog.pipeline.arrow import decode as decode_module
from horolog.pipeline.arrow.columns import Source
from horolog.pipeline.arrow.decode import OffsetBounds, decode, decode_plain
from horolog.protocol.errors import DecodeError
from horolog.protocol.records import control
from horolog.protocol.records.aborted import AbortedProducers
from horolog.protocol.records.batch import encode_batch, write_crc
from horolog.protocol.records.compression import Codec
from horolog.protocol.records.entries import iter_records
from horolog.protocol.records.head import TRANSACTIONAL_BIT, heads_in
from horolog.protocol.records.record import Record
from tests.pipeline import samples

SOURCE = Source("topic", 3, include_headers=True)
EVERYTHING = OffsetBounds()


@given(samples.chunks(), st.integers(0, 200), st.integers(0, 200))
def test_it_shows_what_the_plain_decoder_shows(data, skipped, wanted):
    first = next(iter_records(data)).offset
    bounds = OffsetBounds(first + skipped, first + skipped + wanted) if wanted else EVERYTHING
    plain = decode_plain(data, SOURCE, bounds)
    assert samples.rows_in(decode(data, SOURCE, bounds)) == samples.rows_in([plain])
    records = [record for record in iter_records(data) if bounds.start <= record.offset < bounds.end]
    assert samples.rows_in([plain]) == samples.rows_of(records, "topic", 3, headers=True)


@given(samples.chunks())
def test_the_columnar_way_is_the_one_that_is_taken(data):
    def refuse(*_arguments):
        raise AssertionError("read record by record")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(decode_module, "plain_batch", refuse)
        list(decode(data, SOURCE, EVERYTHING))


@given(samples.chunks(), st.data())
def test_a_changed_byte_is_told_or_changes_nothing_that_is_checked(data, draw):
    position = draw.draw(st.integers(0, len(data) - 1))
    changed = bytearray(data)
    changed[position] ^= 1 << draw.draw(st.integers(0, 7))
    assert shown(decode, bytes(changed)) == shown(lambda *each: [decode_plain(*each)], bytes(changed))


@given(samples.similar(0, headers=True), st.data())
def test_records_that_are_damaged_under_a_right_checksum_are_told(records, draw):
    data = encode_batch(records)
    position = draw.draw(st.integers(61, len(data) - 1))
    data[position] = draw.draw(st.integers(0, 255))
    write_crc(data)
    assert shown(decode, bytes(data)) == shown(lambda *each: [decode_plain(*each)], bytes(data))


def shown(read, data):
    try:
        return samples.rows_in(read(data, SOURCE, EVERYTHING))
    except DecodeError:
        return "damaged"


def record(offset, value=b"v"):
    return Record(offset, samples.BASE_MS + offset, 0, None, value)


def transaction(offset, producer_id, count=2):
    records = [record(offset + n) for n in range(count)]
    return encode_batch(records, attributes=TRANSACTIONAL_BIT, producer_id=producer_id, producer_epoch=0)


def marker(offset, producer_id, *, committed):
    said = control.Marker(committed=committed, coordinator_epoch=0)
    return control.encode_marker(
        said, offset, samples.BASE_MS, producer_id=producer_id, producer_epoch=0, leader_epoch=0
    )


def test_aborted_transactions_are_left_out_for_those_who_ask():
    data = b"".join(
        [
            transaction(0, 7),
            transaction(2, 8),
            encode_batch([record(4)]),
            marker(5, 7, committed=False),
            transaction(6, 7),
            marker(8, 7, committed=True),
            marker(9, 8, committed=True),
        ]
    )
    assert offsets(data, None) == [0, 1, 2, 3, 4, 6, 7]
    assert offsets(data, [(7, 0)]) == [2, 3, 4, 6, 7]
    assert offsets(data, [(7, 0), (8, 2)]) == [4, 6, 7]


def test_an_aborted_transaction_that_began_before_the_chunk_is_known():
    data = transaction(2, 7) + marker(4, 7, committed=False) + transaction(5, 7)
    assert offsets(data, [(7, 0)]) == [5, 6]
    assert offsets(data, [(7, 0)], start=3) == [5, 6]


def offsets(data, aborted, start=0):
    known = None if aborted is None else AbortedProducers(aborted)
    return [row[4] for row in samples.rows_in(decode(data, SOURCE, OffsetBounds(start), aborted=known))]


def test_headers_are_a_column_only_when_asked_for():
    (found,) = decode(bytes(encode_batch([record(0)])), Source("t", 0), EVERYTHING)
    assert "headers" not in found.schema.names


def test_times_beyond_what_spark_can_hold_are_the_last_it_can():
    far = [Record(0, 2**63 - 1, 0, None, b""), Record(1, -(2**63), 0, None, b""), Record(2, 5, 0, None, b"")]
    rows = samples.rows_in(decode(b"".join(encode_batch([one]) for one in far), SOURCE, EVERYTHING))
    assert [row[5] for row in rows] == [9223372036854775, -9223372036854775, 5]


def test_large_chunks_are_taken_in_stretches():
    batches = [encode_batch([record(n, b"x" * 100_000)], Codec.LZ4) for n in range(400)]
    found = list(decode(b"".join(batches), SOURCE, EVERYTHING))
    assert len(found) > 1
    assert [row[4] for row in samples.rows_in(found)] == list(range(400))
    assert sum(1 for _ in heads_in(b"".join(batches))) == 400


def test_rows_of_files_have_the_types_that_a_broker_gives():
    """Format v0 has no type: a broker calls its times those of the producer."""
    records = [Record(0, -1, -1, None, b"v", ()), Record(1, samples.BASE_MS, 1, b"k", None, ())]
    online = columns.plain_batch(records, Source("t", 0, False))
    files = columns.plain_batch(records, Source("t", 0, False, from_files=True))
    assert online["timestampType"].to_pylist() == [-1, 1]
    assert files["timestampType"].to_pylist() == [0, 1]


def test_rows_may_have_the_id_of_their_topic_and_their_headers():
    said = ((b"k\xff", None), (b"", b"v"))
    records = [Record(0, samples.BASE_MS, 0, None, b"v", said), Record(1, samples.BASE_MS, 0, None, b"v", ())]
    found = columns.plain_batch(records, Source("t", 0, True, topic_id="id", include_topic_id=True))
    assert found["topic_id"].to_pylist() == ["id", "id"]
    assert found["headers"].to_pylist() == [[{"key": "k\ufffd", "value": None}, {"key": "", "value": b"v"}], None]
    assert columns.plain_batch([], Source("t", 0, False)).num_rows == 0


def test_times_beyond_what_arrow_has_are_its_largest():
    records = [Record(0, 2**62, 0, None, b"v", ()), Record(1, -(2**62), 0, None, b"v", ())]
    found = columns.plain_batch(records, Source("t", 0, False))["timestamp"].view(pa.int64()).to_pylist()
    assert found[0] == -found[1] > 2**62
