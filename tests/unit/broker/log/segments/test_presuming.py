"""An unsealed segment is what its index files say, where they fit the log; else nothing is presumed of it."""

import pytest

from horolog.broker.log.integrity import Contents, FileFacts
from horolog.broker.log.segments import Segment, presuming, recover
from horolog.broker.log.segments.batch_times import TimesCache
from horolog.broker.log.segments.lookup import first_in_segment
from tests.support.log_model import NOW_MS, small_config
from tests.support.segments import CONFIG, append, new_folder

COUNT = 60
BASE = 50


@pytest.fixture(autouse=True)
def a_small_end(monkeypatch):
    monkeypatch.setattr(presuming, "END_BYTES", 300)


def written(magic=2, config=CONFIG, times=range(COUNT)):
    segment = Segment.create(new_folder(), BASE, config, NOW_MS)
    for time in times:
        append(segment, magic, [1000 + 10 * time], config=config)
    segment.flush()
    return segment


def presumed(segment, following=None, end_offset=0, size_bytes=None):
    """The same files, opened by their indexes; None where they do not tell."""
    again = Segment(segment.folder, BASE, Contents(0, BASE), segment.config, NOW_MS)
    size = segment.folder.storage.stat(segment.log.path)[0] if size_bytes is None else size_bytes
    return again if presuming.presume(again, presuming.LogFacts(size, following, end_offset)) else None


def found_in(segment, times):
    cache = TimesCache(1 << 20)
    found = (first_in_segment(segment, time, 0, 1 << 40, cache) for time in times)
    return [None if one is None else one.offset for one in found]


def of_contents(segment):
    return segment.size_bytes, segment.next_offset, segment.max_timestamp


TARGETS = range(990, 1000 + 10 * COUNT + 20, 5)


def test_an_active_segment_is_looked_into_as_its_writer_would():
    segment = written()
    again = presumed(segment)
    assert of_contents(again) == of_contents(segment)
    assert found_in(again, TARGETS) == found_in(segment, TARGETS)


def test_a_closed_segment_is_looked_into_as_its_writer_would():
    segment = written()
    segment.complete()
    again = presumed(segment, following=BASE + COUNT)
    assert of_contents(again) == of_contents(segment)
    assert found_in(again, TARGETS) == found_in(segment, TARGETS)


def test_times_out_of_order_are_found_as_well():
    times = [(7 * n) % COUNT for n in range(COUNT)]
    segment = written(times=times)
    assert found_in(presumed(segment), TARGETS) == found_in(segment, TARGETS)


def test_what_is_not_whole_at_the_end_is_left_out():
    segment = written()
    cut = presumed(segment, size_bytes=segment.size_bytes - 7)
    assert cut.next_offset == BASE + COUNT - 1
    segment.log.pwritev([b"torn"], segment.size_bytes)
    assert of_contents(presumed(segment)) == of_contents(segment)


def test_offsets_that_were_given_out_and_are_not_there_are_no_end():
    segment = written()
    assert presumed(segment, end_offset=BASE + COUNT) is not None
    assert presumed(segment, end_offset=BASE + COUNT + 1) is None


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("closed", [False, True])
def test_old_formats_are_read(magic, closed):
    segment = written(magic, small_config(index_interval_bytes=100, segment_index_bytes=1000, stored_magic=magic))
    if closed:
        segment.complete()
    assert presumed(segment, following=BASE + COUNT if closed else None) is None


def test_too_little_to_have_entries_is_read():
    assert presumed(written(times=range(3))) is None


def test_room_that_was_taken_in_advance_is_read(monkeypatch):
    segment = written()
    monkeypatch.setattr(presuming, "_BEHIND_BYTES", 1000)
    segment.log.truncate(segment.size_bytes + 2000)
    assert presumed(segment) is None


def damaged(segment, suffix, change):
    path = segment.files.path(suffix)
    data = change(segment.folder.storage.read_all(path))
    segment.folder.storage.write_atomically(path, data)


SHIFTED = {
    ".index": lambda data: data[:7] + bytes([data[7] + 1]) + data[8:],
    ".timeindex": lambda data: data[:-5] + bytes([data[-5] ^ 1]) + data[-4:],
}


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("how", ["gone", "empty", "zeros", "disordered", "shifted"])
def test_index_files_that_are_not_of_the_log_tell_nothing(closed, suffix, how):
    segment = written()
    if closed:
        segment.complete()
    entries = segment.indexes[suffix == ".timeindex"].entries
    half = len(entries) // 24 * 12
    changes = {
        "empty": lambda data: b"",
        "zeros": lambda data: bytes(len(data)),
        "disordered": lambda data: bytes(entries[half:] + entries[:half]),
        "shifted": lambda data: SHIFTED[suffix](bytes(entries)),
    }
    segment.close()
    if how == "gone":
        segment.folder.storage.remove(segment.files.path(suffix))
    else:
        damaged(segment, suffix, changes[how])
    again = presumed(segment, following=BASE + COUNT if closed else None)
    if again is not None:  # no entry says less, and nothing wrong
        assert found_in(again, TARGETS) == found_in(reread(segment), TARGETS)
        assert (suffix, how, closed) in {(".index", "empty", True), (".timeindex", "shifted", False)}


def reread(segment):
    again = Segment(segment.folder, BASE, Contents(0, BASE), segment.config, NOW_MS)
    recover(again, segment.size_bytes, FileFacts(BASE, BASE + COUNT))
    return again


def test_a_log_that_does_not_begin_as_named_is_read():
    segment = written()
    segment.complete()
    assert presumed(segment, following=BASE) is None


def test_a_closed_segment_that_is_cut_short_is_read():
    segment = written()
    segment.complete()
    assert presumed(segment, following=BASE + COUNT, size_bytes=segment.size_bytes // 2) is None


def test_damage_in_the_end_is_read_by_those_who_set_it_aside():
    segment = written()
    segment.log.pwritev([b"\xff"], segment.size_bytes - 150)
    assert presumed(segment) is None
