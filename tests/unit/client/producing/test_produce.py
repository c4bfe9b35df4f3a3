"""Batches in the format that the version of the request carries."""

from functools import partial

import pytest

from horolog.client.producing.accumulator import Batch, Pending
from horolog.client.producing.produce import build_produce, checked_bytes, checked_headers, checked_time, encode_records
from horolog.client.values.errors import KafkaError
from horolog.client.values.types import TopicPartition
from horolog.protocol.errors import ErrorCode
from horolog.protocol.records.batch import read_header
from horolog.protocol.records.compression import Codec
from horolog.protocol.records.entries import iter_records
from horolog.protocol.records.head import heads_in

A = TopicPartition("t", 3)


def batch(headers=()):
    made = Batch(1, A, 0.0)
    for index in range(3):
        made.add(Pending(A, b"k", b"%d" % index, tuple(headers), 100 - index, 10, None))
    return made


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
@pytest.mark.parametrize(("version", "magic"), [(0, 0), (1, 0), (2, 1), (3, 2), (11, 2)])
def test_formats(version, magic, codec):
    data = encode_records(batch(), codec, version)
    assert {each.magic for each in heads_in(data)} == {magic}
    got = list(iter_records(data))
    assert [(each.offset, each.key, each.value) for each in got] == [(0, b"k", b"0"), (1, b"k", b"1"), (2, b"k", b"2")]
    assert [each.timestamp for each in got] == ([100, 99, 98] if magic else [-1] * 3)


def test_what_an_old_format_cannot_say_is_an_error_not_a_loss():
    with pytest.raises(KafkaError) as caught:
        encode_records(batch([(b"h", b"1")]), Codec.NONE, 2)
    assert caught.value.code == ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT
    with pytest.raises(KafkaError) as caught:
        encode_records(batch(), Codec.ZSTD, 6)
    assert caught.value.code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert list(iter_records(encode_records(batch(), Codec.ZSTD, 7)))


def test_the_producer_is_in_the_header():
    each = batch()
    assert read_header(encode_records(each, Codec.NONE, 9)).producer_id == -1
    each.producer = (77, 3, 12)
    header = read_header(encode_records(each, Codec.NONE, 9, transactional=True))
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (77, 3, 12)
    assert header.is_transactional


def test_partitions_are_grouped_by_topic():
    other = Batch(2, TopicPartition("u", 0), 0.0)
    third = Batch(3, TopicPartition("t", 4), 0.0)
    request = build_produce(
        [(batch(), b"1"), (other, b"2"), (third, b"3")], acks=-1, timeout_ms=5, transactional_id="x"
    )
    assert [(topic.name, [each.index for each in topic.partition_data]) for topic in request.topic_data] == [
        ("t", [3, 4]),
        ("u", [0]),
    ]


@pytest.mark.parametrize(
    ("check", "wrong", "message"),
    [
        (checked_headers, [("trace", b"7")], "the name of a header is str, not bytes; encode it"),
        (checked_headers, [(b"trace", "7")], "the header b'trace' is str, not bytes; encode it"),
        (checked_headers, [(b"trace", 7)], "the header b'trace' is int, not bytes"),
        (checked_headers, [(None, b"7")], "a header without a name"),
        (partial(checked_bytes, "the value"), "text", "the value is str, not bytes; encode it"),
        (partial(checked_bytes, "the value"), {"a": 1}, "the value is dict, not bytes"),
        (checked_time, 7.5, "timestamp_ms is float, not int"),
        (checked_time, 2**63, "does not fit into 64 bits"),
    ],
)
def test_a_record_that_cannot_be_written_says_why(check, wrong, message):
    with pytest.raises((TypeError, ValueError), match=message):
        check(wrong)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_what_is_like_bytes_becomes_bytes_that_do_not_change(kind):
    original = bytearray(b"value")
    checked = checked_bytes("the value", kind(original))
    assert (checked, type(checked)) == (b"value", bytes)
    ((name, content),) = checked_headers([(kind(original), kind(original))])
    original[:] = b"other"
    assert {checked, name, content} == {b"value"}
    assert {type(name), type(content)} == {bytes}


def test_nothing_and_integers_of_other_types_are_accepted():
    assert checked_bytes("the key", None) is None
    assert checked_headers([(b"trace", None)]) == ((b"trace", None),)
    assert (checked_time(True), type(checked_time(True))) == (1, int)
