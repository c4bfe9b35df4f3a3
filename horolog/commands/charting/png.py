"""Draws counts as a PNG picture, without a library: bars, lines at quarters of the height, times below, the largest count above.

A PNG is a signature and chunks (length, name, data, crc32): the head IHDR, a palette PLTE, the rows IDAT as one zlib stream
with a filter byte 0 before each row, and the end IEND. A pixel is one byte here, an index into the palette.
"""

import struct
import zlib
from collections.abc import Sequence

WIDTH, HEIGHT = 1000, 320
LEFT, RIGHT, TOP, BOTTOM = 16, 16, 28, 30
PALETTE = ((255, 255, 255), (40, 96, 168), (216, 220, 226), (70, 74, 82), (200, 60, 50))
WHITE, BLUE, GREY, DARK, RED = range(5)
LABELS = 5
SCALE = 2
GLYPH_WIDTH = 3
_GLYPHS = {
    "0": "75557",
    "1": "26227",
    "2": "71747",
    "3": "71717",
    "4": "55711",
    "5": "74717",
    "6": "74757",
    "7": "71122",
    "8": "75757",
    "9": "75717",
    "-": "00700",
    ":": "02020",
    ".": "00002",
    ",": "00024",
}
"""Five rows of three pixels, each row an octal digit; other characters are spaces."""
_SIGNATURE = b"\x89PNG\r\n\x1a\n"


class Canvas:
    """Rows of palette indexes."""

    def __init__(self, width: int, height: int) -> None:
        self.width = width
        self.rows = [bytearray(width) for _ in range(height)]

    def box(self, left: int, top: int, right: int, bottom: int, colour: int) -> None:
        """Fill from `left`, `top` up to but not including `right`, `bottom`."""
        left, right = max(left, 0), min(right, self.width)
        if right <= left:
            return
        for row in self.rows[max(top, 0) : max(bottom, 0)]:
            row[left:right] = bytes([colour]) * (right - left)

    def text(self, left: int, top: int, text: str, colour: int) -> None:
        for number, character in enumerate(text):
            for down, bits in enumerate(_GLYPHS.get(character, "00000")):
                for across in range(GLYPH_WIDTH):
                    if int(bits) >> (GLYPH_WIDTH - 1 - across) & 1:
                        x = left + (number * (GLYPH_WIDTH + 1) + across) * SCALE
                        self.box(x, top + down * SCALE, x + SCALE, top + (down + 1) * SCALE, colour)


def text_width(text: str) -> int:
    return len(text) * (GLYPH_WIDTH + 1) * SCALE


def encode(canvas: Canvas) -> bytes:
    """The picture as the bytes of a file."""
    head = struct.pack(">IIBBBBB", canvas.width, len(canvas.rows), 8, 3, 0, 0, 0)
    palette = bytes(value for colour in PALETTE for value in colour)
    rows = zlib.compress(b"".join(b"\0" + row for row in canvas.rows), 9)
    chunks = ((b"IHDR", head), (b"PLTE", palette), (b"IDAT", rows), (b"IEND", b""))
    return _SIGNATURE + b"".join(_chunk(name, data) for name, data in chunks)


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def picture(counts: Sequence[int], marked: Sequence[bool], labels: Sequence[str]) -> bytes:
    """The picture of these counts; `marked` ones are red, `labels` (one for each count) are below some of them."""
    return pictures([(counts, marked, labels)])


def pictures(charts: Sequence[tuple[Sequence[int], Sequence[bool], Sequence[str]]]) -> bytes:
    """Several charts in one picture, one below the other."""
    canvas = Canvas(WIDTH, HEIGHT * len(charts))
    canvas.box(0, 0, WIDTH, HEIGHT * len(charts), WHITE)
    for number, (counts, marked, labels) in enumerate(charts):
        _bars(canvas, HEIGHT * number, counts, marked, labels)
    return encode(canvas)


def _bars(canvas: Canvas, above: int, counts: Sequence[int], marked: Sequence[bool], labels: Sequence[str]) -> None:
    """One chart in the stretch of the canvas that begins below `above`."""
    bottom, height, width = above + HEIGHT - BOTTOM, HEIGHT - TOP - BOTTOM, WIDTH - LEFT - RIGHT
    largest = max(counts, default=0)
    for fourth in range(5):
        y = bottom - height * fourth // 4
        canvas.box(LEFT, y, WIDTH - RIGHT, y + 1, GREY)
    for number, count in enumerate(counts):
        if not count:
            continue
        left, right = LEFT + width * number // len(counts), LEFT + width * (number + 1) // len(counts)
        top = bottom - max(1, round(height * count / largest))
        canvas.box(left, top, max(right - (right - left > 3), left + 1), bottom, RED if marked[number] else BLUE)
    canvas.text(LEFT, above + 8, f"{largest:,}", DARK)
    for number in range(0, len(labels), -(-len(labels) // LABELS)) if labels else ():
        x = LEFT + width * number // len(labels)
        canvas.box(x, bottom, x + 1, bottom + 5, DARK)
        canvas.text(min(x, WIDTH - text_width(labels[number])), bottom + 10, labels[number], DARK)
