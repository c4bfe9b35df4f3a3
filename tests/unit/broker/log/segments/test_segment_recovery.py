"""What a log file tells of a segment, and where it is read from."""

import pytest

from horolog.broker.log.integrity import Contents, FileFacts
from horolog.broker.log.segments import Segment, recover
from horolog.broker.log.segments.segment import HAS_PRODUCERS
from horolog.protocol.records.batch import encode_batch
from horolog.protocol.records.record import Record
from tests.support.log_model import NOW_MS, small_config
from tests.support.segments import CONFIG, append, completed, new_folder, offset_entries, time_entries

END = 1 << 31


@pytest.fixture
def folder():
    return new_folder()


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("codec", [0, 1])
def test_what_is_rebuilt_from_the_log_is_what_was_written(folder, magic, codec):
    """For appends of one batch or set each; where several messages came in one append the log does not tell that."""
    config = small_config(index_interval_bytes=100, segment_index_bytes=1000, stored_magic=magic)
    segment = Segment.create(folder, 50, config, NOW_MS)
    for timestamp in (5, 9, 3, 12, 12, 11, 40):
        times = [timestamp, timestamp - 1] if codec or magic == 2 else [timestamp]
        append(segment, magic, times, codec, config=config)
    segment.flush()
    seal = segment.complete()
    before = (segment.contents, offset_entries(segment), time_entries(segment))
    again = Segment(folder, 50, Contents(0, 50), config, NOW_MS)
    recover(again, seal.contents.size_bytes, FileFacts(50, 1 << 31), cut_tail=True)
    assert again.complete().contents == seal.contents
    assert (again.contents, offset_entries(again), time_entries(again)) == before


def unread(segment):
    """The same log file, of which nothing is known."""
    base_offset = segment.base_offset
    return Segment(segment.folder, base_offset, Contents(0, base_offset), segment.config, NOW_MS)


def test_what_a_seal_vouches_for_is_not_read(folder):
    segment = completed(folder)
    seal = segment.seal
    segment.prepare_to_append(segment.indexes)
    append(segment, 2, [20], size=60)
    segment.flush()
    again, seen = unread(segment), []
    recover(again, segment.size_bytes, FileFacts(0, END, is_last=True), prefix=seal, observe=seen.append)
    assert [one.base_offset for one in seen] == [4]
    assert again.contents == segment.contents
    assert again.sums.encode() == segment.sums.encode()
    assert list(again.unverified) == [1]
    assert again.sync.synced_bytes == seal.contents.size_bytes
    assert (offset_entries(again), time_entries(again)) == (offset_entries(segment), time_entries(segment))


def test_a_seal_whose_index_files_are_gone_vouches_for_nothing(folder):
    segment = completed(folder)
    folder.storage.remove(segment.files.path(".index"))
    again, seen = unread(segment), []
    recover(again, segment.size_bytes, FileFacts(0, END), prefix=segment.seal, observe=seen.append)
    assert [one.base_offset for one in seen] == [0, 1, 2, 3]
    assert again.unverified is None
    assert again.complete().contents == segment.seal.contents


def test_a_torn_tail_is_cut_off_unless_more_is_known_to_have_been_there(folder):
    segment = completed(folder)
    good = segment.size_bytes
    segment.log.pwritev([b"torn"], good)
    short = unread(segment)
    recover(short, good + 4, FileFacts(0, END, is_last=True, next_offset=9), cut_tail=True)
    assert (short.size_bytes, short.holes) == (good + 4, ((good, good + 4),))
    again = unread(segment)
    recover(again, good + 4, FileFacts(0, END, is_last=True), cut_tail=True)
    assert (again.size_bytes, again.holes, again.log.size()) == (good, (), good)
    assert folder.counters.torn_bytes_cut.value == 4


def test_what_a_correction_has_changed_is_summed_again(folder):
    segment = completed(folder)
    segment.log.pwritev([(7).to_bytes(4, "big")], 12)  # the leader epoch of the first batch, outside of its checksum
    again = unread(segment)
    recover(again, segment.size_bytes, FileFacts(0, END))
    assert again.sums.encode() == segment.sums.encode()
    assert again.log.pread(4, 12) == bytes(4)


def test_a_log_with_producers_says_so(folder):
    segment = Segment.create(folder, 0, CONFIG, NOW_MS)
    data = encode_batch([Record(0, 5, 0, None, b"v")], producer_id=7, producer_epoch=0, base_sequence=0)
    segment.log.pwritev([data], 0)
    recover(segment, len(data), FileFacts(0, END))
    assert segment.magics == HAS_PRODUCERS | 1 << 2
