"""From what a fetch brought to records: every format, positions, gaps, aborted transactions, damage."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horolog.client.values.errors import KafkaError
from horolog.client.values.types import TopicPartition
from horolog.client.wire.decode import Chunk
from horolog.client.wire.fetch import RawFetch
from horolog.protocol.errors import ErrorCode
from horolog.protocol.records.batch import encode_batch, write_crc
from horolog.protocol.records.compression import Codec
from horolog.protocol.records.control import Marker, encode_marker
from horolog.protocol.records.head import TRANSACTIONAL_BIT
from horolog.protocol.records.message_set import encode_set, encode_wrapper
from horolog.protocol.records.record import Record

A = TopicPartition("t", 3)


def records(*offsets, time=1000):
    return [Record(offset, time + offset, 0, b"k", b"%d" % offset, ()) for offset in offsets]


def raw(*parts, aborted=()):
    return RawFetch(99, 99, 0, list(aborted), memoryview(b"".join(parts)))


def transactional(producer_id, *offsets):
    return encode_batch(records(*offsets), attributes=TRANSACTIONAL_BIT, producer_id=producer_id, producer_epoch=0)


def marker(offset, producer_id, *, committed):
    return encode_marker(Marker(committed, 0), offset, 5, producer_id=producer_id, producer_epoch=0, leader_epoch=0)


def offsets_of(chunk, step=100):
    taken = []
    while part := chunk.take(step):
        taken += [each.offset for each in part]
    return taken


def test_all_formats_in_one_fetch():
    data = [
        encode_set(records(0, 1), 0),
        encode_wrapper(records(2, 3), 1, Codec.GZIP),
        encode_set(records(4), 1),
        encode_batch(records(5, 6), Codec.LZ4, leader_epoch=8),
    ]
    chunk = Chunk(A, raw(*data), 0)
    got = chunk.take(100)
    assert [each.offset for each in got] == list(range(7))
    assert [each.timestamp_ms for each in got] == [-1, -1, 1002, 1003, 1004, 1005, 1006]
    assert {each[:2] for each in got} == {("t", 3)}
    assert [each.leader_epoch for each in got] == [-1] * 5 + [8] * 2
    assert chunk.is_empty
    assert chunk.position == 7


def test_it_begins_at_the_position():
    chunk = Chunk(A, raw(encode_batch(records(0, 1, 2, 3)), encode_batch(records(4, 5))), 2)
    assert offsets_of(chunk) == [2, 3, 4, 5]
    assert offsets_of(Chunk(A, raw(encode_batch(records(0, 1)), encode_batch(records(2))), 2)) == [2]


def test_what_is_cut_off_is_for_the_next_fetch():
    whole, cut = encode_batch(records(0, 1)), encode_batch(records(2, 3))[:-1]
    chunk = Chunk(A, raw(whole, cut), 0)
    assert chunk.end_position == 2
    assert offsets_of(chunk) == [0, 1]


def test_a_fetch_of_a_piece_only_is_told():
    assert Chunk(A, raw(encode_batch(records(0))[:-1]), 0).brought_nothing_whole
    assert not Chunk(A, raw(), 0).brought_nothing_whole
    assert not Chunk(A, raw(encode_batch(records(0))), 0).brought_nothing_whole


def test_the_position_passes_gaps_and_control_batches():
    """What a cleaner left out, and markers, are behind the reader as soon as nothing else is in front of him."""
    gap = encode_batch([*records(0), *records(9)])
    chunk = Chunk(A, raw(gap, marker(10, 7, committed=True)), 0)
    assert offsets_of(chunk) == [0, 9]
    assert chunk.position == 11
    assert chunk.is_empty


def test_aborted_transactions_are_hidden_from_those_who_want_committed_records():
    data = [
        transactional(1, 0, 1),
        transactional(2, 2),
        encode_batch(records(3)),
        marker(4, 1, committed=False),
        transactional(1, 5),
        marker(6, 2, committed=True),
        marker(7, 1, committed=True),
    ]
    assert offsets_of(Chunk(A, raw(*data, aborted=[(1, 0)]), 0, committed_only=True)) == [2, 3, 5]
    assert offsets_of(Chunk(A, raw(*data, aborted=[(1, 0)]), 0)) == [0, 1, 2, 3, 5]


def test_an_abort_that_begins_later_hides_nothing_before():
    data = [transactional(1, 0), marker(1, 1, committed=True), transactional(1, 2), marker(3, 1, committed=False)]
    assert offsets_of(Chunk(A, raw(*data, aborted=[(1, 2)]), 0, committed_only=True)) == [0]


@pytest.mark.parametrize("fetched_from", range(5))
def test_in_the_middle_of_an_aborted_transaction(fetched_from):
    data = [transactional(1, 0, 1), transactional(1, 2, 3), marker(4, 1, committed=False)]
    assert offsets_of(Chunk(A, raw(*data, aborted=[(1, 0)]), fetched_from, committed_only=True)) == []


def test_damage_comes_after_what_can_be_read_and_is_said_every_time():
    damaged = encode_batch(records(2, 3))
    damaged[-1] ^= 1
    chunk = Chunk(A, raw(encode_batch(records(0, 1)), damaged), 0)
    assert [each.offset for each in chunk.take(100)] == [0, 1]
    for _ in range(2):
        with pytest.raises(KafkaError, match="t-3 at offset 2") as caught:
            chunk.take(100)
        assert caught.value.code == ErrorCode.CORRUPT_MESSAGE
        assert not caught.value.retriable
    assert not chunk.is_empty


def test_checksums_may_be_left_unchecked():
    damaged = encode_batch(records(0))
    damaged[17] ^= 1  # the checksum itself
    assert offsets_of(Chunk(A, raw(damaged), 0, check_crcs=False)) == [0]


@given(st.lists(st.integers(1, 5), max_size=6), st.integers(1, 7), st.integers(0, 12))
def test_records_come_once_and_in_order_however_many_are_taken(sizes, step, start):
    data, offset = [], 0
    for size in sizes:
        data.append(encode_batch(records(*range(offset, offset + size))))
        offset += size
    chunk = Chunk(A, raw(*data), start)
    assert offsets_of(chunk, step) == list(range(start, offset))
    assert chunk.is_empty
    assert chunk.position == max(offset, start)


@given(st.binary(max_size=200), st.booleans())
def test_no_bytes_do_harm(data, committed_only):
    chunk = Chunk(A, raw(data), 0, committed_only=committed_only, check_crcs=False)
    for _ in range(50):
        try:
            if not chunk.take(10):
                break
        except KafkaError:
            break


@given(st.integers(0, 300), st.binary(min_size=1, max_size=4))
def test_no_change_of_a_batch_does_harm(at, change):
    data = bytearray(encode_batch(records(*range(10)), Codec.GZIP) + encode_wrapper(records(10, 11), 1, Codec.GZIP))
    data[at : at + len(change)] = change
    chunk = Chunk(A, raw(bytes(data)), 0, committed_only=True, check_crcs=False)
    for _ in range(50):
        try:
            if not chunk.take(10):
                break
        except KafkaError:
            break


@pytest.mark.parametrize("count", [999, 1000, 1001, 2000, 2500])
@pytest.mark.parametrize("step", [1, 300, 1000, 1001, 5000])
def test_a_large_batch_is_made_in_parts_and_all_of_it_comes(count, step):
    chunk = Chunk(A, raw(encode_batch(records(*range(count)), Codec.LZ4), encode_batch(records(count))), 7)
    assert len(chunk.take(1)) == 1
    assert len(chunk._decoded) <= 1000, "what nobody has asked for takes no memory"
    assert offsets_of(chunk, step) == list(range(8, count + 1))
    assert chunk.is_empty
    assert chunk.position == count + 1


@pytest.mark.parametrize("step", [300, 1000, 5000])
def test_a_record_that_cannot_be_read_in_a_later_part_hides_nothing_before_it(step):
    data = encode_batch(records(*range(2400)))
    data[57:61] = (2401).to_bytes(4, "big")  # one more than there is
    write_crc(data)
    chunk = Chunk(A, raw(data, encode_batch(records(2401))), 0)
    taken = []
    while len(taken) < 2000:
        taken += chunk.take(step)
    assert [each.offset for each in taken] == list(range(2000))
    with pytest.raises(KafkaError) as failed:
        chunk.take(step)
    assert (failed.value.code, chunk.position) == (ErrorCode.CORRUPT_MESSAGE, 2000)
    assert not chunk.is_empty
    with pytest.raises(KafkaError):
        chunk.take(step)
