"""Record sets built by the record builders of other clients are read here, and ours by theirs."""

import pytest
from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from aiokafka.record.legacy_records import LegacyRecordBatch, LegacyRecordBatchBuilder
from hypothesis import given
from hypothesis import strategies as st

from horolog.protocol.records import batch, entries
from horolog.protocol.records.compression import Codec
from horolog.protocol.records.convert import encode
from horolog.protocol.records.head import heads_in
from horolog.protocol.records.record import Record

# What aiokafka compresses with is optional there; these come with what this project needs anyway.
THEIR_CODECS = [Codec.NONE, Codec.GZIP]
VALUES = st.one_of(st.none(), st.binary(max_size=100))
HEADERS = st.lists(st.tuples(st.text(max_size=5), st.binary(max_size=5)), max_size=2)
ROWS = st.lists(st.tuples(st.integers(0, 2**41), VALUES, VALUES, HEADERS), min_size=1, max_size=20)


def as_records(rows, magic=2):
    return [
        Record(
            index,
            timestamp if magic else -1,
            0 if magic else -1,
            key,
            value,
            tuple((name.encode(), content) for name, content in headers) if magic == 2 else (),
        )
        for index, (timestamp, key, value, headers) in enumerate(rows)
    ]


@given(ROWS, st.sampled_from(THEIR_CODECS))
def test_their_batches_are_read(rows, codec):
    builder = DefaultRecordBatchBuilder(2, int(codec), 0, -1, -1, -1, 1 << 20)
    for index, (timestamp, key, value, headers) in enumerate(rows):
        assert builder.append(index, timestamp, key, value, headers) is not None
    data = bytes(builder.build())
    assert batch.crc_matches(data, 0, len(data))
    assert list(entries.iter_records(data)) == as_records(rows)


@given(ROWS, st.sampled_from(THEIR_CODECS))
def test_our_batches_are_read_by_them(rows, codec):
    theirs = DefaultRecordBatch(bytes(batch.encode_batch(as_records(rows), codec)))
    assert theirs.validate_crc()
    assert [(one.offset, one.timestamp, one.key, one.value, list(one.headers)) for one in theirs] == [
        (index, *row) for index, row in enumerate(rows)
    ]


@pytest.mark.parametrize("magic", [0, 1])
@given(ROWS, st.sampled_from(THEIR_CODECS))
def test_their_message_sets_are_read(magic, rows, codec):
    builder = LegacyRecordBatchBuilder(magic, int(codec), 1 << 20)
    for index, (timestamp, key, value, _) in enumerate(rows):
        assert builder.append(index, timestamp, key, value) is not None
    data = bytes(builder.build())
    found = list(entries.iter_records(data))
    if codec:  # a producer's wrapper has no offset yet: only the order counts
        found = [record._replace(offset=index) for index, record in enumerate(found)]
    assert found == as_records(rows, magic)


@pytest.mark.parametrize("magic", [0, 1])
@given(ROWS, st.sampled_from(THEIR_CODECS))
def test_our_message_sets_are_read_by_them(magic, rows, codec):
    records = as_records(rows, 1)
    found = []
    data = bytes(encode(records, magic, codec))
    for entry in heads_in(data):
        theirs = LegacyRecordBatch(data[entry.position : entry.position + entry.size_bytes], magic)
        assert theirs.validate_crc()
        found += [(one.offset, one.timestamp, one.key, one.value) for one in theirs]
    assert found == [(one.offset, one.timestamp if magic else None, one.key, one.value) for one in records]
