"""A bracket holds the first record at or after a time, by entries as segments of each format have them."""

import struct

import pytest

from horolog.broker.log.segments.brackets import Bracket, bracket

OFFSETS = b"".join(struct.pack(">ii", *one) for one in ((3, 100), (7, 200), (11, 300)))
TIMES = b"".join(struct.pack(">qi", *one) for one in ((1000, 3), (1100, 6), (1200, 11), (1300, 13)))
END = 14, 400


@pytest.mark.parametrize(
    ("timestamp", "found"),
    [
        (0, Bracket(0, 0, 3, 100)),
        (1000, Bracket(0, 0, 3, 100)),
        (1001, Bracket(0, 0, 7, 200)),
        (1101, Bracket(7, 200, 11, 300)),
        (1201, Bracket(7, 200, 14, 400)),
        (1301, Bracket(11, 300, 14, 400)),
    ],
)
def test_between_two_entries(timestamp, found):
    assert bracket(OFFSETS, TIMES, timestamp, END) == found


def test_without_entries_it_is_the_whole_segment():
    assert bracket(b"", b"", 5, END) == Bracket(0, 0, *END)
    assert bracket(b"", TIMES[-12:], 5, END) == Bracket(0, 0, *END)


def test_entries_of_what_is_not_written_yet_do_not_count():
    assert bracket(OFFSETS, TIMES, 1301, (5, 150)) == Bracket(5, 150, 5, 150)
