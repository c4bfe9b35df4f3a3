"""Finding batches by offset, and where to cut: against the boundaries that a scan tells."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from horolog.broker.log.segments import reader
from horolog.broker.log.storage import StorageFault
from horolog.protocol.records.head import heads_in
from tests.support.log_model import CODECS, Model, small_config

appends = st.lists(
    st.tuples(
        st.sampled_from([(magic, codec) for magic, codecs in CODECS.items() for codec in codecs]),
        st.integers(1, 6),
        st.sampled_from([0, 30, 400]),
    ),
    min_size=1,
    max_size=15,
)


def segment_of(history, interval):
    model = Model(small_config(segment_bytes=1 << 20, segment_index_bytes=1 << 16, index_interval_bytes=interval))
    for (magic, codec), count, size in history:
        model.append(magic, codec, [5] * count, [b"v" * size] * count)
    model.flush()
    (segment,) = model.partition.segments
    entries = list(heads_in(segment.log.pread(segment.size_bytes, 0)))
    return segment, entries


@settings(max_examples=60, deadline=None)
@given(appends, st.sampled_from([0, 100, 100_000]), st.integers(1, 5000))
def test_found_and_cut_as_a_scan_says(history, interval, max_bytes):
    segment, entries = segment_of(history, interval)
    end = segment.size_bytes
    for offset in range(entries[-1].last_offset + 3):
        expected = next((one.position for one in entries if one.last_offset >= offset), None)
        assert reader.find(segment, offset) == expected
    ends = [0, *(one.position + one.size_bytes for one in entries)]
    for start in ends[:-1]:
        if start + max_bytes >= end:
            continue
        cut, following = reader.boundary(segment, segment.log.pread(max_bytes, start), start, end)
        assert cut == max(one for one in ends if one <= max(start, start + max_bytes))
        assert reader.find(segment, following) == cut, "the next read begins there"


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([(magic, codec) for magic, codecs in CODECS.items() for codec in codecs]),
            st.integers(1, 3),
            st.sampled_from([30, 5_000, 20_000]),
        ),
        min_size=1,
        max_size=15,
    ),
    st.sampled_from([0, 4096, 100_000]),
    st.booleans(),
)
def test_a_batch_that_the_index_names_is_found_as_by_the_walk(history, interval, has_hole):
    segment, entries = segment_of(history, interval)
    if has_hole:
        segment.holes = ((entries[-1].position, segment.size_bytes),)
    sizes = {one.position: one.size_bytes for one in entries}
    for offset in range(entries[-1].last_offset + 3):
        found = reader.find_sized(segment, offset)
        assert (None if found is None else found[0]) == reader.find(segment, offset)
        assert found is None or found[1] in (0, sizes[found[0]])


@pytest.mark.parametrize("count", [1, 3])
def test_a_reader_that_goes_on_reads_one_head_of_large_batches(count):
    segment, entries = segment_of([((2, 0), count, 20_000)] * 6, 4096)
    reads, pread = [], segment.log.pread

    class Counted:
        def pread(self, size, position):
            reads.append(size)
            return pread(size, position)

    segment.log = Counted()
    for one in entries[2:]:
        assert reader.find_sized(segment, one.base_offset) == (one.position, one.size_bytes)
    assert reads == [12] * 4


def test_holes_are_never_part_of_a_range():
    segment, entries = segment_of([((2, 0), 1, 30)] * 6, 0)
    at = [one.position for one in entries]
    segment.holes = ((at[1], at[2]), (at[4], at[5]))
    end = segment.size_bytes
    assert list(reader.good_ranges(segment, 0)) == [(0, at[1]), (at[2], at[4]), (at[5], end)]
    assert list(reader.good_ranges(segment, at[1])) == [(at[2], at[4]), (at[5], end)]
    assert list(reader.good_ranges(segment, at[3])) == [(at[3], at[4]), (at[5], end)]
    assert reader.good_end(segment, 0) == at[1]
    assert reader.good_end(segment, at[2]) == at[4]
    assert reader.good_end(segment, at[5]) == end
    assert [reader.find(segment, offset) for offset in range(6)] == [0, at[2], at[2], at[3], at[5], at[5]]


def test_bytes_that_are_no_batch_are_a_fault_of_the_read():
    segment, entries = segment_of([((2, 0), 1, 30)] * 3, 100_000)
    segment.log.pwritev([bytes(12)], entries[1].position)
    with pytest.raises(StorageFault, match="damaged"):
        reader.find(segment, 2)
    with pytest.raises(StorageFault, match="damaged"):
        reader.boundary(segment, segment.log.pread(entries[2].position, 0), 0, segment.size_bytes)
    with pytest.raises(StorageFault, match="damaged"):
        reader.batch_size(segment, entries[1].position)
    assert reader.batch_size(segment, 0) == entries[0].size_bytes


def test_a_size_beyond_the_file_is_damage():
    segment, entries = segment_of([((2, 0), 1, 30)] * 2, 100_000)
    segment.log.pwritev([(1 << 20).to_bytes(4, "big")], entries[1].position + 8)
    with pytest.raises(StorageFault):
        reader.batch_size(segment, entries[1].position)
