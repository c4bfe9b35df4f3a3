"""The part that is cut and the part that is left: only damage with nothing good behind it is a tail."""

from dataclasses import replace

import pytest

from horolog.broker.log.integrity import FileFacts, survey
from horolog.protocol.records.head import EPOCH, EPOCH_AT, OFFSET
from tests.unit.broker.log.integrity.test_scanning import FAR, batch

LAST = FileFacts(0, FAR, is_last=True)


def surveyed(data, known=LAST):
    absorbed = []
    found = survey(lambda size, at: data[at : at + size], len(data), known, absorbed.append)
    return found, [one.base_offset for one in absorbed]


def test_a_good_log_is_all_good():
    data = batch(0) + batch(2)
    found, absorbed = surveyed(data)
    assert (found.good_bytes, found.torn_bytes, found.holes, found.losses) == (len(data), 0, (), [])
    assert absorbed == [0, 2]


def test_a_tail_is_torn_and_a_middle_is_a_hole():
    one = len(batch(0))
    found, absorbed = surveyed(batch(0) + b"\xff" * 50 + batch(2) + b"\xff" * 9)
    assert absorbed == [0, 2]
    assert found.holes == ((one, one + 50),)
    assert (found.good_bytes, found.torn_bytes) == (2 * one + 50, 9)
    assert found.holes_to(found.file_bytes) == ((one, one + 50), (2 * one + 50, 2 * one + 59))
    assert len(found.losses) == 2


def test_nothing_good_is_all_torn():
    found, absorbed = surveyed(b"\xff" * 100)
    assert (absorbed, found.good_bytes, found.torn_bytes, found.holes) == ([], 0, 100, ())
    assert surveyed(b"")[0].torn_bytes == 0


DENSE = replace(LAST, dense=True)


def at_offset(data, offset):
    """The batch with another offset in its head, which no checksum covers."""
    moved = bytearray(data)
    OFFSET.pack_into(moved, 0, offset)
    return bytes(moved)


def in_epoch(data, epoch):
    told = bytearray(data)
    EPOCH.pack_into(told, EPOCH_AT, epoch)
    return bytes(told)


def corrected(data, known=LAST):
    """The log with its corrections written into it, and what was found."""
    found, _ = surveyed(data, known)
    right = bytearray(data)
    for one in found.corrections:
        right[one.position : one.position + len(one.data)] = one.data
    return bytes(right), found


class TestWhereTheNextFileBegins:
    """At offset 4, as its name says."""

    BORDERED = replace(FileFacts(0, FAR), border=4)

    def test_what_is_the_next_files_is_none_of_this_ones(self):
        data = batch(0) + batch(2)
        found, absorbed = surveyed(data + batch(4), self.BORDERED)
        assert (absorbed, found.good_bytes, found.torn_bytes) == ([0, 2], len(data), len(batch(4)))
        assert "next segment's" in found.losses[0].reason

    def test_what_reaches_across_counts_here(self):
        assert surveyed(batch(0) + batch(2, 4), self.BORDERED)[1] == [0, 2]

    @pytest.mark.parametrize(("stray", "expected"), [(True, [0, 2, 4]), (False, [0, 2])])
    def test_what_goes_on_without_a_gap_is_good_where_the_next_file_is_a_stray(self, stray, expected):
        known = replace(self.BORDERED, stray_follows=lambda: stray)
        assert surveyed(batch(0) + batch(2) + batch(4), known)[1] == expected
        assert surveyed(batch(0) + batch(2) + batch(6), known)[1] == [0, 2]


class TestOffsetsThatNeighboursTell:
    def test_one_between_two_others_is_corrected(self):
        data = batch(0) + batch(2) + batch(4)
        size = len(batch(0))
        wrong = data[:size] + at_offset(batch(2), 2 + (1 << 40)) + data[2 * size :]
        right, found = corrected(wrong)
        assert (right, found.losses, found.holes) == (data, [], ())

    def test_the_first_is_as_its_file_is_called_if_it_was_made_for_appends(self):
        data = batch(0) + batch(2)
        wrong = at_offset(batch(0), 1) + batch(2)
        right, _ = corrected(wrong, replace(DENSE, begins_as_named=True))
        assert right == data

    def test_the_last_is_put_where_the_one_before_ends_if_one_bit_is_wrong(self):
        data = batch(0) + batch(2)
        wrong = batch(0) + at_offset(batch(2), 2 + (1 << 20))
        assert corrected(wrong, DENSE)[0] == data
        assert corrected(wrong)[0] == wrong, "there may be gaps"
        assert corrected(wrong, replace(DENSE, next_offset=4 + (1 << 20)))[0] == wrong, "it is on record there"

    def test_the_last_is_left_where_more_than_a_bit_is_wrong(self):
        wrong = batch(0) + at_offset(batch(2), 777)
        assert corrected(wrong, DENSE)[0] == wrong

    def test_two_damaged_ranges_next_to_each_other_are_one(self):
        bordered = replace(FileFacts(0, FAR), border=4)
        found, _ = surveyed(batch(0) + batch(2) + b"\xff" * 40 + batch(4), bordered)
        assert len(found.losses) == 1
        assert found.torn_bytes == 40 + len(batch(4))


class TestLeaderEpochs:
    def test_one_above_the_next_is_that_of_the_one_before(self):
        data = in_epoch(batch(0), 3) + in_epoch(batch(2), 3) + in_epoch(batch(4), 4)
        wrong = in_epoch(batch(0), 3) + in_epoch(batch(2), 900) + in_epoch(batch(4), 4)
        right, found = corrected(wrong)
        assert right == data
        assert "leader epoch 900 at offset 2 corrected: 3" in found.corrections[0].reason

    def test_the_first_takes_that_of_the_next(self):
        wrong = in_epoch(batch(0), 900) + in_epoch(batch(2), 4)
        assert corrected(wrong)[0] == in_epoch(batch(0), 4) + in_epoch(batch(2), 4)

    def test_the_last_is_held_against_those_on_record(self):
        data = in_epoch(batch(0), 3) + in_epoch(batch(2), 3)
        wrong = in_epoch(batch(0), 3) + in_epoch(batch(2), 900)
        assert corrected(wrong, replace(LAST, newest_epoch=3))[0] == data
        assert corrected(wrong)[0] == wrong, "nothing is on record"

    def test_they_may_go_up_and_old_formats_have_none(self):
        data = in_epoch(batch(0), 3) + in_epoch(batch(2), 7) + batch(4, magic=1) + in_epoch(batch(6), 9)
        assert corrected(data)[0] == data


class TestTheEndThatIsOnRecord:
    def test_a_log_that_ends_before_it_is_short_by_what_is_lost(self):
        found, _ = surveyed(batch(0) + b"\xff" * 60, replace(DENSE, next_offset=9))
        (loss,) = found.losses
        assert (loss.first_offset, loss.following_offset, loss.time_before) == (2, 9, 101)

    def test_behind_it_nothing_is_known_to_follow(self):
        found, _ = surveyed(batch(0) + b"\xff" * 60, replace(DENSE, next_offset=2))
        assert found.losses[0].following_offset is None

    def test_of_a_closed_file_the_next_one_follows(self):
        found, _ = surveyed(batch(0) + b"\xff" * 60, replace(FileFacts(0, FAR), border=9))
        assert found.losses[0].following_offset == 9


def test_a_range_that_is_larger_than_any_batch_is_not_looked_into(monkeypatch):
    monkeypatch.setattr("horolog.broker.log.integrity.surveying.MAX_BATCH_BYTES", 10)
    wrong = at_offset(batch(0), 1 << 40) + batch(2)
    found, absorbed = surveyed(wrong)
    assert (found.corrections, absorbed) == ([], [2])
