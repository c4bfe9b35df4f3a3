"""Bars are as long as their counts, fit the width, and a picture is a PNG that says the same."""

import struct
import zlib

from hypothesis import given
from hypothesis import strategies as st

from horolog.commands.charting import png
from horolog.commands.charting.drawing import bar, draw

COUNTS = st.lists(st.integers(0, 10**9), min_size=1, max_size=60)


@given(COUNTS, st.integers(40, 200))
def test_lines_fit_and_show_every_bucket_that_is_not_empty(counts, width):
    labels = [f"label {n:04}" for n in range(len(counts))]
    lines = draw(labels, counts, width, lambda first, last: f"nothing for {last - first + 1}", [""] * len(counts))
    assert all(len(line) <= width for line in lines)
    assert [line[:10] for line in lines if line.startswith("label") and line.split()[2] != "0"] == [
        label for label, count in zip(labels, counts, strict=True) if count
    ]


@given(st.integers(1, 10**9), st.integers(1, 10**9), st.integers(1, 100))
def test_a_bar_is_as_long_as_its_share(one, other, width):
    largest = max(one, other)
    drawn = bar(min(one, other), largest, width)
    assert 1 <= len(drawn) <= width
    assert abs(len(drawn) - min(one, other) / largest * width) <= 1
    assert bar(largest, largest, width) == "█" * width
    assert bar(0, largest, width) == ""


def test_runs_of_empty_buckets_are_folded():
    lines = draw(list("abcdefgh"), [1, 0, 0, 0, 0, 0, 0, 2], 40, lambda first, last: f"{first}-{last}", [""] * 8)
    assert lines == ["a 1 " + "█" * 17 + "▌", "  ┆ 1-6", "h 2 " + "█" * 35]


def pixels(data):
    """The rows of a PNG as this module writes them."""
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    position, chunks = 8, {}
    while position < len(data):
        (size,) = struct.unpack_from(">I", data, position)
        name, body = data[position + 4 : position + 8], data[position + 8 : position + 8 + size]
        assert struct.unpack_from(">I", data, position + 8 + size) == (zlib.crc32(name + body),)
        chunks[name] = body
        position += size + 12
    width, height, depth, kind = struct.unpack_from(">IIBB", chunks[b"IHDR"])
    assert (depth, kind, list(chunks)) == (8, 3, [b"IHDR", b"PLTE", b"IDAT", b"IEND"])
    rows = zlib.decompress(chunks[b"IDAT"])
    assert len(rows) == height * (width + 1)
    return [rows[start + 1 : start + width + 1] for start in range(0, len(rows), width + 1)]


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=300))
def test_bars_of_a_picture_are_as_high_as_their_counts(counts):
    rows = pixels(png.picture(counts, [False] * len(counts), ["12:00"] * len(counts)))
    width, height = png.WIDTH - png.LEFT - png.RIGHT, png.HEIGHT - png.TOP - png.BOTTOM
    for number, count in enumerate(counts):
        x = png.LEFT + width * number // len(counts)
        blue = sum(row[x] == png.BLUE for row in rows)
        assert blue == (max(1, round(height * count / max(counts))) if count else 0)


def test_what_is_marked_is_red_and_an_empty_picture_is_one_too():
    rows = pixels(png.picture([1, 2], [False, True], ["", ""]))
    assert any(png.RED in row for row in rows)
    assert pixels(png.picture([], [], []))
