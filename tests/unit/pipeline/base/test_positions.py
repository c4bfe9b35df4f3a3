"""Where reads begin and end: the texts of options, the offsets that they come to, and the ranges of tasks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horolog.client.values.types import TopicPartition
from horolog.pipeline.base.positions import (
    EARLIEST,
    LARGEST_OFFSET,
    LATEST,
    OffsetRange,
    OptionError,
    Position,
    number_in,
    parse_assign,
    parse_moment,
    parse_offsets,
    parse_times,
    resolve,
    show_position,
    split,
)

NOW_MS = 1_795_190_000_000


def at(ms):
    return Position(ms, is_time=True)


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("1700000000000", 1_700_000_000_000),
        ("0", 0),
        ("1h", NOW_MS - 3_600_000),
        ("now", NOW_MS),
        ("@1700000000", 1_700_000_000_000),
        ("2023-11-14T23:13:20+01:00", 1_700_000_000_000),
        ("1970-01-01T00:00:00+02:00", 0),
    ],
)
def test_times_are_milliseconds_or_the_command_lines(text, ms):
    assert parse_moment("startingTimestamp", text, NOW_MS) == at(ms)
    assert parse_times("o", f'{{"t":{{"3":"{text}"}}}}', NOW_MS) == {TopicPartition("t", 3): at(ms)}


def test_partitions_can_be_assigned():
    assert parse_assign("assign", '{"a":[0,2],"b":[1]}') == [("a", 0), ("a", 2), ("b", 1)]
    for wrong in ('{"a":0}', '{"a":[]}', '{"a":["0"]}', '{"a":[-1]}', "[0]", "a"):
        with pytest.raises(OptionError, match="assign"):
            parse_assign("assign", wrong)


def test_streams_may_start_at_the_end():
    assert parse_offsets("startingOffsets", "latest", unwanted="") == Position(LATEST)


class Log:
    """Three partitions of 100 records, the times of which are ten times their offsets; the last one has no times."""

    partitions = tuple(TopicPartition("t", n) for n in range(3))

    def ends(self, partitions, which):
        return dict.fromkeys(partitions, 0 if which == EARLIEST else 100)

    def at_times(self, times):
        return {one: -(-ms // 10) if ms <= 990 and one.partition < 2 else None for one, ms in times.items()}


def resolved(positions, *, error=False):
    found = resolve(Log(), Log.partitions, positions, "startingTimestamp", no_match_is_error=error)
    return [found[one] for one in Log.partitions]


def test_times_become_the_first_offset_at_or_after_them_or_the_end():
    assert resolved(at(41)) == [5, 5, 100]
    assert resolved(at(991)) == [100, 100, 100]
    with pytest.raises(OptionError, match="startingTimestamp: t-2: no record at or after the time 41"):
        resolved(at(41), error=True)


def test_positions_may_be_of_all_kinds_but_are_to_name_every_partition():
    each = dict(zip(Log.partitions, [Position(EARLIEST), Position(7), at(20)], strict=True))
    assert resolved(each) == [0, 7, 100]
    with pytest.raises(OptionError, match=r"give every partition of the read, t-0, t-1, t-2 .*: t-0$"):
        resolved({Log.partitions[0]: Position(3)})


RANGES = st.lists(st.integers(0, 1000), min_size=1, max_size=6).map(
    lambda sizes: [OffsetRange(TopicPartition("t", n), 10 * n, 10 * n + size) for n, size in enumerate(sizes)]
)


@given(RANGES, st.integers(0, 40), st.one_of(st.none(), st.integers(1, 400)))
def test_split_ranges_hold_every_offset_once_and_none_too_many(ranges, least, most):
    parts = split(ranges, least, most)
    offsets = [(part.partition, offset) for part in parts for offset in range(part.start, part.end)]
    assert offsets == [(one.partition, offset) for one in ranges for offset in range(one.start, one.end)]
    assert all(part.size > 0 for part in parts)
    assert most is None or all(part.size <= most for part in parts)
    total = sum(one.size for one in ranges)
    assert len(parts) >= min(least, total)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (" 17 ", 17),
        (str(LARGEST_OFFSET), LARGEST_OFFSET),
        ("9" * 19, None),
        ("9" * 5000, None),
        ("²", None),
        ("", None),
    ],
)
def test_numbers_are_plain_digits_of_64_bits(text, number):
    assert number_in(text) == number


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"t":{"0":9223372036854775808}}', "9223372036854775808 cannot be used as an offset of t-0"),
        ('{"t":{"2147483648":5}}', "does not look like"),
        ('{"t":{"0":5,"0":6}}', "is not JSON: '0' is given twice"),
        ('{"t":{"0":5},"t":{"1":6}}', "is not JSON: 't' is given twice"),
        ("[" * 100_000, "is not JSON"),
        ('{"t":{"0":"5"}}', "'5' is not an offset for t-0"),
        ('{"t":[0]}', "does not look like"),
        ("{}", "has no partition"),
        ("[0]", "is not a JSON object of topics"),
        ("latest", "'latest' would leave nothing to read"),
        ('{"t":{"0":-1}}', "-1 cannot be used as an offset of t-0"),
    ],
)
def test_offsets_that_no_partition_can_have_are_refused(text, said):
    with pytest.raises(OptionError, match=f"^startingOffsets: .*{said}"):
        parse_offsets("startingOffsets", text, unwanted="latest")


@pytest.mark.parametrize("digits", ["9" * 19, "9" * 5000])
def test_a_time_that_no_record_can_have_is_refused(digits):
    with pytest.raises(OptionError, match=r"^startingTimestamp: '9+' is outside the times that a record can have$"):
        parse_moment("startingTimestamp", digits, NOW_MS)


def test_a_text_that_is_no_time_is_refused():
    with pytest.raises(OptionError, match=r"^startingTimestamp: 'soon'"):
        parse_moment("startingTimestamp", "soon", NOW_MS)


def test_positions_are_shown_as_people_read_them():
    assert show_position(Position(17)) == "17"
    assert show_position(at(1_700_000_000_001)).startswith("2023-11-14T22:13:20.001")


def test_a_range_without_offsets_has_no_tasks():
    empty = OffsetRange(TopicPartition("t", 0), 5, 5)
    assert split([empty], 4, None) == []
    assert split([empty, OffsetRange(TopicPartition("t", 1), 0, 2)], 9, 1) == [
        OffsetRange(TopicPartition("t", 1), 0, 1),
        OffsetRange(TopicPartition("t", 1), 1, 2),
    ]
