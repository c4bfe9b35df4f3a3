"""A text about times is read from left to right, and an error shows how far it was read."""

import re

import pytest

from horolog.client.values.time_text import LONGEST_TEXT, SPACE, TimeText, TimeTextError

NUMBER = re.compile(r"[0-9]+")
YEAR = re.compile(r"(20[0-9]{2})")


def test_parts_are_taken_in_their_order():
    text = TimeText("  10 Days x ", "5m")
    assert text.sees(NUMBER)[0] == text.take(NUMBER)[0] == "10"
    assert text.take(NUMBER) is None
    text.take(SPACE)
    assert text.word() == "days"
    assert text.take_word("weeks") is None
    assert text.take_word("weeks", "days") == "days"
    assert not text.ended
    text.take(SPACE)
    assert text.take_word("x") == "x"
    assert text.ended
    assert text.word() == ""


def test_brackets_around_all_of_it_are_left_away():
    text = TimeText("[17]", "5m")
    assert text.take(NUMBER)[0] == "17"
    assert text.ended


def test_a_part_may_be_taken_out_of_the_middle():
    text = TimeText("Nov 17 10:05 2026", "5m")
    assert text.take_out(YEAR) == "2026"
    assert text.take_out(YEAR) is None
    assert text.take_word("nov") == "nov"
    for number in ("17", "10"):
        text.take(SPACE)
        assert text.take(NUMBER)[0] == number
    assert str(text.error("no more")).startswith(
        "'Nov 17 10:05 2026': after 'Nov 17 10', expected no more, found ':05'"
    )


def test_an_error_says_where_and_what():
    text = TimeText("5 mins", "90s, 5m")
    assert str(text.error("a time")) == "'5 mins': expected a time; examples: 90s, 5m"
    text.take(NUMBER)
    assert "after '5', expected a unit, found 'mins'" in str(text.error("a unit"))
    text.position = text.end
    assert "expected a unit, but the text ends" in str(text.error("a unit"))


def test_a_text_without_end_is_not_read():
    TimeText("1" * LONGEST_TEXT, "5m")
    with pytest.raises(TimeTextError, match=r"'1{20}'\.\.\. is too long; examples: 5m"):
        TimeText("1" * (LONGEST_TEXT + 1), "5m")
