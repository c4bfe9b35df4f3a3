"""Scanning a batch's records says what reading them one by one says, however alike or unlike they are."""

import pytest

from horolog.protocol.errors import DecodeError
from horolog.protocol.records.scan import LONG_RECORD_BYTES, Scan, scan_records
from horolog.protocol.records.walk import walk
from tests.support import raw_records as raw


def scan(records, front=b""):
    return scan_records(front + b"".join(records), len(front), len(records))


def alike(count, **fields):
    return [raw.record(b"v" * 100, offset_delta=index, **fields) for index in range(count)]


@pytest.mark.parametrize("count", [1, 3, 15, 16, 63, 64, 65, 200, 8191, 8193, 20_000])
def test_alike_records_in_any_number(count):
    assert scan(alike(count, timestamp_delta=3), b"front") == Scan(3, 3, in_order=True, has_null_key=True)


@pytest.mark.parametrize(
    "deltas",
    [
        lambda index: index,
        lambda index: -index,
        lambda index: 5000 - 77 * index,
        lambda index: index * 1_000_003,
        lambda index: (-1) ** index * index * 10**9,
        lambda index: 2**62 + index,
        lambda index: -(2**63) if index == 90 else 2**63 - 1,
    ],
)
def test_lowest_and_highest_time(deltas):
    times = [deltas(index) for index in range(200)]
    records = [raw.record(b"v" * 50, offset_delta=index, timestamp_delta=time) for index, time in enumerate(times)]
    assert scan(records)[:2] == (min(times), max(times))


@pytest.mark.parametrize("sizes", [(60, 70), (0, 3), (100, 5000), (8180, 8200), (10, 10)])
@pytest.mark.parametrize("key", [None, b"", b"key", b"k" * 70])
def test_values_of_different_sizes(sizes, key):
    small, large = sizes
    records = [
        raw.record(b"v" * (small + index * 7 % (large - small + 1)), key, offset_delta=index) for index in range(300)
    ]
    assert scan(records) == Scan(0, 0, in_order=True, has_null_key=key is None)


@pytest.mark.parametrize("place", [0, 5, 70, 299])
def test_one_null_key_among_many(place):
    records = [
        raw.record(b"v" * 30, None if index == place else b"key", offset_delta=index, timestamp_delta=index)
        for index in range(300)
    ]
    assert scan(records).has_null_key
    del records[place]
    assert not scan(records).has_null_key


@pytest.mark.parametrize("place", [0, 17, 150, 299])
@pytest.mark.parametrize("wrong", [-1, 7, 500, 2**30])
def test_offsets_out_of_order(place, wrong):
    deltas = list(range(300))
    deltas[place] = wrong if wrong != place else wrong + 1
    records = [raw.record(b"v" * 20, offset_delta=delta) for delta in deltas]
    assert not scan(records).in_order


def test_headers_are_part_of_the_shape():
    headers = ((b"trace", b"12345678"), (b"empty", None))
    assert scan(alike(100, headers=headers)) == Scan(0, 0, in_order=True, has_null_key=True)


@pytest.mark.parametrize("place", [0, 1, 20, 99])
@pytest.mark.parametrize("at", range(9))
def test_one_wrong_byte_in_a_run_of_records(place, at):
    """Lengths that do not add up are found wherever they are; the length of the run does not hide them."""
    records = [raw.record(b"v" * 100, b"", offset_delta=64 + index, timestamp_delta=1) for index in range(100)]
    wrong = bytearray(records[place])
    wrong[at] ^= 0x06
    records[place] = bytes(wrong)
    if at in (2, 3, 4, 5):  # attributes, time and offset may say anything
        assert scan(records).in_order is False
    else:
        with pytest.raises(DecodeError):
            scan(records)


@pytest.mark.parametrize("count", [1, 40])
def test_too_few_and_too_many(count):
    records = alike(count)
    for claimed in (count - 1, count + 1):
        with pytest.raises(DecodeError):
            scan_records(b"".join(records), 0, claimed)
    with pytest.raises(DecodeError):
        scan_records(b"".join(records)[:-1], 0, count)
    with pytest.raises(DecodeError):
        scan_records(b"".join(records) + b"\x00", 0, count)


def test_lengths_of_more_than_five_bytes_are_refused():
    """Java's readers do not read them: such a record would be a stone in every consumer's way."""
    padded = b"\x8c\x80\x80\x80\x80\x00" + b"\x00\x00\x00\x01\x01\x00"
    for records in ([padded], alike(30) + [padded] * 30):
        with pytest.raises(DecodeError):
            scan(records)


@pytest.mark.parametrize(("count", "reason"), [(0x01, "claims -1 headers"), (0x02, "header without a key|ends")])
def test_a_shape_needs_headers_that_are_there(count, reason):
    records = alike(20)
    records[0] = records[0][:-1] + bytes([count])
    with pytest.raises(DecodeError, match=reason):
        scan(records)


LONG = 2 * LONG_RECORD_BYTES


@pytest.mark.parametrize("value", [b"v" * LONG, b"", None])
@pytest.mark.parametrize("key", [b"k" * LONG, None])
@pytest.mark.parametrize("headers", [[], [(b"name", b"v" * LONG)]])
@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_long_records(value, key, headers, kind):
    records = [raw.record(value, key, index, 9 - index, headers) for index in range(3)]
    data = b"front" + b"".join(records)
    assert scan_records(kind(data), 5, 3) == Scan(7, 9, in_order=True, has_null_key=key is None)


def test_long_records_out_of_order():
    records = [raw.record(b"v" * LONG, offset_delta=index) for index in (1, 0)]
    assert not scan(records).in_order


@pytest.mark.parametrize("cut", [1, LONG, 2 * LONG])
def test_a_long_record_that_ends_early(cut):
    data = b"".join(raw.record(b"v" * LONG, offset_delta=index) for index in range(2)) + b"v" * LONG
    with pytest.raises(DecodeError):
        scan_records(data[: -LONG - cut], 0, 1 if cut > LONG else 2)


@pytest.mark.parametrize("change", [0x01, 0x02, 0x40, 0x7F, 0x80, 0xFF])
@pytest.mark.parametrize("place", [*range(14), -1, -2, -3, -4])
def test_a_fault_in_a_long_record(place, change):
    """It is found where it is found in the record as it is."""
    record = bytearray(raw.record(b"v" * LONG, b"k", 0, 0, [(b"", None)]))
    record[place] ^= change
    data = bytes(record)

    def is_whole(read):
        try:
            return read()
        except (DecodeError, IndexError):
            return False

    as_it_is = is_whole(lambda: walk(data, 0, 0, 1)[0] == len(data))
    assert is_whole(lambda: bool(scan_records(data, 0, 1))) == as_it_is
