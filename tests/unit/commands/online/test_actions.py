"""Actions of a command: each has its own arguments, and what cannot be undone waits for a yes."""

import asyncio
import io
import json
from argparse import Namespace

import pytest

from horolog.commands.arguments import Parser
from horolog.commands.console import Console
from horolog.commands.errors import UsageError
from horolog.commands.exit_codes import ExitCode
from horolog.commands.online.actions import (
    Action,
    Outcome,
    add_actions,
    add_yes,
    assignments,
    confirmed,
    run_action,
    show_outcomes,
)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def console(stdin=None):
    return Console(io.StringIO(), io.StringIO(), stdin or io.StringIO(), {})


async def show(arguments, console):
    console.print(f"shown {arguments.name}")
    return ExitCode.OK


async def drop(_arguments, _console):
    return ExitCode.ALERT


ACTIONS = (
    Action("show", "show a thing", lambda parser: parser.add_argument("name"), show, ("trial show x", "trial show y")),
    Action("drop", "drop all", add_yes, drop, ("trial drop --yes",)),
)


@pytest.fixture
def parser():
    made = Parser(prog="trial")
    add_actions(made, "Shows and drops.", ACTIONS)
    return made


def test_the_action_that_is_named_runs_with_its_own_arguments(parser):
    out = console()
    shown = parser.parse_args(["show", "x", "-b", "a:1", "--timeout", "2s", "-o", "json"])
    assert (shown.bootstrap, shown.timeout, shown.output) == ("a:1", 2000, "json")
    assert asyncio.run(run_action(ACTIONS, shown, out)) is ExitCode.OK
    assert out.out.getvalue() == "shown x\n"
    assert asyncio.run(run_action(ACTIONS, parser.parse_args(["drop", "-y"]), out)) is ExitCode.ALERT


def test_help_has_the_first_example_of_each_action_and_all_of_one(parser, capsys):
    assert parser.format_help().endswith("examples:\n  trial show x\n  trial drop --yes\n")
    with pytest.raises(SystemExit):
        parser.parse_args(["show", "--help"])
    said = capsys.readouterr().out
    assert "Show a thing." in said
    assert said.endswith("examples:\n  trial show x\n  trial show y\n")


@pytest.mark.parametrize("words", [[], ["shwo"], ["show"], ["drop", "x"]])
def test_words_that_are_no_action_are_a_wrong_usage(parser, words):
    with pytest.raises(SystemExit) as ended:
        parser.parse_args(words)
    assert ended.value.code == 2


def test_assignments():
    assert assignments(["a=1", "b=x=y", "c="]) == {"a": "1", "b": "x=y", "c": ""}
    assert assignments(None) == {}
    for bad in ("a", "=1", ""):
        with pytest.raises(UsageError, match="expected KEY=VALUE"):
            assignments([bad])


def confirm(console, yes=False):
    return asyncio.run(confirmed(Namespace(yes=yes), console, "deleting t"))


@pytest.mark.parametrize(
    ("answer", "goes_on"),
    [("y\n", True), (" Yes \n", True), ("n\n", False), ("\n", False), ("yesterday\n", False), ("", False)],
)
def test_only_a_yes_at_the_terminal_goes_on(answer, goes_on):
    asked = console(Terminal(answer))
    assert confirm(asked) is goes_on
    assert asked.err.getvalue() == "deleting t: continue? [y/N] "


def test_without_a_terminal_the_yes_is_an_option():
    silent = console(io.StringIO("y\n"))
    with pytest.raises(UsageError, match="deleting t cannot be undone; pass --yes"):
        confirm(silent)
    assert confirm(silent, yes=True)
    assert silent.err.getvalue() == ""


DONE = Outcome("t-0", {"topic": "t", "done": True}, "moved", None)
FAILED = Outcome("t-1", {"topic": "t", "done": False}, "moved", "t-1: there is no such broker")


def test_outcomes_are_lines_and_a_failure_is_the_exit_code():
    out = console()
    assert show_outcomes([DONE], out) is ExitCode.OK
    assert show_outcomes([DONE, FAILED], out) is ExitCode.FAILED
    assert out.out.getvalue() == "t-0: moved\nt-0: moved\n"
    assert out.err.getvalue().endswith(": t-1: there is no such broker\n")
    assert out.err.getvalue().count("t-1: ") == 1


def test_outcomes_are_one_document_of_json():
    out = console()
    out.as_json = True
    assert show_outcomes([DONE, FAILED], out) is ExitCode.FAILED
    assert json.loads(out.out.getvalue()) == [
        {"topic": "t", "done": True, "error": None},
        {"topic": "t", "done": False, "error": "t-1: there is no such broker"},
    ]
