"""An inventory is what a full read of the log finds: segments, sizes, times, and what lies before each of them."""

from hypothesis import given
from hypothesis import strategies as st

from horolog.broker.log.partition import Inventory, closing, log_start
from horolog.broker.log.segments.reader import heads_from
from tests.support.log_model import CODECS, NOW_MS, Model, read_all, small_config

appends = st.lists(
    st.tuples(
        st.sampled_from([(magic, codec) for magic, codecs in CODECS.items() for codec in codecs]),
        st.lists(st.integers(-1, 60), min_size=1, max_size=8),
    ),
    min_size=1,
    max_size=30,
)


def built(history, interval=150, segment_bytes=1200):
    model = Model(small_config(index_interval_bytes=interval, segment_bytes=segment_bytes, segment_index_bytes=200))
    for (magic, codec), timestamps in history:
        model.append(magic, codec, timestamps, [b"v" * (7 * n % 40) for n in range(len(timestamps))])
    model.flush()
    return model


def taken(partition, now_ms=NOW_MS):
    inventory = Inventory(partition)
    return inventory, list(inventory.segments(now_ms))


def places(partition):
    """(offset, time, bytes before its batch) of every record, by a read of the whole log."""
    heads, start = [], 0
    for segment in partition.segments:
        heads += [(head, start + head.position) for head in heads_from(segment, 0)]
        start += segment.size_bytes
    found = []
    for offset, timestamp, _ in read_all(partition):
        position = next(at for head, at in heads if offset <= head.last_offset)
        found.append((offset, timestamp, position))
    return found, start


@given(appends, st.sampled_from([40, 150, 400]), st.sampled_from([500, 1200, 5000]), st.booleans())
def test_every_time_lies_in_its_bracket(history, interval, segment_bytes, reopened):
    model = built(history, interval, segment_bytes)
    if reopened:
        model.close_and_open()
    partition = model.partition
    inventory, held = taken(partition)
    records, size = places(partition)
    assert [one.base_offset for one in held] == [one.base_offset for one in partition.segments]
    assert sum(one.bytes for one in held) == size == partition.size_bytes
    last = -1, -1
    for timestamp in range(62):
        found = inventory.before(timestamp)
        first = next((one for one in records if one[1] >= timestamp), None)
        if first is None:
            assert found == (partition.high_watermark, size, partition.high_watermark, size)
        else:
            offset, _, position = first
            assert found.from_offset <= offset <= found.to_offset
            assert found.from_bytes <= position <= found.to_bytes
        assert (found.from_offset, found.from_bytes) >= last
        last = found.from_offset, found.from_bytes


@given(appends)
def test_times_of_segments_are_those_of_their_records(history):
    partition = built(history).partition
    _, held = taken(partition, 30)
    records = read_all(partition)
    before = -1
    for one in held:
        times = [timestamp for offset, timestamp, _ in records if one.base_offset <= offset < one.next_offset]
        largest = max(times, default=-1)
        assert one.largest_ms == largest
        assert one.future == (largest > 30)
        assert (one.modified_ms is None) == (0 <= largest <= 30)
        if one.late:
            assert any(0 <= timestamp < before for timestamp in times)
        if times and 0 <= largest < before:
            assert one.late
        before = max(before, largest)


def test_a_bracket_is_no_wider_than_two_intervals_and_two_batches():
    history = [((2, 0), [number, number]) for number in range(60)]
    partition = built(history, 150, 100_000).partition
    inventory, _ = taken(partition)
    batch = partition.size_bytes // 60
    assert all(
        found.to_bytes - found.from_bytes <= 2 * (150 + 2 * batch)
        for found in (inventory.before(timestamp) for timestamp in range(60))
    )


def test_what_comes_later_is_not_in_it():
    model = built([((2, 0), [5]), ((2, 0), [6])])
    inventory = Inventory(model.partition)
    model.append(2, 0, [9], [b"x"])
    model.flush()
    held = list(inventory.segments(0))
    assert (held[-1].next_offset, held[-1].largest_ms) == (2, 6)
    assert inventory.before(9) == (2, held[-1].bytes, 2, held[-1].bytes)
    assert "1 of them seen" in repr(inventory)


def test_a_segment_that_has_gone_or_cannot_be_read_is_answered_as_a_whole():
    model = built([((2, 0), [number]) for number in range(40)], 40, 500)
    inventory, held = taken(model.partition)
    log_start.delete_records_before(model.partition, held[1].base_offset)
    log_start.apply_retention(model.partition, NOW_MS)
    assert inventory.before(0) == (0, 0, held[0].next_offset, held[0].bytes)
    closing.close(model.partition)
    for one in model.partition.segments[:-1]:
        one.drop_indexes()
        for path in one.files.index_paths:
            model.storage.remove(path)
        model.storage.remove(one.files.path(".log"))
    inventory, held = taken(model.partition, 0)
    assert [one.modified_ms for one in held[:-1]] == [None] * (len(held) - 1)
    assert inventory.before(held[0].largest_ms)[2:] == (held[0].next_offset, held[0].bytes)
