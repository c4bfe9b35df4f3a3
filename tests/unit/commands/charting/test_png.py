"""Pictures are read back by the rules of PNG, written down here once more: their pixels are what was drawn."""

import struct
import zlib

from horolog.commands.charting import png
from horolog.commands.charting.png import BLUE, BOTTOM, DARK, HEIGHT, LEFT, RED, RIGHT, TOP, WHITE, WIDTH, Canvas

INNER = WIDTH - LEFT - RIGHT


def read(data):
    """The palette and the rows of a picture."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, position = {}, 8
    while position < len(data):
        (size,) = struct.unpack_from(">I", data, position)
        name, body = data[position + 4 : position + 8], data[position + 8 : position + 8 + size]
        assert struct.unpack_from(">I", data, position + 8 + size) == (zlib.crc32(name + body),)
        chunks[name] = body
        position += 12 + size
    assert list(chunks) == [b"IHDR", b"PLTE", b"IDAT", b"IEND"]
    width, height, *form = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert form == [8, 3, 0, 0, 0]
    pixels = zlib.decompress(chunks[b"IDAT"])
    assert len(pixels) == height * (width + 1)
    rows = [pixels[row * (width + 1) :][: width + 1] for row in range(height)]
    assert {row[0] for row in rows} == {0}
    return chunks[b"PLTE"], [row[1:] for row in rows]


def height_of(rows, number, count, colour):
    """How many pixels of a bar, in the middle of its width, have the colour."""
    column = LEFT + INNER * (2 * number + 1) // (2 * count)
    return sum(row[column] == colour for row in rows)


def test_bars_are_as_high_as_their_counts():
    palette, rows = read(png.picture([0, 1, 50, 100], [False] * 4, ["a"] * 4))
    full = HEIGHT - TOP - BOTTOM
    heights = [height_of(rows, number, 4, BLUE) for number in range(4)]
    assert heights[0] == 0
    assert heights[1] == round(full / 100)
    assert heights[2] == full // 2
    assert heights[3] == full
    assert palette[3 * BLUE : 3 * BLUE + 3] == bytes(png.PALETTE[BLUE])


def test_the_smallest_count_can_be_seen():
    _, rows = read(png.picture([1, 10**9], [False] * 2, []))
    assert height_of(rows, 0, 2, BLUE) == 1


def test_marked_bars_are_red():
    _, rows = read(png.picture([5, 5], [False, True], ["a", "b"]))
    assert height_of(rows, 1, 2, RED) > 0 == height_of(rows, 0, 2, RED)
    assert height_of(rows, 0, 2, BLUE) > 0 == height_of(rows, 1, 2, BLUE)


def test_more_counts_than_pixels_are_drawn_all_the_same():
    _, rows = read(png.picture([1] * 3 * WIDTH, [False] * 3 * WIDTH, []))
    assert sum(pixel == BLUE for pixel in rows[HEIGHT // 2]) == INNER


def test_nothing_to_draw_is_an_empty_chart():
    _, rows = read(png.picture([], [], []))
    assert len(rows) == HEIGHT
    assert not any(BLUE in row or RED in row for row in rows)


def test_charts_stand_one_below_the_other():
    one, other = ([1], [False], ["a"]), ([1], [True], ["b"])
    _, rows = read(png.pictures([one, other]))
    assert len(rows) == 2 * HEIGHT
    assert [any(colour in row for row in rows[:HEIGHT]) for colour in (BLUE, RED)] == [True, False]
    assert [any(colour in row for row in rows[HEIGHT:]) for colour in (BLUE, RED)] == [False, True]


def test_text_is_drawn_by_its_glyphs():
    canvas = Canvas(20, 12)
    canvas.text(0, 0, "1x-", DARK)
    drawn = ["".join("#" if pixel == DARK else "." for pixel in row[::2]) for row in canvas.rows[::2]]
    assert drawn[:5] == [".#........", "##........", ".#......##", ".#........", "###......."]


def test_what_lies_outside_is_not_drawn():
    canvas = Canvas(4, 2)
    canvas.box(-3, -1, 2, 1, DARK)
    canvas.box(3, 1, 9, 9, RED)
    canvas.box(5, 0, 9, 2, RED)
    canvas.box(2, 0, 2, 2, RED)
    assert [list(row) for row in canvas.rows] == [[DARK, DARK, WHITE, WHITE], [WHITE, WHITE, WHITE, RED]]


def test_labels_stay_inside_the_picture():
    label = "2026-11-17 10:05"
    _, rows = read(png.picture([1] * 5, [False] * 5, [label] * 5))
    below = rows[HEIGHT - BOTTOM + 10 : HEIGHT - BOTTOM + 10 + 10]
    assert any(DARK in row for row in below)
    assert png.text_width(label) < INNER // 5
