"""Whoever takes a time takes the whole grammar of times: every command of the table, every option, every word of the manual."""

import argparse
import re
from pathlib import Path

import pytest

from horolog.client.cli.commands import COMMANDS
from horolog.client.cli.main import parser_of
from horolog.commands.errors import CommandError, UnreachableError
from tests.support.style import PROJECT

NAMES = {"since", "until", "before", "clock", "timestamp", "time", "times"}
"""Arguments that are called so are times."""
NO_TIMES = {"pipeline jobs": "it prints what other commands did"}
TAKES_A_RANGE = {
    ("offsets", "times"),
    *((name, "since") for name in ("consume", "timeline")),
    ("topics", "copy", "since"),
    *(("pipeline", job, "since") for job in ("archive", "replay", "profile")),
    ("at", "time"),
}
HAS_ENDS = {
    ("offsets", "times"),
    ("groups", "reset", "to"),
    ("topics", "trim", "before"),
    ("topics", "copy", "since"),
    ("consume", "since"),
}
"""Both ends of a partition are times there; a range may begin at the one and end at the other wherever there are ranges."""
TAKES_WHAT_IS_OVER = {("pipeline", job, "older_than") for job in ("expire", "vacuum")}
"""There a time is refused that is understood, if it is not long over."""
FILLER = {
    "TIME": "@1ms",
    "DURATION": "5m",
    "HOST:PORT": "127.0.0.1:9",
    "N": "0",
    "URL": "http://127.0.0.1:9",
    "TARGET": "another",
}


def words_of_the_manual():
    """What the table of times shows, but for the ends of a partition and for units alone."""
    page = (PROJECT / "docs/cli.md").read_text("utf-8")
    table = page.partition("### Times")[2].partition("\n\nIf a local time")[0]
    shown = [
        text for row in re.findall(r"^\| (`.*?) \|", table, flags=re.MULTILINE) for text in re.findall("`(.+?)`", row)
    ]
    return [text for text in shown if text not in {"us", "ns", "earliest", "latest"}]


WORDS = words_of_the_manual()


def parsers():
    """Of each command and each action, with the words that lead to it; commands whose packages are not there are left out."""
    for command in COMMANDS:
        try:
            yield from below(parser_of(command), (command.name,))
        except CommandError:
            continue


def below(parser, words):
    yield words, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, child in action.choices.items():
                yield from below(child, (*words, name))


def takes_a_time(action):
    return action.metavar == "TIME"


TAKERS = [(words, parser, action) for words, parser in parsers() for action in parser._actions if takes_a_time(action)]
IDS = [" ".join((*words, action.dest)) for words, _, action in TAKERS]
TYPED_THERE = {"test-broker"}
"""The parser itself reads the time there: to run the command would be to run a broker."""
NEEDED = {"topic", "to", "source", "data"}
"""Options that a command asks for by itself, since something else may stand in their place."""


def line(words, parser, taker, text, folder):
    """The command with this time, and as little else as it needs."""
    typed = [*words, *([] if not taker.option_strings else [f"{taker.option_strings[-1]}={text}"])]
    for action in parser._actions:
        if action is taker:
            typed += [] if action.option_strings else [text]
        elif action.option_strings:
            typed += (
                [action.option_strings[-1], filler(action, folder)] if action.required or action.dest in NEEDED else []
            )
        elif action.nargs not in {"?", "*"} and not isinstance(action, argparse._SubParsersAction):
            typed.append(filler(action, folder))
    return typed


def filler(action, folder):
    if action.choices:
        return str(next(iter(action.choices)))
    return str(folder) if action.metavar in {"DIR", "PATH", "DIR|URL"} else FILLER.get(action.metavar, "x")


@pytest.fixture
def run(horolog, monkeypatch, tmp_path):
    """Runs a command up to the place where it would connect, or start Spark."""

    def nobody(*_, **__):
        raise UnreachableError("as far as this")

    monkeypatch.setattr("horolog.client.wire.client.Client.__init__", nobody)
    monkeypatch.setattr("importlib.util.find_spec", lambda *_: None)
    monkeypatch.setenv("HOROLOG_TZ", "UTC")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))

    def typed(words, parser, taker, text):
        if words[0] in TYPED_THERE:
            return taker.type(text)
        return horolog(*line(words, parser, taker, text, tmp_path / "folder"))

    return typed


def ended_in_use(ended):
    return not hasattr(ended, "code") or ended.code in {1, 4, 5} or "obstore is not installed" in ended.err


@pytest.mark.parametrize(("words", "parser", "taker"), TAKERS, ids=IDS)
def test_every_word_of_the_manual_is_a_time(run, words, parser, taker):
    for text in WORDS:
        ended = run(words, parser, taker, text)
        too_late = (*words, taker.dest) in TAKES_WHAT_IS_OVER and re.search(
            "in the future|files younger than", ended.err
        )
        assert ended_in_use(ended) or too_late, (text, ended)


@pytest.mark.parametrize(("words", "parser", "taker"), TAKERS, ids=IDS)
def test_what_is_no_time_is_refused_before_anything_is_done(run, words, parser, taker):
    for text in ("10:05 CET", "tomorrowish", "5 monkeys"):
        if words[0] in TYPED_THERE:
            with pytest.raises(argparse.ArgumentTypeError):
                run(words, parser, taker, text)
            continue
        ended = run(words, parser, taker, text)
        assert (ended.code, ended.out) == (2, "")
        assert text.split()[0] in ended.err


@pytest.mark.parametrize(("words", "parser", "taker"), TAKERS, ids=IDS)
def test_a_range_is_taken_or_refused_as_a_range(run, words, parser, taker):
    for text in ("yesterday 10:05..10:10", "yesterday 10:05..+5m", "monday..now"):
        if words[0] in TYPED_THERE:
            with pytest.raises(argparse.ArgumentTypeError, match="is a range"):
                run(words, parser, taker, text)
            continue
        ended = run(words, parser, taker, text)
        if (*words, taker.dest) in TAKES_A_RANGE:
            assert ended_in_use(ended)
        else:
            assert ended.code == 2
            assert "range" in ended.err


@pytest.mark.parametrize(
    ("words", "parser", "taker"), [one for one in TAKERS if (*one[0], one[2].dest) in TAKES_A_RANGE | HAS_ENDS]
)
def test_the_ends_of_a_partition(run, words, parser, taker):
    if (*words, taker.dest) in HAS_ENDS:
        assert all(ended_in_use(run(words, parser, taker, text)) for text in ("earliest", "latest", "beginning", "end"))
    if (*words, taker.dest) in TAKES_A_RANGE:
        assert ended_in_use(run(words, parser, taker, "earliest..now"))
        assert ended_in_use(run(words, parser, taker, "yesterday..latest"))


def test_the_lists_above_name_what_there_is():
    known = {(*words, action.dest) for words, _, action in TAKERS}
    assert {one for one in TAKES_A_RANGE | HAS_ENDS if one[0] != "pipeline"} <= known
    assert len(WORDS) > 30


def test_whatever_is_called_as_a_time_is_one():
    odd = [
        (*words, action.dest)
        for words, parser in parsers()
        for action in parser._actions
        if action.dest in NAMES and not action.choices and not takes_a_time(action)
    ]
    assert odd == []


def test_whoever_reads_a_time_says_so_in_its_arguments():
    """A module of a command that asks for a time has an argument for it, so that the tests above find it."""
    reads = re.compile(r"console\.(?:time|range)\(|parse_(?:time|range|named)\(|past_ms\(")
    folders = (PROJECT / "horolog/client/cli", PROJECT / "horolog/pipeline/jobs", PROJECT / "horolog/testing")
    files = [path for folder in folders for path in Path(folder).glob("*.py")]
    reading = {path.stem for path in files if reads.search(path.read_text("utf-8"))}
    asking = {path.stem for path in files if 'metavar="TIME"' in path.read_text("utf-8")}
    assert reading - {"clock", "at_table", "replay"} == asking - {"command"}, "replay has the arguments of `common`"
