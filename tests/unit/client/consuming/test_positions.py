"""Where a consumer is, and how it goes round its partitions."""

import pytest

from horolog.client.consuming.positions import Positions
from horolog.client.values.errors import KafkaError
from horolog.client.values.types import TopicPartition
from horolog.client.wire.decode import Chunk
from horolog.client.wire.fetch import RawFetch
from horolog.protocol.records.batch import encode_batch
from horolog.protocol.records.record import Record

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def chunk(partition, *offsets, damaged=False):
    data = encode_batch([Record(offset, 0, 0, None, b"", ()) for offset in offsets])
    if damaged:
        data[-1] ^= 1
    return Chunk(partition, RawFetch(9, 9, 0, [], memoryview(bytes(data))), offsets[0])


@pytest.fixture
def positions():
    made = Positions(partition_max_bytes=100)
    made.assign([A, B])
    for partition in (A, B):
        made.get(partition).seek(0)
    return made


def test_new_partitions_have_no_position_and_old_ones_keep_theirs(positions):
    positions.get(A).seek(5)
    positions.assign([A, TopicPartition("t", 2)])
    assert positions.get(A).position == 5
    assert positions.unknown() == [TopicPartition("t", 2)]
    assert B not in positions
    with pytest.raises(KafkaError, match="not assigned"):
        positions.get(B)


def test_partitions_take_turns(positions):
    positions.add(A, chunk(A, 0, 1, 2, 3))
    positions.add(B, chunk(B, 0, 1))
    taken = [positions.take(2) for _ in range(3)]
    assert [{each.partition for each in part} for part in taken] == [{0}, {1}, {0}]
    assert positions.get(A).position == 4


def test_one_call_takes_from_several(positions):
    positions.add(A, chunk(A, 0, 1))
    positions.add(B, chunk(B, 0, 1))
    assert len(positions.take(100)) == 4
    assert not positions.has_buffered()


def test_paused_partitions_are_neither_read_nor_fetched(positions):
    positions.add(A, chunk(A, 0, 1))
    positions.get(A).paused = True
    assert positions.take(10) == []
    assert positions.to_fetch() == [B]
    positions.get(A).paused = False
    assert len(positions.take(10)) == 2


def test_what_is_ahead_is_bounded(positions):
    while A in positions.to_fetch():
        positions.add(A, chunk(A, positions.get(A).fetch_offset))
    assert 100 <= positions.get(A).buffered_bytes < 200
    positions.take(100)
    assert A in positions.to_fetch()


def test_a_seek_throws_away_what_is_ahead_and_what_is_coming(positions):
    state = positions.get(A)
    before = state.round
    positions.add(A, chunk(A, 0, 1))
    state.seek(7)
    assert positions.take(10) == []
    assert state.round != before
    assert (state.position, state.fetch_offset, state.buffered_bytes) == (7, 7, 0)


def test_a_partition_that_comes_back_is_another_round(positions):
    before = positions.get(A).round
    positions.assign([])
    positions.assign([A])
    assert positions.get(A).round != before


def test_damage_in_one_partition_does_not_keep_others_from_being_read(positions):
    positions.add(A, chunk(A, 0, damaged=True))
    positions.add(B, chunk(B, 0, 1))

    def outcome():
        try:
            return len(positions.take(10))
        except KafkaError as error:
            return error.message[:15]

    assert [outcome() for _ in range(3)] == ["t-0 at offset 0", 2, "t-0 at offset 0"]
    positions.get(A).seek(1)
    positions.add(A, chunk(A, 1))
    assert outcome() == 1


def test_a_batch_whose_records_are_gone_is_passed(positions):
    """As after compaction: the batch reaches to offset 4, and has no record from 2 on."""
    data = encode_batch([Record(0, 0, 0, None, b"", ())], last_offset=4)
    positions.get(A).seek(2)
    positions.add(A, Chunk(A, RawFetch(9, 9, 0, [], memoryview(bytes(data))), 2))
    assert positions.take(10) == []
    assert (positions.get(A).position, positions.get(A).fetch_offset) == (5, 5)


def test_a_fetch_that_brings_nothing_changes_nothing(positions):
    positions.add(A, Chunk(A, RawFetch(9, 9, 0, [], memoryview(b"")), 0))
    assert positions.get(A).fetch_offset == 0
    assert not positions.has_buffered()
