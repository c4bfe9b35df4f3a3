"""Pieces of a dump: every row is in one of them, they follow each other in time, and no file is read too often."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horolog.pipeline.jobs import dump_pieces
from horolog.pipeline.jobs.dump_pieces import (
    GRAINS,
    MOST_READS,
    RowsPiece,
    Unit,
    evenly,
    is_one_piece,
    pieces_of,
    unsent,
)

MIB = 1 << 20
ROW_BYTES = 1024
PIECE_ROWS = dump_pieces.PIECE_BYTES // ROW_BYTES


def unit(file, times):
    """A file with rows of these times."""
    ordered = sorted(times)
    last = len(ordered) - 1
    grains = [ordered[round((n + 1) / GRAINS * last)] for n in range(GRAINS)]
    return Unit(file, len(ordered), ordered[0], ordered[-1], grains)


def even(file, rows, first_us, last_us):
    """A file with so many rows, equally far from each other."""
    return Unit(file, rows, first_us, last_us, evenly(first_us, last_us))


def reads(pieces, units):
    return sum(one.rows for piece in pieces for one in units if piece.has(one)) / sum(one.rows for one in units)


def rows_in(piece, units):
    """About how many."""
    inside = [
        one.rows / GRAINS
        for one in units
        for time_us in one.grains
        if (piece.since_us is None or time_us >= piece.since_us)
        and (piece.until_us is None or time_us < piece.until_us)
    ]
    return sum(inside)


def test_a_small_dump_is_one_piece():
    assert pieces_of([unit("a", [5, 3, 9])], ROW_BYTES) == [RowsPiece(None, None, ["a"])]
    assert pieces_of([], ROW_BYTES) == [RowsPiece(None, None, [])]
    assert is_one_piece(3 * ROW_BYTES)
    assert not is_one_piece(PIECE_ROWS * ROW_BYTES)


def test_files_in_order_are_read_one_after_the_other_in_small_pieces():
    units = [even(f"f{n}", PIECE_ROWS, n * 1000, n * 1000 + 999) for n in range(50)]
    pieces = pieces_of(units, ROW_BYTES)
    assert len(pieces) >= 45
    assert all(len(piece.files) <= 2 for piece in pieces)
    assert pieces[0].files == ["f0"]
    assert reads(pieces, units) <= 2.1  # each for two pieces, and the first one for smaller ones
    assert max(rows_in(piece, units) for piece in pieces) <= PIECE_ROWS * 1.3


@pytest.mark.parametrize("files", [1, 30])
def test_files_that_overlap_are_read_a_few_times_and_the_first_piece_is_small(files):
    units = [even(f"f{n}", 100 * PIECE_ROWS // files, 0, 1_000_000) for n in range(files)]
    pieces = pieces_of(units, ROW_BYTES)
    assert rows_in(pieces[0], units) <= PIECE_ROWS
    assert MOST_READS < reads(pieces, units) == len(pieces) <= 10  # each is twice as large as the one before
    few = pieces_of([one._replace(rows=one.rows // 16) for one in units], ROW_BYTES)
    assert len(few) <= MOST_READS


def test_a_time_that_is_far_from_all_others_changes_nothing():
    units = [even(f"f{n}", PIECE_ROWS, n * 1000, n * 1000 + 999) for n in range(20)]
    units[3] = units[3]._replace(first_us=-(10**15), grains=[-(10**15), *units[3].grains[1:]])
    pieces = pieces_of(units, ROW_BYTES)
    assert max(rows_in(piece, units) for piece in pieces) <= PIECE_ROWS * 1.3


def test_rows_of_one_time_are_one_piece():
    assert pieces_of([even("a", 100 * PIECE_ROWS, 7, 7)], ROW_BYTES) == [RowsPiece(None, None, ["a"])]


def test_a_dump_that_cannot_be_read_in_parts_has_pieces_without_files():
    pieces = pieces_of([even(None, 3 * PIECE_ROWS, 0, 1_000_000)], ROW_BYTES)
    assert len(pieces) == 5  # an eighth, a quarter, a half, and the rest
    assert {piece.files for piece in pieces} == {None}


@given(
    st.lists(st.lists(st.integers(-50, 50), min_size=1, max_size=30), min_size=1, max_size=6), st.integers(1, 60 * MIB)
)
def test_each_row_is_in_one_piece_and_in_a_file_of_it(times, row_bytes):
    units = [unit(f"f{n}", each) for n, each in enumerate(times)]
    pieces = pieces_of(units, row_bytes)
    assert [one.until_us for one in pieces[:-1]] == [one.since_us for one in pieces[1:]]
    assert (pieces[0].since_us, pieces[-1].until_us) == (None, None)
    borders = [one.since_us for one in pieces[1:]]
    assert borders == sorted(set(borders))
    for n, each in enumerate(times):
        for time_us in each:
            (ours,) = [
                one
                for one in pieces
                if (one.since_us is None or time_us >= one.since_us)
                and (one.until_us is None or time_us < one.until_us)
            ]
            assert f"f{n}" in ours.files


@pytest.mark.parametrize(("sent", "left", "before"), [(0, 3, 0), (1, 3, 0), (4, 2, 4), (5, 1, 5), (8, 1, 5), (9, 0, 9)])
def test_a_run_goes_on_with_the_piece_that_was_not_sent_wholly(sent, left, before):
    pieces = [RowsPiece(None, 10), RowsPiece(10, 20), RowsPiece(20, None)]
    assert unsent(pieces, [4, 1, 4], sent) == (pieces[3 - left :], before)
