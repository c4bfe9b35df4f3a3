"""Shared arguments mean the same everywhere, and name the fault of what they cannot read."""

import argparse

import pytest

from horolog.commands import arguments


@pytest.mark.parametrize(("text", "numbers"), [("0", [0]), ("0,3,5-7", [0, 3, 5, 6, 7]), ("2-2,1,1", [2, 1])])
def test_partitions(text, numbers):
    assert arguments.partitions(text) == numbers


@pytest.mark.parametrize("text", ["", "x", "3-", "-3", "7-5", "0-99999999", "1,,2"])
def test_partitions_that_are_none(text):
    with pytest.raises(argparse.ArgumentTypeError):
        arguments.partitions(text)


def test_a_value_may_begin_with_a_minus_and_a_digit():
    parser = arguments.Parser()
    parser.add_argument("times", nargs="*")
    parser.add_argument("-n", "--since")
    assert parser.parse_args(["-48h", "--since", "-1h"]).__dict__ == {"times": ["-48h"], "since": "-1h"}
    with pytest.raises(SystemExit):
        parser.parse_args(["-x"])


def test_numbers():
    assert (arguments.whole_number("0"), arguments.positive_number("7")) == (0, 7)
    for bad in ("-1", "1.5", "", "²", "9" * 30):
        with pytest.raises(argparse.ArgumentTypeError):
            arguments.whole_number(bad)
    with pytest.raises(argparse.ArgumentTypeError):
        arguments.positive_number("0")


def test_durations_are_read_by_the_one_grammar():
    assert arguments.duration("1h30m") == 5_400_000
    with pytest.raises(argparse.ArgumentTypeError, match="unit"):
        arguments.duration("5")
