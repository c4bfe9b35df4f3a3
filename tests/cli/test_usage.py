"""Wrong usage of any command is two lines on standard error: the fault with the likely remedy, and the form that the command expects."""

import argparse

import pytest

from horolog.client.cli.commands import COMMANDS
from horolog.client.cli.main import parser_of

OURS = [one for one in COMMANDS if one.name != "pipeline"]
"""Its arguments need packages of an extra."""


def actions_of(parser):
    """The parsers of a command's actions, by name."""
    found = [one.choices for one in parser._actions if isinstance(one, argparse._SubParsersAction)]
    return found[0] if found else {}


def forms():
    """The words of each command and action, with its parser."""
    for command in OURS:
        parser = parser_of(command)
        actions = actions_of(parser)
        yield from ([((command.name, name), below) for name, below in actions.items()] or [((command.name,), parser)])


FORMS = dict(forms())
WITH_TIMEOUT = [words for words, parser in FORMS.items() if "--timeout" in parser._option_string_actions]
WITH_ACTIONS = [one.name for one in OURS if actions_of(parser_of(one))]


def two_lines(ended, *words):
    """The first line, of the fault; the second shows the command."""
    assert (ended.code, ended.out) == (2, ""), ended
    fault, form, *more = ended.err.splitlines()
    assert more == []
    command = " ".join(("horolog", *words))
    assert fault.startswith(f"{command}")
    assert form.startswith(f"usage: {command}")
    return fault


@pytest.mark.parametrize("words", FORMS, ids=" ".join)
def test_an_option_that_does_not_exist(horolog, words):
    given = required_by(FORMS[words])
    assert "there is no option --no-such-option" in two_lines(horolog(*words, *given, "--no-such-option"), *words)


@pytest.mark.parametrize("words", WITH_TIMEOUT, ids=" ".join)
def test_a_misspelt_option_is_suggested(horolog, words):
    fault = two_lines(horolog(*words, *required_by(FORMS[words]), "--timeot", "1s"), *words)
    assert fault.endswith("do you mean --timeout?")


@pytest.mark.parametrize("words", WITH_TIMEOUT, ids=" ".join)
@pytest.mark.parametrize(("given", "said"), [(("--timeout",), "needs a value"), (("--timeout", "soon"), "'soon'")])
def test_a_value_that_is_missing_or_wrong(horolog, words, given, said):
    fault = two_lines(horolog(*words, *required_by(FORMS[words]), *given), *words)
    assert "--timeout" in fault
    assert said in fault


def required_by(parser):
    """Words that the parser accepts for what it requires: numbers are words, too."""
    found = []
    for action in parser._actions:
        if not action.option_strings and action.nargs not in ("?", "*"):
            found.append(str(next(iter(action.choices))) if action.choices else "1")
        elif action.option_strings and action.required:
            found += [action.option_strings[0], "1"]
    return found


@pytest.mark.parametrize("words", [words for words, parser in FORMS.items() if required_by(parser)], ids=" ".join)
def test_arguments_that_are_missing(horolog, words):
    fault = two_lines(horolog(*words), *words)
    assert " missing" in fault


@pytest.mark.parametrize("command", WITH_ACTIONS)
def test_actions_that_are_missing_or_unknown(horolog, command):
    assert "ACTION is missing" in two_lines(horolog(command), command)
    name = next(iter(actions_of(parser_of(next(one for one in OURS if one.name == command)))))
    assert f"do you mean {name!r}?" in two_lines(horolog(command, f"{name}x"), command)
    assert "expected" in two_lines(horolog(command, "zzzzzz"), command)


@pytest.mark.parametrize(
    ("word", "likely"), [("topcs", "'topics'"), ("ls", "'topics list'"), ("broker", "'serve'"), ("quickstart", "'up'")]
)
def test_commands_that_do_not_exist(horolog, word, likely):
    assert f"do you mean {likely}" in two_lines(horolog(word))
