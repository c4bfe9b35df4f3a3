"""Encoded column by column, everything is as it was meant, record by record, and goes where every Kafka client would send it."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from horolog.client.producing.partitioner import murmur2, partition_of_key
from horolog.pipeline.writing.outgoing import Outgoing, by_partition, cut, encode, hash_keys
from horolog.protocol.records.batch import iter_batch, read_header
from horolog.protocol.records.compression import Codec
from horolog.protocol.records.entries import check_crc
from tests.pipeline import samples

BYTES = st.one_of(st.none(), st.binary(max_size=20), st.integers(0, 20_000).map(bytes))
TIMES = st.one_of(st.integers(-1, 2**41), st.sampled_from([-(2**53), 2**53, samples.BASE_MS]))
HEADERS = st.lists(st.tuples(st.binary(max_size=5), st.one_of(st.none(), st.binary(max_size=200))), max_size=3).map(
    tuple
)
ROWS = st.lists(st.tuples(BYTES, BYTES, TIMES, HEADERS), min_size=1, max_size=80)


def outgoing(rows):
    keys, values, times, headers = zip(*rows, strict=True)
    said = list(headers) if any(headers) else None
    return Outgoing(pa.array(keys, pa.binary()), pa.array(values, pa.binary()), np.array(times, np.int64), said)


def shown(batch):
    return [(one.key, one.value, one.timestamp, one.headers) for one in iter_batch(batch)]


@given(ROWS, st.sampled_from(list(Codec)), st.integers(0, 5))
def test_a_batch_holds_what_was_put_in(rows, codec, skipped):
    rows = rows[skipped:] or rows
    batch = bytes(encode(outgoing([(None, None, 0, ()), *rows]).slice(1, len(rows) + 1), codec, (7, 2), 30))
    assert shown(batch) == rows
    header = read_header(batch)
    assert (header.producer_id, header.producer_epoch, header.base_sequence, header.codec) == (7, 2, 30, codec)
    assert header.max_timestamp == max(-1, *(row[2] for row in rows))
    assert [one.offset for one in iter_batch(batch)] == list(range(len(rows)))
    assert check_crc(batch, 0, len(batch), 2)


@given(ROWS, st.integers(1, 30_000))
def test_batches_are_of_about_the_size_asked_for(rows, batch_bytes):
    batches = cut(outgoing(rows), batch_bytes)
    assert [row for one in batches for row in shown(bytes(encode(one, Codec.NONE, (1, 0), 0)))] == rows
    for one in batches:
        assert one.size == 1 or len(encode(one, Codec.NONE, (1, 0), 0)) <= batch_bytes + 61 + 20 * one.size


KEYS = st.lists(st.one_of(st.binary(max_size=30), st.just(b"x" * 300)), max_size=30)


@given(KEYS)
def test_keys_hash_as_in_every_client(keys):
    assert list(hash_keys(pa.array([b"skipped", *keys], pa.binary()).slice(1))) == [murmur2(key) for key in keys]


@given(ROWS, st.integers(1, 7), st.data())
def test_records_go_to_the_partition_named_or_that_of_their_key(rows, count, draw):
    named = [draw.draw(st.integers(-1, count - 1)) for _ in rows]
    found = by_partition("t", outgoing(rows), np.array(named), list(range(count)), lambda: 0.99)
    for partition in range(count):
        expected = [
            row
            for row, one in zip(rows, named, strict=True)
            if partition == (one if one >= 0 else place(row[0], count))
        ]
        records = found.get(("t", partition))
        assert expected == ([] if records is None else shown(bytes(encode(records, Codec.NONE, (1, 0), 0))))


def place(key, count):
    return count - 1 if key is None else partition_of_key(key, count)
