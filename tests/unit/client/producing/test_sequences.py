"""Sequence numbers: kept by a batch, continued after what was written, begun anew with a new producer id."""

from horolog.client.producing.accumulator import Batch, Pending
from horolog.client.producing.sequences import SEQUENCES, Sequences
from horolog.client.values.types import TopicPartition

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def batch(partition=A, count=3):
    made = Batch(1, partition, 0.0)
    for _ in range(count):
        made.add(Pending(partition, None, b"", (), 0, 10, None))
    return made


def test_numbers_follow_what_was_written():
    sequences = Sequences()
    sequences.begin(7, 2)
    first, refused, second = batch(), batch(count=9), batch(count=1)
    sequences.assign(first)
    sequences.written(first)
    sequences.assign(refused)
    sequences.assign(second)
    assert (first.producer, second.producer) == ((7, 2, 0), (7, 2, 3))


def test_partitions_count_for_themselves():
    sequences = Sequences()
    sequences.begin(7, 0)
    first, other = batch(), batch(B)
    sequences.assign(first)
    sequences.written(first)
    sequences.assign(other)
    assert other.producer == (7, 0, 0)


def test_a_batch_that_is_sent_again_keeps_its_numbers():
    sequences = Sequences()
    sequences.begin(7, 0)
    first = batch()
    sequences.assign(first)
    sequences.begin(8, 0)
    sequences.assign(first)
    assert first.producer == (7, 0, 0)
    sequences.written(first)
    after = batch()
    sequences.assign(after)
    assert after.producer == (8, 0, 0), "what the old id wrote moves nothing of the new one"


def test_after_the_largest_number_comes_zero():
    sequences = Sequences()
    sequences.begin(1, 0)
    last = batch()
    last.producer = (1, 0, SEQUENCES - 2)
    sequences.written(last)
    after = batch()
    sequences.assign(after)
    assert after.producer == (1, 0, 1)


def test_forgotten_ids_are_not_known():
    sequences = Sequences()
    assert not sequences.is_known
    sequences.begin(1, 0)
    assert sequences.is_known
    sequences.forget()
    assert not sequences.is_known
