"""Shared arguments mean the same everywhere, and name the fault of what they cannot read."""

import argparse

import pytest

from horolog.client.cli.common import arguments


@pytest.mark.parametrize(("text", "numbers"), [("0", [0]), ("0,3,5-7", [0, 3, 5, 6, 7]), ("2-2,1,1", [2, 1])])
def test_partitions(text, numbers):
    assert arguments.partitions(text) == numbers


@pytest.mark.parametrize("text", ["", "x", "3-", "-3", "7-5", "0-99999999", "1,,2"])
def test_partitions_that_are_none(text):
    with pytest.raises(argparse.ArgumentTypeError):
        arguments.partitions(text)


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


def test_the_broker_comes_from_the_flag_the_environment_or_the_default():
    def parsed(words, environ):
        parser = argparse.ArgumentParser()
        arguments.add_broker(parser, environ)
        return parser.parse_args(words).bootstrap

    assert parsed([], {}) == "localhost:9092"
    assert parsed([], {"HOROLOG_BOOTSTRAP": "b:1"}) == "b:1"
    assert parsed(["--bootstrap", "c:2"], {"HOROLOG_BOOTSTRAP": "b:1"}) == "c:2"
