"""Batches: when they begin, are full, may go, come back, and how much room they leave."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horolog.client.producing.accumulator import Accumulator, Pending, size_of
from horolog.client.values.types import TopicPartition
from horolog.protocol.records.batch import encode_batch
from horolog.protocol.records.record import Record

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def record(partition=A, size_bytes=10, value=b""):
    return Pending(partition, None, value, (), 0, size_bytes, None)


def accumulator(batch_bytes=100, linger_ms=50, buffer_bytes=1000):
    return Accumulator(batch_bytes, linger_ms, buffer_bytes)


def test_the_sender_is_told_when_a_batch_begins_and_when_it_is_full():
    box = accumulator()
    assert box.append(A, record(size_bytes=40), 0.0)
    assert not box.append(A, record(size_bytes=40), 0.0)
    assert box.append(A, record(size_bytes=20), 0.0)


def test_a_batch_goes_when_it_is_old_enough_full_followed_or_flushed():
    box = accumulator()
    box.append(A, record(), 0.0)
    assert box.ready(0.049) == []
    assert box.next_due_at() == 0.05
    assert box.ready(0.05) == [A]
    box.append(A, record(size_bytes=95), 0.01)
    assert box.ready(0.01) == [A]
    box.append(B, record(B), 0.01)
    assert box.ready(0.01) == [A]
    box.flush()
    assert box.ready(0.01) == [A, B]


def test_what_comes_after_a_flush_is_not_hurried():
    box = accumulator()
    number = box.flush()
    box.append(A, record(), 0.0)
    assert box.ready(0.0) == []
    assert box.oldest() > number


def test_one_batch_of_a_partition_is_on_its_way():
    box = accumulator()
    for _ in range(3):
        box.append(A, record(size_bytes=100), 0.0)
    first = box.take(A)
    assert box.ready(9.0) == []
    assert box.next_due_at() is None
    box.settle(first)
    assert box.ready(9.0) == [A]
    assert box.take(A) is not first


def test_what_comes_back_goes_first_after_its_pause_and_takes_no_more_records():
    box = accumulator()
    box.append(A, record(value=b"1"), 0.0)
    batch = box.take(A)
    batch.attempts = 1
    batch.retry_at = 5.0
    box.append(A, record(value=b"2"), 0.0)
    box.put_back(batch, [batch])
    assert box.ready(4.9) == []
    assert box.next_due_at() == 5.0
    assert box.ready(5.0) == [A]
    box.append(A, record(value=b"3"), 0.0)
    assert box.take(A) is batch
    box.settle(batch)
    assert [each.value for each in box.take(A).records] == [b"2", b"3"]


def test_parts_keep_the_number_for_which_a_flush_waits():
    box = accumulator()
    for _ in range(4):
        box.append(A, record(), 0.0)
    number = box.flush()
    batch = box.take(A)
    halves = [batch.part(batch.records[:2]), batch.part(batch.records[2:])]
    box.put_back(batch, halves)
    for half in halves:
        assert box.oldest() == number
        assert box.take(A) is half
        box.settle(half)
    assert box.oldest() is None
    assert box.used_bytes == 0


def test_a_full_buffer_has_no_room_but_for_one_record_of_any_size():
    box = accumulator(buffer_bytes=100)
    assert box.has_room(5000)
    box.append(A, record(size_bytes=60), 0.0)
    assert box.has_room(40)
    assert not box.has_room(41)
    box.append(A, record(size_bytes=40), 0.0)
    assert box.ready(0.0) == [A], "what fills the buffer does not linger"


def test_dropping_leaves_what_is_on_its_way():
    box = accumulator()
    box.append(A, record(size_bytes=100), 0.0)
    box.append(A, record(size_bytes=100), 0.0)
    box.append(B, record(B), 0.0)
    batch = box.take(A)
    assert len(box.drop_all()) == 2
    assert box.used_bytes == 100
    box.settle(batch)
    assert (box.used_bytes, box.oldest()) == (0, None)


@given(st.lists(st.tuples(st.sampled_from([A, B]), st.integers(1, 150), st.sampled_from("wffhn")), max_size=60))
def test_order_and_room_are_kept_whatever_happens(steps):
    """Every record comes out exactly once, in the order of its partition; the room taken is that of the records inside."""
    box = accumulator()
    sent = {A: [], B: []}
    written = {A: [], B: []}
    for number, (partition, size_bytes, outcome) in enumerate(steps):
        box.append(partition, record(partition, size_bytes, number), 0.0)
        sent[partition].append(number)
        for ready in box.ready(100.0) if outcome != "n" else []:
            batch = box.take(ready)
            batch.attempts += 1
            if outcome == "w":
                written[ready] += [each.value for each in batch.records]
                box.settle(batch)
            elif outcome == "h" and len(batch.records) > 1:
                box.put_back(batch, [batch.part(batch.records[:1]), batch.part(batch.records[1:])])
            else:
                box.put_back(batch, [batch])
    box.flush()
    while ready := box.ready(100.0):
        for partition in ready:
            batch = box.take(partition)
            written[partition] += [each.value for each in batch.records]
            box.settle(batch)
    assert written == sent
    assert box.used_bytes == 0
    with pytest.raises(KeyError):
        box.take(A)


def test_what_is_as_late_as_the_batch_before_it_goes_with_it():
    box = accumulator(batch_bytes=10)
    for created_at in (0.0, 1.0, 2.0, 3.0):
        box.append(A, record(), created_at)
        box.append(B, record(B), created_at)
    first = box.take(A)
    assert [batch.created_at for batch in box.drop_older(A, 2.0)] == [1.0, 2.0]
    box.settle(first)
    assert box.used_bytes == 5 * 10
    assert [batch.created_at for batch in box.drop_all()] == [3.0, 0.0, 1.0, 2.0, 3.0]
    assert box.used_bytes == 0
    box.append(A, record(), 4.0)
    last = box.take(A)
    assert box.drop_older(A, 9.0) == []
    box.settle(last)
    assert box.oldest() is None


def test_a_size_is_an_estimate_on_the_high_side():
    headers = ((b"h", None), (b"name", b"x" * 50))
    for key, value, head in [(None, None, ()), (b"k", b"v" * 100, ()), (b"", b"", headers)]:
        alone = Record(0, 0, 0, key, value, head)
        written = len(encode_batch([alone] * 2)) - len(encode_batch([alone]))
        assert written <= size_of(key, value, head) <= written + 60


def test_a_record_is_shown_without_its_value():
    shown = repr(Pending(A, b"k", b"secret", (), 5, 10, None))
    assert shown == "<record for t-0, key b'k', time 5>"


def test_a_batch_that_has_begun_takes_what_fits():
    box = accumulator()
    assert not box.has_open_batch(A, 10)
    box.append(A, record(size_bytes=60), 0.0)
    assert box.has_open_batch(A, 40)
    assert not box.has_open_batch(A, 41)
    assert not box.has_open_batch(B, 1)
    batch = box.take(A)
    assert not box.has_open_batch(A, 1)
    box.settle(batch)
    assert not box.has_open_batch(A, 1)


def test_what_is_out_of_time_is_dropped_and_leaves_room():
    box = accumulator()
    for second in range(4):
        box.append(A, record(size_bytes=100), float(second))
    dropped = box.drop_older(A, 1.0)
    assert [batch.created_at for batch in dropped] == [0.0, 1.0]
    assert box.used_bytes == 200
    assert box.drop_older(A, 0.5) == []
