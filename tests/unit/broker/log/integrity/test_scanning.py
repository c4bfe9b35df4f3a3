"""A scan finds every good batch and nothing else, whatever lies between them."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from horolog.broker.log.integrity import Batch, Damage, scan
from horolog.broker.log.integrity import scanning as scan_module
from horolog.protocol.records import message_set
from horolog.protocol.records.batch import encode_batch, write_crc
from horolog.protocol.records.compression import Codec
from horolog.protocol.records.control import Marker, encode_marker
from horolog.protocol.records.record import Record

FAR = 1 << 31


def batch(first, count=2, magic=2, codec=0, timestamp=100):
    records = [Record(first + n, timestamp + n if magic else -1, 0, b"k", b"v" * 20) for n in range(count)]
    if magic == 2:
        return bytes(encode_batch(records, Codec(codec)))
    if codec:
        return message_set.encode_wrapper(records, magic, Codec(codec))
    return message_set.encode_set(records, magic)


def spans(data, first=0, end=FAR):
    return list(scan(lambda size, at: data[at : at + size], len(data), first_offset=first, end_offset=end))


def good(found):
    return [(one.position, one.base_offset, one.last_offset) for one in found if isinstance(one, Batch)]


def bad(found):
    return [(one.position, one.end) for one in found if isinstance(one, Damage)]


def test_batches_of_all_formats_follow_each_other():
    parts = [batch(0), batch(2, 1, 1), batch(3, 3, 1, 1), batch(6, 1, 0), batch(7, 2, 2, 4)]
    found = spans(b"".join(parts))
    assert bad(found) == []
    assert [one.magic for one in found] == [2, 1, 1, 0, 2]
    assert [one.last_offset for one in found] == [1, 2, 5, 6, 8]
    assert [one.max_timestamp for one in found] == [101, 100, 102, -1, 101]
    assert [bytes(one.data) for one in found] == parts
    assert [one.base_offset for one in found] == [0, 2, 3, 6, 7]


@pytest.mark.parametrize("part", [1, 7, 11, 12, 20, 30, 60])
def test_a_torn_tail_is_one_damage_at_the_end(part):
    data = batch(0) + batch(2)
    found = spans(data + batch(4)[:part])
    assert good(found) == good(spans(data))
    assert bad(found) == [(len(data), len(data) + part)]


@pytest.mark.parametrize("tail", [bytes(100), b"\xff" * 37, random.Random(1).randbytes(5000)])
def test_garbage_at_the_end_is_one_damage(tail):
    found = spans(batch(0) + tail)
    assert len(good(found)) == 1
    assert bad(found) == [(len(batch(0)), len(batch(0)) + len(tail))]


@settings(max_examples=150)
@given(st.data())
def test_one_flipped_bit_costs_one_batch_at_most(data):
    """Wherever the bit is, also in offset and length, which no checksum covers: all other batches are found."""
    parts = [batch(2 * n, 2) for n in range(6)]
    stream = bytearray(b"".join(parts))
    bit = data.draw(st.integers(0, 8 * len(stream) - 1))
    stream[bit // 8] ^= 1 << bit % 8
    hit = bit // 8 // len(parts[0])
    expected = [one for one in good(spans(b"".join(parts))) if one[1] != 2 * hit]
    found = good(spans(bytes(stream)))
    assert [one for one in found if one in expected] == expected
    others = [one for one in found if one not in expected]
    in_epoch = 12 <= bit // 8 % len(parts[0]) < 16
    in_offset = bit // 8 % len(parts[0]) < 8
    last = hit == len(parts) - 1
    assert len(others) == (1 if in_epoch or (in_offset and last and others) else 0)


def test_what_lies_before_the_expected_offset_is_damage():
    """Finding 30: a valid message with a stale offset at the tail."""
    data = batch(5) + batch(7)
    assert good(spans(data + batch(0), 5)) == good(spans(data, 5))
    assert bad(spans(data + batch(0), 5)) == [(len(data), len(data) + len(batch(0)))]
    assert good(spans(batch(0) + data, 5)) == [(len(batch(0)) + one[0], *one[1:]) for one in good(spans(data, 5))]


def test_what_belongs_to_the_next_segment_is_damage():
    data = batch(5) + batch(7)
    assert good(spans(data, 5, 8)) == [(0, 5, 6)]
    assert good(spans(data, 5, 9)) == [(0, 5, 6), (len(batch(5)), 7, 8)]


def test_an_offset_ahead_is_damage_where_a_torn_tail_follows_the_next_batch():
    """The next batch goes on from where this one belongs, so that none behind it is needed to tell which of the two is wrong."""
    whole, ahead = batch(0), batch(900)
    found = spans(whole + ahead + batch(4) + bytes(40))
    assert [one[1] for one in good(found)] == [0, 4]
    assert bad(found) == [
        (len(whole), len(whole) + len(ahead)),
        (2 * len(whole) + len(ahead), 2 * len(whole) + len(ahead) + 40),
    ]


def test_an_offset_ahead_stays_where_the_next_batch_does_not_go_on_from_its_place():
    whole, ahead = batch(0), batch(900)
    found = spans(whole + ahead + batch(6) + bytes(40))
    assert [one[1] for one in good(found)] == [0, 900]


def test_an_offset_ahead_of_what_follows_is_damage():
    """damage.md: a bit in the base offset makes a batch claim offsets that its followers have."""
    ahead = batch(900)
    data = batch(0) + ahead + batch(4) + batch(6)
    found = spans(data)
    assert [one[1] for one in good(found)] == [0, 4, 6]
    assert bad(found) == [(len(batch(0)), len(batch(0)) + len(ahead))]


def test_gaps_that_the_cleaner_leaves_are_fine():
    assert len(good(spans(batch(0) + batch(100) + batch(5000)))) == 3


def test_batches_are_found_behind_damage_longer_than_a_chunk(monkeypatch):
    monkeypatch.setattr(scan_module, "CHUNK_BYTES", 256)
    rubbish = random.Random(2).randbytes(3000)
    data = batch(0) + rubbish + batch(10) + batch(12)
    found = spans(data)
    assert [one[1] for one in good(found)] == [0, 10, 12]
    assert bad(found) == [(len(batch(0)), len(batch(0)) + 3000)]


def test_batches_are_found_wherever_a_chunk_ends(monkeypatch):
    monkeypatch.setattr(scan_module, "CHUNK_BYTES", 200)
    for junk in range(100, 330):
        found = spans(b"\xff" * junk + batch(3) + batch(5))
        assert [one[1] for one in good(found)] == [3, 5], junk


def test_a_batch_larger_than_a_chunk_is_read_whole(monkeypatch):
    monkeypatch.setattr(scan_module, "CHUNK_BYTES", 100)
    data = batch(0, 200) + batch(200)
    assert [one[1] for one in good(spans(data))] == [0, 200]


@pytest.mark.parametrize(
    ("field", "reason"), [(23, "last offset delta -1, 2 records"), (57, "last offset delta 1, -1 records")]
)
def test_a_head_that_is_never_written_is_damage_whatever_its_checksum_says(field, reason):
    wrong = bytearray(batch(2))
    wrong[field : field + 4] = (-1).to_bytes(4, "big", signed=True)
    write_crc(wrong)
    first, damage, last = spans(batch(0) + wrong + batch(4))
    assert (first.base_offset, last.base_offset, damage.reason) == (0, 4, reason)


def test_markers_and_emptied_batches_carry_no_time():
    marker = bytes(
        encode_marker(
            Marker(committed=True, coordinator_epoch=1), 4, 999, producer_id=1, producer_epoch=0, leader_epoch=0
        )
    )
    (found,) = spans(marker)
    assert found.is_control
    assert (found.max_timestamp, found.producer_id) == (-1, 1)


def test_checksums_of_look_alikes_are_bounded():
    """Bytes made to look like large batches at every place do not cost the square of their size."""
    head = (5).to_bytes(8, "big") + (40000).to_bytes(4, "big") + bytes(4) + b"\x02"
    reads = []
    data = batch(0) + head * 4000

    def read(size, at):
        reads.append(size)
        return data[at : at + size]

    found = list(scan(read, len(data), first_offset=0, end_offset=FAR))
    assert good(found) == [(0, 0, 1)]
