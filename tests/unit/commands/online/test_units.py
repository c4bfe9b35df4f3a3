"""A number that looks like another unit than milliseconds is not guessed: an option or the user says what it is."""

import asyncio
import io

import pytest

from horolog.commands.console import Console
from horolog.commands.online.record_text import RecordTextError
from horolog.commands.online.units import Timestamps, UnitInDoubt, ask

NOW_MS = 1_700_000_000_000


class Terminal(io.StringIO):
    def isatty(self):
        return True


def timestamps(unit=None):
    return Timestamps(unit, lambda text: {"noon": 12}[text], lambda ms: f"<{ms}>")


def doubt_about(number):
    with pytest.raises(UnitInDoubt) as caught:
        timestamps().number(number)
    return caught.value


@pytest.mark.parametrize(("text", "ms"), [(f"@{NOW_MS}", NOW_MS), (" @-5 ", -5), ("noon", 12)])
def test_texts_are_times_or_numbers(text, ms):
    assert timestamps().text(text) == ms


@pytest.mark.parametrize(
    ("unit", "number"), [("s", NOW_MS // 1000), ("ms", NOW_MS), ("us", NOW_MS * 1000), ("ns", NOW_MS * 10**6)]
)
def test_an_option_says_the_unit_of_every_number(unit, number):
    assert timestamps(unit).number(number) == NOW_MS
    assert timestamps(unit).text(f"@{number}") == NOW_MS


@pytest.mark.parametrize(("unit", "number"), [("s", NOW_MS // 1000), ("us", NOW_MS * 1000), ("ns", NOW_MS * 10**6)])
def test_a_number_that_looks_like_another_unit_is_in_doubt(unit, number):
    doubt = doubt_about(number)
    assert doubt.unit == unit
    assert f"<{NOW_MS}>" in doubt.question
    assert f"as milliseconds it is <{number}>" in doubt.question
    assert f"--timestamp-unit {unit} or --timestamp-unit ms" in str(doubt)


def test_what_was_settled_once_holds_for_all_that_look_so():
    times = timestamps()
    times.settle("s", "s")
    assert times.number(NOW_MS // 1000) == NOW_MS
    assert times.number(NOW_MS // 1000 + 7) == NOW_MS + 7000
    with pytest.raises(UnitInDoubt):
        times.number(NOW_MS * 1000)
    times.settle("us", "ms")
    assert times.number(NOW_MS * 1000) == NOW_MS * 1000


def test_a_fraction_is_no_number_of_milliseconds():
    with pytest.raises(RecordTextError, match="not a whole number of milliseconds"):
        timestamps().number(1.5)
    assert timestamps("s").number(1.5) == 1500


@pytest.mark.parametrize(
    ("answer", "unit"), [("s\n", "s"), (" MS \n", "ms"), ("m\n", "ms"), ("n\n", "ns"), ("\n", None), ("", None)]
)
def test_the_user_is_asked_at_the_terminal(answer, unit):
    console = Console(io.StringIO(), io.StringIO(), Terminal(answer), {})
    assert asyncio.run(ask(doubt_about(NOW_MS // 1000), console)) == unit
    assert console.err.getvalue().endswith("Which unit is it? [s/ms/N] ")


def test_without_a_terminal_the_user_is_not_asked():
    console = Console(io.StringIO(), io.StringIO(), io.StringIO("s\n"), {})
    assert asyncio.run(ask(doubt_about(NOW_MS // 1000), console)) is None
    assert console.err.getvalue() == ""
