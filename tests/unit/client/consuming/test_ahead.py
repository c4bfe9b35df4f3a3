"""An iteration that is left in the middle: positions stay in front of what was not handed out."""

from horolog.client.consuming.ahead import Ahead
from horolog.client.consuming.positions import Positions
from horolog.client.values.types import ConsumerRecord, TopicPartition

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def made():
    positions = Positions(100)
    positions.assign([A, B])
    positions.get(A).seek(0)
    positions.get(B).seek(0)
    # As a poll leaves them: behind the records, in A also behind a marker at 3.
    positions.get(A).position = 4
    positions.get(B).position = 2
    ahead = Ahead(positions)
    ahead.put([record(0, 0), record(0, 2), record(1, 0), record(1, 1)])
    return positions, ahead


def record(partition, offset):
    return ConsumerRecord("t", partition, offset, 0, 0, None, b"")


def where(positions):
    return positions.get(A).position, positions.get(B).position


def test_positions_follow_what_is_handed_out():
    positions, ahead = made()
    seen = [where(positions)]
    while ahead.next() is not None:
        seen.append(where(positions))
    assert seen == [(0, 0), (1, 0), (3, 0), (3, 1), (3, 2)]
    assert where(positions) == (4, 2), "at the end also behind bytes that are no record"


def test_the_rest_can_be_taken_at_once():
    positions, ahead = made()
    ahead.next()
    assert [(each.partition, each.offset) for each in ahead.take(2)] == [(0, 2), (1, 0)]
    assert where(positions) == (3, 1)
    assert len(ahead.take(100)) == 1
    assert where(positions) == (4, 2)
    assert ahead.take(100) == []


def test_a_seek_drops_what_it_passes_over():
    positions, ahead = made()
    positions.get(A).seek(77)
    assert [each.partition for each in ahead.take(100)] == [1, 1]
    assert where(positions) == (77, 2)


def test_partitions_that_are_gone_are_dropped():
    positions, ahead = made()
    positions.assign([B])
    assert [each.partition for each in ahead.take(100)] == [1, 1]
