"""Where a lookup begins, and what the headers of batches tell it."""

import random
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horolog.broker.log.integrity import FileFacts
from horolog.broker.log.segments import TimesCache, batch_times, indexes_of, lookup, recover
from horolog.broker.log.segments.batch_times import SMALL_BATCH_BYTES
from horolog.broker.log.segments.lookup import first_in_segment, largest_in_segment, start_position
from horolog.broker.log.segments.reader import heads_from
from horolog.broker.log.storage import StorageFault
from horolog.protocol.records.batch import encode_batch, read_header, write_crc
from horolog.protocol.records.compression import Codec
from horolog.protocol.records.control import Marker, encode_marker
from horolog.protocol.records.head import HEADER, WALK_BYTES
from horolog.protocol.records.record import Record
from tests.support.log_model import Model, place, small_config
from tools import compiled

BIG = {"segment_bytes": 1 << 26, "segment_index_bytes": 1 << 16}
END = 1 << 40


def segment_with(*batches, **config):
    """A segment whose file holds these bytes, scanned."""
    model = Model(small_config(**{**BIG, **config}))
    (segment,) = model.partition.segments
    data = b"".join(bytes(one) for one in batches)
    segment.log.pwritev([data], 0)
    recover(segment, len(data), FileFacts(0, END, is_last=True), cut_tail=True)
    return segment


def batch(first, *timestamps, size=10):
    return encode_batch([Record(first + n, time, 0, b"k", b"v" * size) for n, time in enumerate(timestamps)])


@given(st.lists(st.integers(0, 50), min_size=1, max_size=60), st.sampled_from([0, 100, 300]), st.integers(0, 51))
def test_the_walk_begins_before_the_answer_and_not_far_before(times, interval, target):
    segment = segment_with(*(batch(n, time) for n, time in enumerate(times)), index_interval_bytes=interval)
    offsets, entries = indexes_of(segment)
    start = start_position(offsets.entries, entries.entries, target)
    answer = next((n for n, time in enumerate(times) if time >= target), None)
    positions = [head.position for head in heads_from(segment, 0)]
    if answer is not None:
        size = segment.size_bytes // len(times)
        assert start <= positions[answer]
        assert positions[answer] - start <= 3 * (interval + 2 * size)


def test_without_entries_the_walk_begins_at_the_start():
    assert start_position(b"", b"", 5) == 0
    assert start_position(struct.pack(">ii", 3, 100), struct.pack(">qi", 9, 3), 5) == 0


def test_heads_tell_what_matters():
    marker = encode_marker(
        Marker(committed=True, coordinator_epoch=0), 5, 900, producer_id=1, producer_epoch=0, leader_epoch=4
    )
    empty = bytearray(batch(6, 800))
    HEADER.pack_into(empty, 0, *HEADER.unpack_from(empty)[:-1], 0)
    segment = segment_with(batch(0, 5, 9, 7), batch(3, 8))
    segment.log.pwritev([bytes(marker), bytes(empty)], segment.size_bytes)
    segment.size_bytes += len(marker) + len(empty)
    found = list(heads_from(segment, 0))
    assert [one.base_offset for one in found] == [0, 3, 5, 6]
    assert [one.last_offset for one in found] == [2, 3, 5, 6]
    assert [one.max_timestamp for one in found] == [9, 8, -1, -1]
    assert first_in_segment(segment, 100, 0, END, TimesCache()) is None, "neither markers nor emptied batches answer"
    assert largest_in_segment(segment, 0, END) == 9


@pytest.mark.parametrize("size", [10, SMALL_BATCH_BYTES // 2])
def test_the_leader_epoch_is_the_batches(size):
    records = [Record(n, 5 + n, 0, b"k", b"v" * size) for n in range(4)]
    segment = segment_with(encode_batch(records, leader_epoch=3))
    cache = TimesCache()
    for _ in range(2):
        found = first_in_segment(segment, 7, 0, END, cache)
        assert (found.timestamp, found.offset, found.leader_epoch) == (7, 2, 3)
        assert first_in_segment(segment, 7, 0, 2, cache) is None
        assert place(first_in_segment(segment, 5, 2, END, cache)) == (2, 7)
        assert first_in_segment(segment, 9, 0, END, cache) is None


def test_a_large_batch_is_read_whole_only_once(monkeypatch):
    segment = segment_with(encode_batch([Record(n, n, 0, b"k", b"v" * 50) for n in range(2000)]))
    sizes = []
    real = segment.log.pread

    class Watched:
        path = ""

        def pread(self, size, position):
            sizes.append(size)
            return real(size, position)

    segment.log = Watched()
    cache = TimesCache()
    assert first_in_segment(segment, 777, 0, END, cache).offset == 777
    assert max(sizes) == segment.size_bytes
    sizes.clear()
    for target in (0, 1, 63, 64, 65, 1999):
        assert first_in_segment(segment, target, 0, END, cache).offset == target
    assert max(sizes) <= WALK_BYTES


def reads_of_a_lookup(segment, target, monkeypatch):
    sizes, real = [], segment.log.pread
    with monkeypatch.context() as patch:
        patch.setattr(type(segment.log), "pread", lambda _, *at: (sizes.append(at[0]), real(*at))[1])
        assert first_in_segment(segment, target, 0, END, TimesCache()).offset == target
    return sizes


def test_small_batches_are_looked_into_where_they_were_read(monkeypatch):
    segment = segment_with(*(batch(n, n, size=900) for n in range(40)), index_interval_bytes=1 << 20)
    size = segment.size_bytes // 40
    in_first, over_edge = WALK_BYTES // size - 1, WALK_BYTES // size
    assert reads_of_a_lookup(segment, in_first, monkeypatch) == [WALK_BYTES]
    assert reads_of_a_lookup(segment, over_edge, monkeypatch) == [WALK_BYTES, WALK_BYTES]
    assert reads_of_a_lookup(segment_with(batch(0, 0)), 0, monkeypatch) == [len(batch(0, 0))]


def of_append_time(first, *timestamps):
    return encode_batch(
        [Record(first + n, 1, 0, b"k", b"v") for n in range(len(timestamps))], append_time=timestamps[0]
    )


def emptied(first, *timestamps):
    data = bytearray(batch(first, *timestamps))
    HEADER.pack_into(data, 0, *HEADER.unpack_from(data)[:-1], 0)
    return data


def of_a_later_head(first, *timestamps):
    """Of its records the latest are gone, as the cleaner may leave it."""
    data = bytearray(batch(first, *timestamps))
    header = read_header(data)._replace(max_timestamp=31)
    HEADER.pack_into(data, 0, *header)
    write_crc(data)
    return data


def marker(first, *timestamps):
    made = Marker(committed=True, coordinator_epoch=0)
    return encode_marker(made, first, timestamps[0], producer_id=1, producer_epoch=0, leader_epoch=4)


def small_zipped(first, *timestamps):
    return encode_batch([Record(first + n, time, 0, b"k", b"v") for n, time in enumerate(timestamps)], Codec.GZIP)


KINDS = {
    "plain": (batch, None),
    "sixteen of them": (lambda first, *times: batch(first, *times, size=60), None),
    "large": (lambda first, *times: large(first, times), None),
    "compressed": (small_zipped, None),
    "of the time of its append": (of_append_time, 0),
    "of a later head": (of_a_later_head, None),
    "emptied": (emptied, ()),
    "marker": (marker, ()),
}


@given(
    st.lists(
        st.tuples(st.sampled_from([*KINDS, *["plain"] * 5]), st.lists(st.integers(0, 30), min_size=1, max_size=6)),
        min_size=1,
        max_size=40,
    ),
    st.sampled_from([1, 500, 1 << 20]),
    st.integers(0, 80),
    st.integers(0, 120),
)
def test_small_batches_among_others_answer_alike(made, interval, start, end):
    offset, data, records = 0, [], []
    for kind, times in made:
        encoded, shown = KINDS[kind]
        data.append(encoded(offset, *times))
        if kind == "marker":
            offset += 1
            continue
        effective = times if shown is None else [] if shown == () else [times[0]] * len(times)
        records += [(offset + n, time) for n, time in enumerate(effective)]
        offset += len(times)
    segment = segment_with(*data, index_interval_bytes=interval)
    for target in range(32):
        wanted = next((at for at, time in records if time >= target and at >= start), None)
        found = first_in_segment(segment, target, start, end, TimesCache())
        assert (found and found.offset) == (wanted if wanted is not None and wanted < end else None)


@pytest.mark.parametrize("cut_bytes", [1, 20, 70])
def test_a_batch_that_is_cut_short_is_a_fault(cut_bytes):
    segment = segment_with(batch(0, 5), batch(1, 7))
    segment.size_bytes -= cut_bytes
    with pytest.raises(StorageFault, match="is cut short"):
        first_in_segment(segment, 7, 0, END, TimesCache())


def large(first, times):
    return batch(first, *times, size=SMALL_BATCH_BYTES // len(times) + 1)


def test_a_batch_with_an_entry_of_its_own_is_found_without_a_look_at_heads(monkeypatch):
    segment = segment_with(*(large(n * 20, range(n * 20, n * 20 + 20)) for n in range(6)), index_interval_bytes=1)
    cache = TimesCache()
    monkeypatch.setattr("horolog.broker.log.segments.lookup.heads_from", lambda *_: pytest.fail("it walks"))
    for target in range(40, 120):  # neither the first batch nor the first with an entry
        assert first_in_segment(segment, target, 0, END, cache).offset == target
        assert first_in_segment(segment, target, 0, target, cache) is None


def test_a_first_look_reads_such_a_batch_alone_and_later_ones_what_is_left_of_it(monkeypatch):
    segment = segment_with(*(large(n * 40, range(n * 40, n * 40 + 40)) for n in range(4)), index_interval_bytes=1)
    sizes = []
    real = segment.log.pread
    monkeypatch.setattr(type(segment.log), "pread", lambda _, *at: (sizes.append(at[0]), real(*at))[1])
    cache = TimesCache()
    size = segment.size_bytes // 4
    for target, most in ((81, size), (82, size // 2), (119, size), (118, size // 2), (119, size // 2)):
        sizes.clear()
        assert first_in_segment(segment, target, 0, END, cache).offset == target
        assert len(sizes) == 1
        assert sizes[0] <= most


@pytest.mark.parametrize("wrong", [b"\0\0\xff\xff", b"\0\0\0\1"])
def test_a_batch_with_an_entry_whose_head_is_damaged_is_a_fault(wrong):
    segment = segment_with(*(large(n * 20, range(n * 20, n * 20 + 20)) for n in range(4)), index_interval_bytes=1)
    segment.log.pwritev([wrong], segment.size_bytes // 2 + 8)
    with pytest.raises(StorageFault, match=f"damaged at {segment.size_bytes // 2}"):
        first_in_segment(segment, 45, 0, END, TimesCache())


@given(
    st.lists(st.lists(st.integers(0, 30), min_size=2, max_size=20), min_size=1, max_size=8),
    st.sampled_from([1, 5000, 9000]),
    st.integers(0, 60),
)
def test_what_is_remembered_changes_no_answer(batches, interval, start):
    firsts = [sum(map(len, batches[:n])) for n in range(len(batches))]
    segment = segment_with(*map(large, firsts, batches), index_interval_bytes=interval)
    times = [time for one in batches for time in one]
    cache = TimesCache()
    for _ in range(2):
        for target in range(32):
            answer = next((n for n, time in enumerate(times) if time >= target and n >= start), None)
            found = first_in_segment(segment, target, start, END, cache)
            assert (found and found.offset) == answer


def zipped(first, *timestamps, codec=Codec.LZ4):
    """Compressed, and still so large that it has an entry of its own."""
    noise = random.Random(first).randbytes(SMALL_BATCH_BYTES * 2)
    size = len(noise) // len(timestamps)
    rows = enumerate(timestamps)
    return encode_batch(
        [Record(first + n, time, 0, b"k", noise[n * size : n * size + size]) for n, time in rows], codec
    )


@given(
    st.lists(st.lists(st.integers(0, 30), min_size=2, max_size=40), min_size=1, max_size=6),
    st.integers(0, 60),
    st.sampled_from([0, 10_000, 20_000, 1 << 20]),
    st.sampled_from([1, 200, 1 << 20]),
    st.randoms(use_true_random=False),
)
def test_compressed_batches_answer_alike_whatever_stays_open_or_is_remembered(batches, start, opened, limit, chance):
    firsts = [sum(map(len, batches[:n])) for n in range(len(batches))]
    data = [zipped(first, *one) if first % 3 else large(first, one) for first, one in zip(firsts, batches, strict=True)]
    segment = segment_with(*data, index_interval_bytes=1)
    times = [time for one in batches for time in one]
    cache = TimesCache(limit, opened)
    for target in chance.choices(range(32), k=40):
        answer = next((n for n, time in enumerate(times) if time >= target and n >= start), None)
        found = first_in_segment(segment, target, start, END, cache)
        assert (found and found.offset) == answer


@pytest.mark.skipif(bool(compiled.extensions()), reason="what a compiled module calls cannot be replaced")
def test_neighbouring_times_open_a_compressed_batch_once(monkeypatch):
    segment = segment_with(*(zipped(n * 100, *range(n * 100, n * 100 + 100)) for n in range(4)), index_interval_bytes=1)
    opened = []
    real = lookup.records_of
    monkeypatch.setattr(lookup, "records_of", lambda data, header: (opened.append(1), real(data, header))[1])
    cache = TimesCache()
    for target in range(200, 300):
        assert first_in_segment(segment, target, 0, END, cache).offset == target
    assert len(opened) == 1


@pytest.mark.skipif(bool(compiled.extensions()), reason="what a compiled module calls cannot be replaced")
@pytest.mark.parametrize(
    ("cache", "opened"),
    [
        pytest.param(TimesCache(limit=1), 2, id="samples of one batch are remembered"),
        pytest.param(TimesCache(opened_limit=1), 2, id="none may stay open"),
    ],
)
def test_a_compressed_batch_is_opened_once_if_anything_of_it_is_there(cache, opened, monkeypatch):
    segment = segment_with(*(zipped(n * 100, *range(n * 100, n * 100 + 100)) for n in range(4)), index_interval_bytes=1)
    sizes = []
    real = batch_times.records_of
    for module in (lookup, batch_times):
        monkeypatch.setattr(module, "records_of", lambda data, header: (sizes.append(len(data)), real(data, header))[1])
    for target in (250, 150, 260, 160):
        assert first_in_segment(segment, target, 0, END, cache).offset == target
    assert len(sizes) == opened


def test_a_batch_that_cannot_be_read_is_a_fault_with_its_place():
    segment = segment_with(batch(0, 5, 6, 7))
    segment.log.pwritev([b"\xff" * 10], 61)
    with pytest.raises(StorageFault, match="damaged at 0"):
        first_in_segment(segment, 6, 0, END, TimesCache())
    with pytest.raises(StorageFault, match="damaged at 0"):
        largest_in_segment(segment, 1, END)


@pytest.mark.parametrize(
    ("start", "end", "largest"), [(0, END, 9), (2, END, 8), (0, 3, 9), (2, 3, 7), (4, END, 8), (9, END, -1)]
)
def test_the_largest_time_between_two_offsets(start, end, largest):
    assert largest_in_segment(segment_with(batch(0, 5, 9, 7), batch(3, 1), batch(4, 8)), start, end) == largest


@pytest.mark.parametrize("interval", [0, 60, 100, 130, 200])
@pytest.mark.parametrize("pending", [1, 2, 3, 5])
def test_a_batch_that_is_not_written_yet_is_not_read(interval, pending):
    """It has its entries in the indexes already: they lead behind the end of the file."""
    model = Model(small_config(**BIG, index_interval_bytes=interval))
    for number in range(40 + pending):
        if number >= 40 - pending:
            model.append(2, 0, [number * 10], [b"v" * (number * 37 % 400)])
        else:
            model.append(2, 0, [number * 10], [b"v"])
        if number == 39:
            model.flush()
    model.check_look_ups()
