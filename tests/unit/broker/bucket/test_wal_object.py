"""Objects of a WAL: round trips, parts, and every kind of damage."""

import struct

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from horolog.broker.bucket import wal_object
from horolog.broker.bucket.names import Wal
from horolog.broker.bucket.sealed_lines import FormatError, NewerFormat
from horolog.broker.bucket.wal_object import HEAD_SIZE, TAIL_SIZE, Identity, NewRun
from tests.support import golden_objects
from tests.support.damage import cuts, flips

NONCE = bytes(range(16))
SHIPPED = Identity(Wal(2, 17), 42, 43, NONCE)
MERGED = Identity(Wal(2, 17), 40, 43, NONCE, is_merged=True)
A, B = b"a" * 16, b"b" * 16


def new(topic=A, partition=0, epoch=1, number=42, base=100, count=3, pieces=(b"batch",)):
    return NewRun(topic, partition, epoch, number, base, base + count, 1_000, 2_000, pieces)


RUNS = (new(B, 1, pieces=[b"second", memoryview(b"part")]), new(A, 5), new(A, 0, base=0))


@st.composite
def objects(draw):
    is_merged = draw(st.booleans())
    first = draw(st.integers(0, 2**40))
    upto = first + (draw(st.integers(1, 4)) if is_merged else 1)
    identity = Identity(
        Wal(draw(st.integers(0, 2**31 - 1)), draw(st.integers(0, 2**63))),
        first,
        upto,
        draw(st.binary(min_size=16, max_size=16)),
        is_merged,
    )
    places = draw(st.sets(st.tuples(st.sampled_from([A, B]), st.integers(0, 2**31 - 1)), max_size=4))
    runs = []
    for topic, partition in places:
        base = draw(st.integers(0, 2**40))
        for number in range(first, upto):
            count = draw(st.integers(1, 1000))
            pieces = draw(st.lists(st.binary(min_size=1, max_size=20), min_size=1, max_size=3))
            epoch = draw(st.integers(0, 3))
            runs.append(
                NewRun(
                    topic,
                    partition,
                    epoch,
                    number,
                    base,
                    base + count,
                    draw(st.integers(-1, 9)),
                    draw(st.integers(-1, 9)),
                    pieces,
                )
            )
            base += count
    return identity, draw(st.permutations(runs))


@given(objects())
def test_what_is_written_is_read(written):
    identity, runs = written
    data = wal_object.encode(identity, runs)
    footer = wal_object.decode(data)
    assert footer.identity == identity == wal_object.decode_head(data[:HEAD_SIZE])
    found = {run[:8]: bytes(run.check(data[run.position : run.end])) for run in footer.runs}
    assert found == {tuple(run[:8]): b"".join(run.pieces) for run in runs}
    assert data == wal_object.encode(identity, sorted(runs)), "the order of the caller does not matter"


@given(objects(), st.data())
def test_the_end_alone_is_enough(written, draw):
    identity, runs = written
    data = wal_object.encode(identity, runs)
    start = wal_object.footer_start(len(data), data[-TAIL_SIZE:])
    longer = draw.draw(st.integers(0, start))
    assert wal_object.decode_end(len(data), data[longer:]) == wal_object.decode(data)
    with pytest.raises(FormatError, match="the footer begins at"):
        wal_object.decode_end(len(data), data[start + 1 :])


@pytest.mark.parametrize(
    ("name", "identity", "runs"),
    [("wal-1", SHIPPED, RUNS), ("merged-1", MERGED, (*RUNS, new(A, 5, number=41, base=90)))],
)
def test_format_1_stays_as_it_is(name, identity, runs):
    assert wal_object.encode(identity, runs) == golden_objects.read(name)


def test_damage_is_refused_in_the_whole_and_in_the_part_that_is_read():
    data = wal_object.encode(SHIPPED, RUNS)
    footer = wal_object.decode(data)
    start = wal_object.footer_start(len(data), data[-TAIL_SIZE:])
    for hurt in (*cuts(data), *flips(data), data + b"x"):
        with pytest.raises(FormatError):
            wal_object.decode(hurt)
    for end in (*flips(data[start:]), data[start:] + b"x"):
        with pytest.raises(FormatError):
            wal_object.decode_end(len(data), end)
    run = footer.runs[0]
    part = data[run.position : run.end]
    for hurt in (*cuts(part), *flips(part), part + b"x"):
        with pytest.raises(FormatError, match="not those that were written"):
            run.check(hurt)
    for hurt in (*cuts(data[:HEAD_SIZE]), *flips(data[:HEAD_SIZE])):
        with pytest.raises(FormatError):
            wal_object.decode_head(hurt)


# -- hostile objects: all checksums are right


def patched(data, changes, head=()):
    """The object with bytes of its footer changed at positions counted from the footer's start, and the sums made right."""
    start = wal_object.footer_start(len(data), data[-TAIL_SIZE:])
    footer = bytearray(data[start:-TAIL_SIZE])
    for position, form, value in changes:
        struct.pack_into(form, footer, position, value)
    first = bytearray(data[: HEAD_SIZE - 4])
    for position, form, value in head:
        struct.pack_into(form, first, position, value)
    sums = struct.pack(">I", crc32c(bytes(first)))
    return (
        bytes(first)
        + sums
        + data[HEAD_SIZE:start]
        + bytes(footer)
        + struct.pack(">II", crc32c(bytes(footer)), len(footer))
    )


COUNT, RUN = 50, 54
EPOCH, NUMBER, BASE, NEXT, POSITION, LENGTH, KIND = RUN + 20, RUN + 24, RUN + 32, RUN + 40, RUN + 64, RUN + 72, RUN + 80


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ((COUNT, ">I", 2**32 - 1), FormatError),
        ((COUNT, ">I", 0), FormatError),
        ((0, ">4s", b"HWAL"), FormatError),
        ((4, ">B", 2), NewerFormat),
        ((5, ">B", 2), NewerFormat),
        ((6, ">i", -1), FormatError),
        ((18, ">Q", 43), FormatError),
        ((26, ">Q", 44), FormatError),
        ((26, ">Q", 42), FormatError),
        ((RUN + 16, ">i", -1), FormatError),
        ((EPOCH, ">i", -1), FormatError),
        ((NUMBER, ">Q", 41), FormatError),
        ((NUMBER, ">Q", 43), FormatError),
        ((BASE, ">q", -1), FormatError),
        ((NEXT, ">q", 0), FormatError),
        ((POSITION, ">Q", 0), FormatError),
        ((POSITION, ">Q", 2**63), FormatError),
        ((LENGTH, ">I", 0), FormatError),
        ((LENGTH, ">I", 2**32 - 1), FormatError),
        ((KIND, ">B", 1), NewerFormat),
    ],
)
def test_hostile_footers_are_refused(change, error):
    data = patched(wal_object.encode(SHIPPED, [new(A, 0, base=0)]), [change])
    with pytest.raises(error):
        wal_object.decode(data)


def test_a_head_of_another_object_is_refused():
    data = wal_object.encode(SHIPPED, RUNS)
    with pytest.raises(FormatError, match="head and footer differ"):
        wal_object.decode(patched(data, [], head=[(18, ">Q", 41)]))
    with pytest.raises(FormatError, match="no object of a WAL"):
        wal_object.decode_head(patched(data, [], head=[(0, ">4s", b"HWAF")]))
    assert wal_object.is_object(data)
    assert not wal_object.is_object(b"")


@pytest.mark.parametrize("size", [0, HEAD_SIZE, wal_object.MAX_BYTES + 1])
def test_sizes_that_no_object_has(size):
    with pytest.raises(FormatError, match=f"an object of {size} bytes"):
        wal_object.footer_start(size, bytes(TAIL_SIZE))


@pytest.mark.parametrize(
    ("identity", "runs", "said"),
    [
        (SHIPPED._replace(upto=44), [], "numbers 42 up to 44"),
        (SHIPPED, [new(pieces=[b""])], "of 0 bytes"),
        (SHIPPED, [new(count=0)], "offsets 100 up to 100"),
        (SHIPPED, [new(number=41)], "a run of number 41"),
        (SHIPPED, [new(), new()], "out of order"),
        (SHIPPED, [new(), new(base=102)], "overlap"),
        (SHIPPED._replace(nonce=b""), [], "a nonce has 16 bytes"),
    ],
)
def test_what_cannot_be_written(identity, runs, said):
    with pytest.raises(ValueError, match=said):
        wal_object.encode(identity, runs)


def test_an_empty_object_and_two_epochs_of_a_partition():
    assert wal_object.decode(wal_object.encode(SHIPPED, [])).runs == []
    runs = wal_object.decode(wal_object.encode(SHIPPED, [new(), new(epoch=2, base=101)])).runs
    assert [run.leader_epoch for run in runs] == [1, 2]
