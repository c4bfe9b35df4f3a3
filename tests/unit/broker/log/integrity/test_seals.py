"""Seals come back as they were written, and nothing else does."""

from dataclasses import replace

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from horolog.broker.log.integrity import Contents, IndexSum, Seal, SealsDamaged, blocks_in, fingerprint
from horolog.broker.log.integrity.seals import decode, encode, load, save, save_unsynced
from horolog.broker.log.storage import MemoryStorage

numbers = st.integers(-1, 2**63 - 1)
crcs = st.integers(0, 2**32 - 1)
sums = st.builds(IndexSum, st.integers(0, 2**31), crcs)


@st.composite
def contents(draw, base):
    size_bytes = draw(st.integers(0, 2**23))
    borders = sorted(draw(st.sets(st.integers(0, size_bytes), max_size=6)))
    holes = tuple(zip(borders[::2], borders[1::2], strict=False))
    rest = draw(numbers), draw(numbers), draw(numbers), draw(st.integers(0, 255))
    return Contents(size_bytes, draw(st.integers(base, 2**63 - 1)), *rest, holes)


@st.composite
def block_sums(draw, of):
    return draw(st.binary(min_size=4 * blocks_in(of.size_bytes), max_size=4 * blocks_in(of.size_bytes)))


@st.composite
def whole_seals(draw):
    base, modified, created = draw(st.integers(0, 2**63 - 1)), draw(numbers), draw(numbers)
    holds = draw(contents(base))
    blocks = draw(block_sums(holds))
    return Seal(base, holds, modified, draw(crcs), created, draw(sums), draw(sums), draw(sums), blocks)


seals = whole_seals()

ONE = Seal(
    7,
    Contents(100, 12, 5, 9, 3, 4, ((10, 20),)),
    1,
    2,
    3,
    IndexSum(8, 1),
    IndexSum(12, 2),
    IndexSum(34, 3),
    bytes([0, 0, 0, 10]),
)


@given(st.lists(seals, max_size=4, unique_by=lambda one: one.base_offset))
def test_they_come_back(written):
    written.sort(key=lambda one: one.base_offset)
    assert decode(encode(written)) == {one.base_offset: one for one in written}


@given(st.data())
def test_any_changed_byte_is_noticed(data):
    good = encode([ONE])
    at = data.draw(st.integers(0, len(good) - 1))
    bad = good[:at] + bytes([good[at] ^ data.draw(st.integers(1, 255))]) + good[at + 1 :]
    with pytest.raises(SealsDamaged):
        decode(bad)


@given(st.integers(0, len(encode([ONE])) - 1))
def test_any_cut_is_noticed(size):
    with pytest.raises(SealsDamaged):
        decode(encode([ONE])[:size])


def test_the_format_is_the_one_of_the_docstring():
    lines = encode([ONE]).decode().splitlines()
    assert lines[0] == "horolog-seals 2"
    assert lines[1] == "7 100 1 00000002 12 5 9 3 4 3 8 00000001 12 00000002 34 00000003 10-20 0000000a"
    assert lines[2].startswith("checksum ")


@pytest.mark.parametrize(
    ("said", "wrong", "reason"),
    [
        (b" 12 5 ", {"next_offset": 6}, "end at 6, before 7"),
        (b" 10-20 ", {"holes": ((10, 101),)}, "not inside of 100 bytes"),
        (b" 10-20 ", {"holes": ((20, 10),)}, "not inside of 100 bytes"),
        (b"\n7 100 ", {"size_bytes": 10_000_000}, "not checksums of 10000000 bytes"),
    ],
)
def test_a_seal_that_contradicts_itself_is_neither_written_nor_believed(said, wrong, reason):
    holds = replace(ONE.contents, **wrong)
    with pytest.raises(AssertionError, match=reason):
        encode([replace(ONE, contents=holds)])
    told = {
        "next_offset": f" {holds.next_offset} 5 ",
        "holes": f" {holds.holes[0][0]}-{holds.holes[0][1]} ",
        "size_bytes": f"\n7 {holds.size_bytes} ",
    }
    body = encode([ONE]).rpartition(b"checksum")[0].replace(said, told[next(iter(wrong))].encode())
    with pytest.raises(SealsDamaged, match=reason):
        decode(body + f"checksum {crc32c(body):08x}\n".encode())


def test_no_file_means_no_seals():
    storage = MemoryStorage()
    storage.make_dir("/d")
    assert load(storage, "/d") == {}
    save(storage, "/d", [ONE])
    assert load(storage, "/d") == {7: ONE}


@pytest.mark.parametrize("size", [0, 1, 4095, 4096, 4097, 20000])
def test_a_fingerprint_changes_with_the_ends_and_the_size(size):
    storage = MemoryStorage()
    storage.make_dir("/d")
    data = bytes(n % 251 for n in range(size))

    def of(changed):
        storage.create("/d/a").pwritev([changed], 0)
        return fingerprint(storage.open("/d/a"), len(changed))

    assert of(data) == of(data)
    assert of(data) != of(data + b"x")
    if size:
        assert of(data) != of(b"\xff" + data[1:])
        assert of(data) != of(data[:-1] + b"\xff")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda text: text.replace("horolog-seals 2", "horolog-seals 3"), "is not"),
        (lambda text: text.replace("7 100 ", "7 100 0 "), "has not 18 fields"),
        (lambda text: text.replace(" 0000000a\n", " -\n"), "not checksums of 100 bytes"),
    ],
)
def test_lines_that_are_not_ours_are_refused_even_under_a_right_checksum(change, words):
    body = change(encode([ONE]).decode().rpartition("checksum")[0]).encode()
    with pytest.raises(SealsDamaged, match=words):
        decode(body + f"checksum {crc32c(body):08x}\n".encode())


def test_a_folder_without_the_file_has_no_seals():
    storage = MemoryStorage()
    storage.make_dir("/d")
    assert load(storage, "/d") == {}
    save_unsynced(storage, "/d", [ONE])
    assert load(storage, "/d") == {7: ONE}


def test_the_fingerprint_of_nothing_is_nothing():
    storage = MemoryStorage()
    storage.make_dir("/d")
    assert fingerprint(storage.create("/d/log"), 0) == 0


def test_segments_out_of_their_order_are_neither_written_nor_read():
    later = replace(ONE, base_offset=9)
    with pytest.raises(AssertionError, match="out of order"):
        encode([later, ONE])
    head, *lines = encode([ONE, later]).decode().splitlines(keepends=True)[:-1]
    body = "".join([head, *reversed(lines)]).encode()
    with pytest.raises(SealsDamaged, match="not in their order"):
        decode(body + f"checksum {crc32c(body):08x}\n".encode())
