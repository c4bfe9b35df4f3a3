"""A walk goes from record to record, and ends at the first byte that does not fit. `tests/property` has both of its forms side by side."""

import pytest

from horolog.protocol.errors import DecodeError
from horolog.protocol.records.walk import first_later, later_records, record_starts, walk
from tests.support import raw_records as raw

EXTREMES = [0, 1, -1, 63, -64, 8191, -8192, 2**31, -(2**31), 2**63 - 1, -(2**63)]


@pytest.mark.parametrize("front", [0, 7])
def test_a_walk_ends_behind_the_last_record(front):
    records = raw.record(b"one") + raw.record(b"two", offset_delta=1)
    assert walk(b"f" * front + records, front, 0, 2)[0] == front + len(records)


def test_no_record_is_no_walk():
    assert walk(b"", 0, 0, 0)[0] == 0


@pytest.mark.parametrize("first", EXTREMES)
@pytest.mark.parametrize("second", EXTREMES)
def test_the_lowest_and_the_highest_time(first, second):
    records = raw.record(timestamp_delta=first) + raw.record(timestamp_delta=second, offset_delta=1)
    assert walk(records, 0, 0, 2)[1:3] == (min(first, second), max(first, second))


@pytest.mark.parametrize(("offsets", "index", "expected"), [
    ([0, 1, 2], 0, True),
    ([70, 71], 70, True),
    ([20_000, 20_001], 20_000, True),
    ([0, 2], 0, False),
    ([1, 0], 0, False),
    ([0, 1], 1, False),
])  # fmt: skip
def test_offsets_count_up_from_the_number_of_the_first_record(offsets, index, expected):
    records = b"".join(raw.record(offset_delta=offset) for offset in offsets)
    assert walk(records, 0, index, len(offsets))[3] is expected


@pytest.mark.parametrize("size", [0, 1, 63, 64, 8191, 8192, 1_100_000])
def test_keys_and_values_of_any_size(size):
    records = raw.record(b"v" * size, b"k" * size) + raw.record(None, b"", offset_delta=1)
    assert walk(records, 0, 0, 2) == (len(records), 0, 0, True, False)


def test_a_null_key_is_noticed():
    records = raw.record(key=b"k") + raw.record(key=None, offset_delta=1)
    assert walk(records, 0, 0, 1)[4] is False
    assert walk(records, 0, 0, 2)[4] is True


@pytest.mark.parametrize("headers", [
    [(b"", None)],
    [(b"name", b"value"), (b"name", b"")],
    [(b"k" * 200, b"v" * 20_000)],
    [(b"n", b"v")] * 100,
])  # fmt: skip
def test_headers_are_passed_over(headers):
    record = raw.record(headers=headers)
    assert walk(record, 0, 0, 1)[0] == len(record)


def broken(body):
    return raw.varint(len(body)) + body


@pytest.mark.parametrize(("data", "reason"), [
    (broken(b"\0\0\0\x01\x01\x00") + b"\0", None),
    (raw.varint(5) + b"\0\0\0\x01\x01\x00", r"ends \+1 bytes"),
    (raw.varint(7) + b"\0\0\0\x01\x01\x00\0", r"ends -1 bytes"),
    (raw.varint(-6) + b"\0\0\0\x01\x01\x00", "ends"),
    (broken(b"\0\0\0\x01\x01\x02\x01\x01"), "header without a key"),
    (broken(b"\0\0\0\x01\x01\x01"), "claims -1 headers"),
    (broken(b"\0\0\0\x01\x01\x7f"), "claims -64 headers"),
    (broken(b"\0\0\0\x01\x01\x7e\0"), "claims 63 headers"),
    (broken(b"\0\0\x80\x80\x80\x80\x80\x01\x01\x01\x00"), "longer than 5 bytes"),
    (broken(b"\0" + b"\xff" * 9 + b"\x02\0\x01\x01\0"), "more than 64 bits"),
    (broken(b"\0" + b"\xff" * 11 + b"\x02\0\x01\x01\0"), "longer than 10 bytes"),
])  # fmt: skip
def test_what_does_not_fit_is_refused(data, reason):
    if reason is None:
        assert walk(data, 0, 0, 1)[0] == len(data) - 1
        return
    with pytest.raises(DecodeError, match=reason):
        walk(data, 0, 0, 1)


@pytest.mark.parametrize("kept", range(12))
def test_an_end_inside_of_a_record(kept):
    record = raw.record(b"value", b"key")
    assert len(record) > 12
    with pytest.raises((IndexError, DecodeError)):
        walk(record[:kept], 0, 0, 1)


TIMES = [-5, 3, 3, -(2**62), 9, 2**40, 8192]


@pytest.fixture
def dated():
    return b"".join(raw.record(b"v" * 100, timestamp_delta=delta, offset_delta=i) for i, delta in enumerate(TIMES))


def test_records_later_than_all_before_them(dated):
    found = []
    assert later_records(dated, 0, len(TIMES), -5, found) == (len(dated), 2**40)
    assert [delta for delta, _ in found] == [3, 9, 2**40]
    assert [dated[at] >> 1 for _, at in found] == [1, 4, 5]  # where their offsets lie


def test_the_first_later_record_ends_the_walk(dated):
    delta, at = first_later(dated, 0, len(TIMES), 3)
    assert (delta, dated[at] >> 1) == (9, 4)
    assert first_later(dated, 0, 1, -5) == (-5, 0)
    with pytest.raises(IndexError):
        first_later(dated, 0, len(TIMES) + 1, 2**40)


def test_the_highest_time_alone(dated):
    assert later_records(dated, 0, 2, -(2**63), None)[1] == 3
    assert later_records(dated, 0, 0, 7, None) == (0, 7)


def test_a_walk_past_the_end_is_an_index_error(dated):
    with pytest.raises(IndexError):
        later_records(dated, 0, len(TIMES) + 1, 0, None)


@pytest.mark.parametrize("front", [0, 7])
def test_where_records_of_any_size_begin(front):
    sizes = [0, 1, 60, 8191, 8192, 1_100_000, 5]
    starts, data = [], b"f" * front
    for size in sizes:
        starts.append(len(data))
        data += raw.record(b"v" * size)
    found = []
    assert record_starts(data, front, len(sizes), found) == len(data)
    assert found == starts
    assert record_starts(data, front, 0, found) == front


@pytest.mark.parametrize(
    ("data", "fault"), [(b"\x01", DecodeError), (b"\xff" * 6, DecodeError), (b"", IndexError), (b"\x80", IndexError)]
)
def test_a_length_that_is_none_ends_the_walk(data, fault):
    with pytest.raises(fault):
        record_starts(data, 0, 1, [])
