"""Reading on: where a reader will go on is remembered rightly, bounded, and never in the way of what changed."""

import sys
from functools import partialmethod

import pytest

from horolog.broker.log.partition import log_start
from horolog.broker.log.segments import LogReader, log_reader
from horolog.broker.log.segments.log_reader import READ_HINTS
from horolog.broker.log.segments.upconversion import Allowance
from horolog.broker.log.storage.memory_storage import MemoryFile
from horolog.protocol.primitives import Unread
from horolog.protocol.records.entries import iter_records
from horolog.protocol.records.head import heads_in
from tests.support.log_model import Model, small_config


def filled(count=40, **config):
    model = Model(small_config(**{"segment_bytes": 1000, **config}))
    for n in range(count):
        model.append(2, 0, [n], [b"v" * (n * 13 % 90)])
    model.flush()
    return model


def read_through(model, log, max_bytes):
    """Offsets in the order in which a reader gets them, and how many reads of files that took."""
    offset, end, got = 0, model.partition.high_watermark, []
    while offset < end:
        data = log.read(offset, end, end, max_bytes, at_least_one=True)
        whole = list(heads_in(data))
        got += [one.base_offset for one in whole]
        offset = whole[-1].last_offset + 1
    return got


def test_a_reader_gets_everything_once_whatever_fits():
    model = filled()
    for max_bytes in (1, 50, 200, 333, 999, 1000, 5000):
        log = LogReader(model.partition.segments)
        assert read_through(model, log, max_bytes) == list(range(40)), max_bytes
        assert read_through(model, log, max_bytes) == list(range(40)), "with the memory of the first"


def test_going_on_costs_one_read():
    model = filled(segment_bytes=1 << 20, segment_index_bytes=1 << 16)
    partition = model.partition
    first = partition.read(0, 400)
    offset = list(heads_in(first))[-1].last_offset + 1
    before = model.storage.operations["read"]
    partition.read(offset, 1 << 20)
    assert model.storage.operations["read"] == before + 1


def test_places_are_bounded():
    model = filled(segment_bytes=1 << 20, segment_index_bytes=1 << 16, count=READ_HINTS * 2)
    log = LogReader(model.partition.segments)
    end = model.partition.high_watermark
    for offset in range(end):
        log.read(offset, end, end, 150, at_least_one=True)
    assert len(log._hints) <= READ_HINTS


def test_what_has_gone_is_not_remembered():
    model = filled()
    partition = model.partition
    following = partition.segments[1].base_offset
    partition.read(0, 300)
    log_start.delete_records_before(partition, following)
    log_start.apply_retention(partition, 0)
    assert partition.segments[0].base_offset == following
    model.written = partition.high_watermark
    model.rows = [row for row in model.rows if row[0] >= following]
    model.check()


def test_a_reader_behind_a_gap_is_not_led_into_it():
    """What ends at a hole must not make the next read begin in it."""
    model = filled(segment_bytes=1 << 20, segment_index_bytes=1 << 16)
    (segment,) = model.partition.segments
    entries = list(heads_in(segment.log.pread(segment.size_bytes, 0)))
    segment.holes = ((entries[5].position, entries[9].position),)
    for _ in range(2):
        assert read_through(model, LogReader(model.partition.segments), 1 << 20) == [*range(5), *range(9, 40)]
    log = LogReader(model.partition.segments)
    for max_bytes in (1, 200, 600):
        assert read_through(model, log, max_bytes) == [*range(5), *range(9, 40)]


def test_a_reader_that_stops_early_leaves_no_trace_for_those_behind():
    """Up to the last stable offset, in an old segment as in the active one: who reads on elsewhere is not led there."""
    model = Model(small_config(segment_bytes=400))
    for number in range(12):
        model.append(2, 0, [number], [b"v" * 40])
    model.flush()
    starts = [segment.base_offset for segment in model.partition.segments]
    assert len(starts) > 1
    for end in range(1, 12):
        for start in range(12):
            model.partition.read(0, 1 << 20, upto=end)
            model.partition.read(end - 1, 1 << 20, upto=end)
            offsets = [one.offset for one in iter_records(model.partition.read(start, 1))]
            assert offsets == [start]


def test_nothing_at_or_behind_the_readers_end_is_given():
    model = filled(segment_bytes=1 << 20, segment_index_bytes=1 << 16)
    log, written = LogReader(model.partition.segments), model.partition.high_watermark
    for end in (1, 5, 17, written):
        got = list(heads_in(log.read(0, end, written, 1 << 20, at_least_one=True)))
        assert got[-1].last_offset == end - 1
        assert log.read(end, end, written, 1 << 20, at_least_one=True) == b""


def test_a_reader_that_asks_for_too_little_gets_a_batch_only_if_it_must():
    model = filled()
    log, end = LogReader(model.partition.segments), model.partition.high_watermark
    (whole,) = heads_in(log.read(0, end, end, 1, at_least_one=True))
    assert whole.last_offset == 0
    assert len(log.read(0, end, end, 1, at_least_one=False)) == 1
    assert log.read(0, end, end, 0, at_least_one=False) == b""


def test_a_first_batch_that_does_not_fit_is_cut_only_for_those_who_take_that():
    partition = filled(segment_bytes=1 << 20, segment_index_bytes=1 << 16).partition
    first, second = list(heads_in(partition.read(38, 1 << 20)))
    fits = first.size_bytes
    for max_bytes, cut, whole in (
        (fits - 1, fits - 1, 0),
        (fits, fits, fits),
        (fits + 1, fits + 1, fits + 1),
        (0, 0, 0),
    ):
        assert len(partition.read(38, max_bytes, at_least_one=False)) == cut
        assert len(partition.read(38, max_bytes, at_least_one=False, cuts_first=False)) == whole
    assert len(partition.read(38, 1 << 20, at_least_one=False, cuts_first=False)) == fits + second.size_bytes


def test_what_is_left_out_costs_no_read_of_it():
    model = filled(segment_bytes=1 << 20, segment_index_bytes=1 << 16)
    partition = model.partition
    assert partition.read(5, 50, at_least_one=False, cuts_first=False) == b""
    before = model.storage.operations["read"]
    assert partition.read(5, 50, at_least_one=False, cuts_first=False) == b""
    assert model.storage.operations["read"] == before + 1, "of its size"


def test_how_much_lies_ahead():
    partition = filled(segment_bytes=1 << 20, segment_index_bytes=1 << 16).partition
    for offset, upto in ((0, 40), (7, 40), (7, 9), (7, 8), (39, 40)):
        assert partition.bytes_ahead(offset, upto) == len(partition.read(offset, 1 << 20, upto=upto))
    for offset, upto in ((40, 40), (7, 7), (41, 50)):
        assert partition.bytes_ahead(offset, upto) == 0


def test_a_segment_that_ends_before_is_ahead_of_everything():
    partition = filled().partition
    ends = partition.segments[0].next_offset
    assert partition.bytes_ahead(0, ends) == len(partition.read(0, 1 << 20))
    assert partition.bytes_ahead(0, ends + 1) == sys.maxsize


def test_what_was_converted_is_remembered_where_it_goes_on():
    model = Model(small_config(segment_bytes=1 << 20, segment_index_bytes=1 << 16))
    for n in range(6):
        model.append(1, 0, [n], [b"v" * 20])
    model.flush()
    log, end, got, offset = LogReader(model.partition.segments), model.partition.high_watermark, [], 0
    while offset < end:
        data = log.read(offset, end, end, 60, at_least_one=True, upconvert=Allowance(1 << 20))
        whole = list(heads_in(data))
        assert all(one.magic == 2 for one in whole)
        got += [record.offset for record in iter_records(data)]
        offset = whole[-1].last_offset + 1
    assert got == list(range(6))


def test_behind_the_end_there_is_nothing():
    model = filled(3)
    log, end = LogReader(model.partition.segments), model.partition.high_watermark
    assert log.read(end, end + 5, end, 1000, at_least_one=True) == b""


class TestHeads:
    """The batches that a reader wants are found by their heads; reads up to there begin and end without a search."""

    @pytest.fixture
    def model(self):
        return filled(segment_bytes=1 << 20, segment_index_bytes=1 << 16)

    @pytest.fixture
    def log(self, model):
        return LogReader(model.partition.segments)

    def offsets(self, log, offset, *, end=40, last=99, most=1 << 20, at_least_one=False):
        return [one.base_offset for one in log.heads(offset, end, last, most, at_least_one=at_least_one)]

    def test_they_end_with_what_is_wanted_shown_or_fits(self, log):
        assert self.offsets(log, 0) == list(range(40))
        assert self.offsets(log, 3, last=5) == [3, 4, 5]
        assert self.offsets(log, 3, end=5) == [3, 4]
        assert self.offsets(log, 3, most=10) == []
        assert self.offsets(log, 3, most=10, at_least_one=True) == [3]
        assert self.offsets(log, 3, most=250) == [3, 4]
        assert self.offsets(log, 40) == []

    def test_they_end_before_a_hole_and_begin_behind_it(self, model, log):
        (segment,) = model.partition.segments
        first, second, third = log.heads(0, 40, 2, 1 << 20, at_least_one=True)
        log.forget()
        segment.holes = ((second.position, third.position),)
        assert self.offsets(log, 0) == [0]
        assert self.offsets(log, 1) == list(range(2, 40))
        assert first.end == second.position

    def test_a_read_of_them_searches_for_nothing(self, model, log, monkeypatch):
        heads = log.heads(3, 40, 5, 1 << 20, at_least_one=True)
        size = heads[-1].end - heads[0].position
        before = model.storage.operations["read"]
        assert len(log.read(3, 6, 40, size, at_least_one=True)) == size
        assert model.storage.operations["read"] == before + 1
        assert [one.base_offset for one in log.heads(6, 40, 6, 1 << 20, at_least_one=True)] == [6]
        assert model.storage.operations["read"] == before + 2


class Held(Unread):
    """What a file would send."""

    def __init__(self, file, size_bytes, position):
        self.arguments = size_bytes, position
        self.file = file

    def __len__(self):
        return self.arguments[0]

    def read(self):
        return self.file.pread(*self.arguments)


class TestUnread:
    """Long slices are not read here, and are the same bytes."""

    @pytest.fixture(autouse=True)
    def files_that_can_be_sent(self, monkeypatch):
        monkeypatch.setattr(MemoryFile, "unread", partialmethod(Held))
        monkeypatch.setattr(log_reader, "UNREAD_FROM_BYTES", 200)

    @pytest.mark.parametrize("max_bytes", [150, 200, 333, 999, 5000])
    @pytest.mark.parametrize("end", [1, 7, 39, 40])
    def test_it_gives_what_reading_would(self, max_bytes, end):
        model = filled()
        log, plain = (LogReader(model.partition.segments) for _ in range(2))
        written, lengths = model.partition.high_watermark, []
        for offset in range(end):
            told = plain.read(offset, end, written, max_bytes, at_least_one=True)
            found = log.unread(offset, end, written, max_bytes)
            if found is not None:
                assert found.read() == told
                lengths.append(len(found))
            assert log.read(offset, end, written, max_bytes, at_least_one=True) == told
        assert all(200 <= one <= max_bytes for one in lengths)
        assert bool(lengths) == (max_bytes >= 200 and end > 1)

    def test_a_reader_that_gets_all_there_is_goes_on_without_a_search(self):
        model = filled(segment_bytes=1 << 20, segment_index_bytes=1 << 16)
        log, end = LogReader(model.partition.segments), model.partition.high_watermark
        assert log.unread(0, end, end, 1 << 20) is not None
        assert list(log._hints) == [end]

    def test_what_has_to_be_looked_at_is_read(self):
        model = filled(segment_bytes=1 << 20, segment_index_bytes=1 << 16)
        log, end = LogReader(model.partition.segments), model.partition.high_watermark
        (segment,) = model.partition.segments
        assert log.unread(end, end, end, 1 << 20) is None
        segment.holes = ((100, 200),)
        assert log.unread(0, end, end, 1 << 20) is None
        segment.holes = ()
        segment.magics = 0b110
        assert log.unread(0, end, end, 1 << 20) is None
