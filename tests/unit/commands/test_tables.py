"""Tables align, fit the width that there is, and let no record drive the terminal."""

from hypothesis import given
from hypothesis import strategies as st

from horolog.commands.tables import NARROWEST, cut, display_width, layout, printable

CELLS = st.one_of(st.none(), st.integers(), st.text(max_size=30))
TABLES = st.integers(1, 5).flatmap(
    lambda columns: st.lists(st.lists(CELLS, min_size=columns, max_size=columns), min_size=1, max_size=6)
)


def test_texts_stand_to_the_left_and_numbers_to_the_right():
    lines = layout(["TOPIC", "OFFSET", "KEY"], [["a", 5, None], ["longer", 12345, "k"]], None)
    assert lines == ["TOPIC   OFFSET  KEY", "a            5  -", "longer   12345  k"]


def test_the_widest_text_gives_way_and_numbers_never():
    lines = layout(["KEY", "VALUE", "OFFSET"], [["short", "x" * 100, 1234567890123]], 40)
    assert lines[1] == f"short  {'x' * 17}…  1234567890123"


@given(TABLES, st.one_of(st.none(), st.integers(10, 120)))
def test_every_line_is_one_printable_line_in_the_width(rows, width):
    headings = [f"C{n}" for n in range(len(rows[0]))]
    lines = layout(headings, rows, width)
    assert len(lines) == len(rows) + 1
    assert all(line.isprintable() for line in lines)
    texts = sum(isinstance(cell, str) for row in rows for cell in row)
    if width is not None and not any(isinstance(cell, int) for row in rows for cell in row) and texts:
        assert max(map(display_width, lines)) <= max(width, len(headings) * (NARROWEST + 2))


@given(st.text(max_size=40), st.integers(1, 40))
def test_what_is_cut_fits(text, width):
    shown = cut(printable(text), width)
    assert display_width(shown) <= width
    assert shown == printable(text) or shown.endswith("…")


def test_what_could_drive_a_terminal_is_written_out():
    assert printable("\x1b[31mred\x07\n\u202etxt") == "\\x1b[31mred\\x07\\n\\u202etxt"
    assert printable("Grüße, 日本") == "Grüße, 日本"


def test_wide_characters_take_two_columns():
    assert display_width("日本") == 4
    assert cut("日本語", 5) == "日本…"
