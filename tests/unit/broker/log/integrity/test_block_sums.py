"""Sums do not depend on how the bytes came, and tell every change of a block."""

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from horolog.broker.log.integrity import BLOCK_BYTES, BlockSums, block_sums, blocks_in, extend_from
from horolog.broker.log.storage import MemoryStorage
from horolog.protocol.records.batch import encode_batch
from horolog.protocol.records.head import CRC_AT
from horolog.protocol.records.record import Record
from tools import compiled


def summed(*parts):
    sums = BlockSums()
    for part in parts:
        sums.extend(part)
    return sums


@given(st.lists(st.integers(0, 2 * BLOCK_BYTES + 3), max_size=4))
def test_sums_do_not_depend_on_the_pieces(sizes):
    data = bytes(range(251)) * (sum(sizes) // 251 + 1)
    data = data[: sum(sizes)]
    parts, at = [], 0
    for size in sizes:
        parts.append(data[at : at + size])
        at += size
    sums = summed(*parts)
    expected = [crc32c(data[n * BLOCK_BYTES : (n + 1) * BLOCK_BYTES]) for n in range(blocks_in(len(data)))]
    assert sums.encode() == b"".join(one.to_bytes(4, "big") for one in expected)
    assert [sums.sum_of(n) for n in range(len(expected))] == expected
    assert sums.size_bytes == len(data)


@pytest.mark.parametrize("size", [0, 1, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 3 * BLOCK_BYTES])
def test_they_go_on_from_where_they_were_saved(size):
    sums = BlockSums(size, summed(bytes(size)).encode())
    sums.extend(b"more")
    assert sums.encode() == summed(bytes(size) + b"more").encode()


def test_sums_of_another_size_are_refused():
    with pytest.raises(ValueError, match="not checksums"):
        BlockSums(5, b"")


def test_what_is_missing_is_read_from_the_file(monkeypatch):
    monkeypatch.setattr(block_sums, "BLOCK_BYTES", 10)
    storage = MemoryStorage()
    file = storage.create("/log")
    file.pwritev([b"abcdefghijklmnopqrstuvwxyz"], 0)
    sums = summed(b"abcdefg")
    extend_from(sums, file, 25)
    assert sums.encode() == summed(b"abcdefghijklmnopqrstuvwxy").encode()
    assert sums.span_of(2) == (20, 25)


def test_only_blocks_that_are_there_have_a_span_and_a_log_is_summed_to_its_end():
    sums = summed(bytes(BLOCK_BYTES + 5))
    assert sums.span_of(1) == (BLOCK_BYTES, BLOCK_BYTES + 5)
    for block in (-1, 2):
        with pytest.raises(AssertionError, match="has no block"):
            sums.span_of(block)
    with pytest.raises(AssertionError, match="ends at 7"):
        extend_from(sums, None, 7)
    sums.size_bytes += BLOCK_BYTES
    with pytest.raises(AssertionError, match="8 bytes of sums"):
        sums.encode()


def batch_of(size_bytes):
    """A batch of exactly this size."""
    empty = len(encode_batch([Record(0, 5, 0, None, b"", ())]))
    value = bytes(n % 251 for n in range(size_bytes - empty))
    while len(batch := encode_batch([Record(0, 5, 0, None, value, ())])) > size_bytes:
        value = value[:-1]
    return bytes(batch)


@pytest.mark.parametrize("before", [0, 1, 100, 900, 979, 980, 1000, 1003, 1023])
@pytest.mark.parametrize("size", [90, 120, 500, 1024, 1900, 3000])
def test_a_batch_is_added_by_its_own_checksum(monkeypatch, before, size):
    monkeypatch.setattr(block_sums, "BLOCK_BYTES", 1024)
    batch = batch_of(size)
    sums = summed(bytes(before))
    sums.extend_by_batch(batch)
    sums.extend(b"more")
    assert sums.encode() == summed(bytes(before) + batch + b"more").encode()


@pytest.mark.skipif(bool(compiled.extensions()), reason="a constant of a compiled module cannot be replaced")
@pytest.mark.parametrize("combines", [False, True])
def test_only_one_whole_batch_is_added_by_its_checksum(monkeypatch, combines):
    monkeypatch.setattr(block_sums, "COMBINES", combines)
    monkeypatch.setattr(block_sums, "COMBINED_FROM_BYTES", 100)
    batch, small = batch_of(500), batch_of(90)
    wrong = batch[:CRC_AT] + b"wxyz" + batch[CRC_AT + 4 :]
    for stored in (batch, small, batch + small, bytes(300)):
        sums = BlockSums()
        sums.extend_with(stored)
        assert sums.encode() == summed(stored).encode()
    sums = BlockSums()
    sums.extend_with(wrong)
    assert (sums.encode() == summed(wrong).encode()) is not combines, "the batch's own sum is used"
