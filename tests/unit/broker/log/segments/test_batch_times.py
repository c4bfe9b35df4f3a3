"""Times inside one batch: every way of looking equals a linear scan, and the memory of it is bounded."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horolog.broker.log.segments import TimesCache
from horolog.broker.log.segments.batch_times import (
    BATCH_COST,
    RECORDS_PER_SAMPLE,
    BatchSamples,
    DecompressedBatch,
    Highs,
    find_record,
    highs_of,
)
from horolog.protocol.errors import DecodeError
from horolog.protocol.records.batch import encode_batch, read_header
from horolog.protocol.records.compression import Codec
from horolog.protocol.records.head import HEADER_BYTES
from horolog.protocol.records.message_set import encode_wrapper
from horolog.protocol.records.record import Record

T0 = 1_600_000_000_000
steps = st.lists(st.integers(-70, 200) | st.sampled_from([-20_000, 20_000, 3_000_000]), min_size=1, max_size=200)


def rows(times, base=10, size=20):
    return [Record(base + n, time, 0, None, b"v" * (size + 37 * n % 90)) for n, time in enumerate(times)]


def walked(data):
    """Samples of all of a batch."""
    samples = BatchSamples(read_header(data))
    samples.walk_on(data, 0, 2**63 - 1)
    return samples


def scan(records, target):
    return next(((one.timestamp, one.offset) for one in records if one.timestamp >= target), None)


def bases_of(batch):
    """The offset and the time that those of its records are relative to."""
    header = read_header(batch)
    return header.base_offset, header.base_timestamp


def targets(times):
    return sorted({0, 2**62, *times, *(time + 1 for time in times)})


@given(steps)
def test_every_way_equals_a_linear_scan(differences):
    times = [T0 + sum(differences[: n + 1]) for n in range(len(differences))]
    records = rows(times)
    plain, zipped = bytes(encode_batch(records)), bytes(encode_batch(records, Codec.LZ4))
    bases = bases_of(plain)
    highs, samples = highs_of(zipped, 2), walked(plain)
    for target in targets(times):
        expected = scan(records, target)
        assert highs.first_at_or_after(target) == expected
        assert find_record(plain, HEADER_BYTES, len(records), *bases, target) == expected
        span = samples.span_for(target)
        if span is None:
            assert expected is None
        else:
            count, start, end = span
            assert count <= RECORDS_PER_SAMPLE
            assert find_record(plain[start:end], 0, count, *bases, target) == expected


@given(steps, st.lists(st.integers(0, 220), max_size=5), st.booleans())
def test_samples_are_taken_as_far_as_was_asked_and_are_the_same_then(differences, asked, from_the_rest):
    times = [T0 + sum(differences[: n + 1]) for n in range(len(differences))]
    data = bytes(encode_batch(rows(times)))
    samples, whole = BatchSamples(read_header(data)), walked(data)
    assert len(samples) == len(whole) == len(whole.timestamps)
    for number in asked:
        target = times[number % len(times)]
        start = samples.positions[-1] if from_the_rest else 0
        samples.walk_on(data[start:], start, target)
        assert samples.span_for(target) == whole.span_for(target)
        taken = len(samples.timestamps)
        assert samples.timestamps == whole.timestamps[:taken]
        assert samples.positions == whole.positions[: taken + 1]
        assert taken < 2 or samples.timestamps[taken - 2] < max(times[each % len(times)] for each in asked)
        assert not samples.lacks(target)


@given(steps, st.integers(0, 250))
def test_records_before_the_start_of_the_log_do_not_count(differences, hidden):
    times = [T0 + sum(differences[: n + 1]) for n in range(len(differences))]
    records = rows(times)
    highs = highs_of(bytes(encode_batch(records)), 2, 10 + hidden)
    for target in targets(times):
        assert highs.first_at_or_after(target) == scan(records[hidden:], target)


def test_all_records_of_an_appended_batch_have_its_time():
    for data, magic in (
        (bytes(encode_batch(rows([5, 5, 5]), Codec.GZIP, append_time=5)), 2),
        (encode_wrapper([one._replace(timestamp_type=1) for one in rows([5, 5, 5])], 1, Codec.GZIP), 1),
    ):
        assert highs_of(data, magic).first_at_or_after(5) == (5, 10)
        assert highs_of(data, magic).first_at_or_after(6) is None
        assert highs_of(data, magic, 11).first_at_or_after(5) == (5, 11)


def test_records_without_a_time_are_no_answer():
    for data, magic in (
        (encode_wrapper(rows([-1, -1, 7, -1]), 1, Codec.GZIP), 1),
        (bytes(encode_batch(rows([-1, -1, 7, -1]), Codec.GZIP)), 2),
    ):
        assert list(highs_of(data, magic).offsets) == [12]
    data = bytes(encode_batch(rows([-1, -1, 7, -1])))
    assert find_record(data, HEADER_BYTES, 4, *bases_of(data), 0) == (7, 12)
    assert list(walked(data).timestamps) == [7]


def test_a_batch_that_ends_early_is_damaged():
    data = bytes(encode_batch(rows([5, 6, 7])))
    for size in (0, 1, 2, 30):
        with pytest.raises(DecodeError):
            find_record(data[: HEADER_BYTES + size], HEADER_BYTES, 3, *bases_of(data), 9)


def filled(count):
    highs = Highs()
    for n in range(count):
        highs.add(n, n)
    return highs


def test_what_is_remembered_is_bounded_and_the_longest_unused_goes():
    cache = TimesCache(3 * (8 + BATCH_COST))
    for position in (1, 2, 3):
        cache.put(0, position, filled(8))
    assert cache.get(0, 1) is not None
    cache.put(0, 4, filled(8))
    assert cache.get(0, 2) is None
    assert None not in (cache.get(0, 1), cache.get(0, 3), cache.get(0, 4))


def test_a_batch_that_is_remembered_anew_counts_once():
    cache = TimesCache(3 * (8 + BATCH_COST))
    for _ in range(9):
        cache.put(0, 1, filled(4))
        cache.put(0, 1, filled(8))
    cache.put(0, 2, filled(8))
    cache.put(0, 3, filled(8))
    assert None not in (cache.get(0, 1), cache.get(0, 2), cache.get(0, 3))
    cache.put(0, 4, filled(8))
    assert [cache.get(0, position) is None for position in (1, 2, 3, 4)] == [True, False, False, False]


def test_one_batch_larger_than_the_bound_is_remembered_alone():
    cache = TimesCache(3 * (8 + BATCH_COST))
    cache.put(0, 1, filled(8))
    cache.put(0, 2, filled(100))
    assert cache.get(0, 1) is None
    assert cache.get(0, 2) is not None


def test_batches_stay_open_up_to_a_bound_and_the_longest_unused_go():
    header = read_header(bytes(encode_batch(rows([5]))))
    tens, nines, large = (DecompressedBatch(header, each) for each in (b"x" * 10, b"y" * 9, b"x" * 31))
    cache = TimesCache(opened_limit=30)
    for position in (1, 2, 3):
        assert cache.keep_open(0, position, tens)
    assert cache.opened(0, 1) == tens
    assert cache.keep_open(0, 4, tens)
    assert cache.opened(0, 2) is None
    assert cache.keep_open(0, 4, nines), "again: it counts once"
    assert None not in (cache.opened(0, 1), cache.opened(0, 3))
    assert not cache.keep_open(0, 5, large)
    assert cache.opened(0, 4) == nines


def test_logs_are_told_apart():
    cache = TimesCache()
    cache.put(1, 7, BatchSamples(read_header(bytes(encode_batch(rows([5]))))))
    assert cache.get(2, 7) is None
    assert cache.get(1, 7) is not None


def test_a_record_that_ends_before_its_offset_is_damaged():
    data = bytes(encode_batch([Record(0, 7, 0, b"k", b"v")]))
    begun = data[: HEADER_BYTES + 3]  # its size, attributes and time
    with pytest.raises(DecodeError, match="past the end"):
        find_record(begun, HEADER_BYTES, 1, *bases_of(data), 7)
