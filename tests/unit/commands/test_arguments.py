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


def test_a_choice_that_is_not_there_is_answered_with_the_likely_one(capsys):
    parser = arguments.Parser(prog="trial")
    arguments.add_output(parser)
    for word, said in (("jsno", "there is no 'jsno'; do you mean 'json'?"), ("xyz", "expected one of text, json")):
        with pytest.raises(SystemExit):
            parser.parse_args(["-o", word])
        assert said in capsys.readouterr().err
    assert parser.parse_args(["-o", "json"]).output == "json"


def test_help_shows_the_examples_as_they_are_typed():
    parser = arguments.Parser(prog="trial")
    arguments.describe(parser, "Does nothing.", "trial one", "trial two  'quoted'")
    assert parser.format_help().endswith("examples:\n  trial one\n  trial two  'quoted'\n")
    assert "Does nothing.\n" in parser.format_help()


def test_the_zone_may_come_from_the_environment(monkeypatch):
    for zone in ("Asia/Tokyo", ""):
        monkeypatch.setenv(arguments.ZONE_VARIABLE, zone)
        parser = arguments.Parser()
        arguments.add_zone(parser)
        assert parser.parse_args([]).tz == zone
        assert parser.parse_args(["--tz", "UTC"]).tz == "UTC"


def test_options_of_brokers_folders_and_transactions():
    one, several = arguments.Parser(), arguments.Parser()
    for parser, is_for_several in ((one, False), (several, True)):
        arguments.add_broker(parser, several_clusters=is_for_several)
        arguments.add_data_folders(parser)
        arguments.add_isolation(parser)
    words = ["-b", "a:1", "-b", "b:1", "--data", "x", "--data", "y"]
    assert one.parse_args(words).__dict__ == {"bootstrap": "b:1", "data": ["x", "y"], "isolation": "read_committed"}
    assert several.parse_args(words).bootstrap == ["a:1", "b:1"]
    assert several.parse_args([]).bootstrap is one.parse_args([]).bootstrap is None
    with pytest.raises(SystemExit):
        one.parse_args(["--isolation", "serializable"])
