"""Walking over mixtures of all formats, and what each entry is said to hold."""

import pytest

from horolog.protocol.errors import DecodeError
from horolog.protocol.records import batch, control, entries, message_set
from horolog.protocol.records.compression import Codec
from horolog.protocol.records.head import heads_in
from horolog.protocol.records.record import Record
from tests.support import raw_records as raw


def records(first, count):
    return [Record(first + index, 1000 + index, 0, None, b"v%d" % index) for index in range(count)]


MARKER = bytes(control.encode_marker(control.Marker(True, 3), 9, 5555, producer_id=4, producer_epoch=0, leader_epoch=2))
MIXTURE = [
    (message_set.encode_set(records(0, 1), 0), (0, 0, 0, -1)),
    (message_set.encode_set(records(1, 1), 1), (1, 1, 1, 1000)),
    (message_set.encode_wrapper(records(2, 3), 1, Codec.GZIP), (-1, 4, 1, 1002)),
    (message_set.encode_wrapper(records(5, 2), 0, Codec.SNAPPY), (-1, 6, 0, -1)),
    (bytes(batch.encode_batch(records(7, 2), Codec.ZSTD, leader_epoch=5)), (7, 8, 2, 1001)),
    (MARKER, (9, 9, 2, -1)),
    (bytes(batch.encode_batch(records(10, 1), append_time=7777)), (10, 10, 2, 7777)),
]
LOG = b"".join(data for data, _ in MIXTURE)


def test_entries_of_a_mixture():
    found = list(heads_in(LOG))
    assert [(one.base_offset, one.last_offset, one.magic, one.max_timestamp) for one in found] == [
        expected for _, expected in MIXTURE
    ]
    position = 0
    for one, (data, _) in zip(found, MIXTURE, strict=True):
        assert (one.position, one.size_bytes) == (position, len(data))
        assert entries.check_crc(LOG, one.position, one.size_bytes, one.magic)
        position += len(data)
    assert [one.is_control for one in found] == [False] * 5 + [True, False]
    assert [one.is_compressed for one in found] == [False, False, True, True, True, False, False]
    assert [entries.base_offset_of(LOG, one) for one in found] == [0, 1, 2, 5, 7, 9, 10]
    assert [one.leader_epoch for one in found] == [-1, -1, -1, -1, 5, 2, -1]


def test_the_walk_starts_anywhere_and_ends_where_an_entry_is_cut_short():
    ends = [one.position + one.size_bytes for one in heads_in(LOG)]
    for index, end in enumerate(ends):
        assert list(heads_in(LOG, end)) == list(heads_in(LOG))[index + 1 :]
    for cut in range(len(LOG)):
        assert len(list(heads_in(LOG[:cut]))) == sum(end <= cut for end in ends)


@pytest.mark.parametrize("junk", [bytes(100), b"\xff" * 100, raw.message(b"x", magic=3), raw.message(b"x", size=21)])
def test_what_cannot_be_an_entry_is_told(junk):
    with pytest.raises(DecodeError):
        list(heads_in(LOG + junk, len(LOG)))


def test_every_changed_byte_that_counts_is_found():
    for one in heads_in(LOG):
        changed = bytearray(LOG)
        changed[one.position + one.size_bytes - 1] ^= 1
        assert not entries.check_crc(changed, one.position, one.size_bytes, one.magic)


def test_records_of_a_mixture():
    found = list(entries.iter_records(LOG))
    assert [record.offset for record in found] == [*range(9), 10]
    assert [record.timestamp for record in found] == [-1, 1000, 1000, 1001, 1002, -1, -1, 1000, 1001, 7777]
    assert [record.offset for record in entries.iter_records(LOG, include_control=True)] == list(range(11))


def test_an_empty_batch_has_no_time():
    """The cleaner leaves batches without records behind; what time they had says nothing any more."""
    data = raw.batch([], count=0, last_delta=4, base_offset=20, max_timestamp=99)
    (entry,) = heads_in(data)
    assert (entry.base_offset, entry.last_offset, entry.max_timestamp) == (20, 24, -1)
    assert list(entries.iter_records(data)) == []
