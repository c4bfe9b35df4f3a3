"""An error of usage is two lines: the fault with the likely remedy, and the form that the command expects."""

import argparse

import pytest

from horolog.client.cli.commands import COMMANDS
from horolog.client.cli.main import build_parser, parser_of
from horolog.commands import arguments, usage
from horolog.commands.arguments import Parser


def trial():
    parser = Parser(prog="trial")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, parser_class=Parser)
    move = actions.add_parser("move", prog="trial move")
    move.add_argument("topic", metavar="TOPIC")
    move.add_argument("files", metavar="FILE", nargs="*")
    move.add_argument("-s", "--since", metavar="TIME")
    move.add_argument("--to", required=True, metavar="PLACE")
    arguments.add_output(move)
    shell = actions.add_parser("shell", prog="trial shell")
    shell.add_argument("shell", choices=("bash", "zsh"))
    more = actions.add_parser("more", prog="trial more")
    more.add_argument("first", nargs="?")
    more.add_argument("rest", metavar="REST", nargs="+")
    more.add_argument("--number", type=arguments.whole_number)
    actions.add_parser("empty", prog="trial empty")
    return parser


@pytest.mark.parametrize(
    ("words", "fault", "form"),
    [
        ("", "trial: error: ACTION is missing; expected one of move, shell, more, empty", "trial ACTION"),
        ("mvoe", "trial: error: ACTION: there is no 'mvoe'; do you mean 'move'?", "trial ACTION"),
        (
            "move",
            "trial move: error: TOPIC and --to are missing",
            "trial move TOPIC [FILE ...] --to PLACE [OPTIONS]",
        ),
        ("move t", "trial move: error: --to is missing", "trial move TOPIC [FILE ...] --to PLACE [OPTIONS]"),
        (
            "move t --to x --sinc 3d",
            "trial move: error: there is no option --sinc; do you mean --since?",
            "trial move TOPIC [FILE ...] --to PLACE [OPTIONS]",
        ),
        (
            "move t --to x --from=3d",
            "trial move: error: there is no option --from; do you mean --since?",
            "trial move TOPIC [FILE ...] --to PLACE [OPTIONS]",
        ),
        (
            "move t --to x --qqqqqq",
            "trial move: error: there is no option --qqqqqq",
            "trial move TOPIC [FILE ...] --to PLACE [OPTIONS]",
        ),
        (
            "move t --to",
            "trial move: error: --to needs a value",
            "trial move TOPIC [FILE ...] --to PLACE [OPTIONS]",
        ),
        (
            "shell tcsh",
            "trial shell: error: shell: there is no 'tcsh'; expected one of bash, zsh",
            "trial shell bash|zsh",
        ),
        ("shell bash a b", "trial shell: error: unexpected argument 'a b'", "trial shell bash|zsh"),
        (
            "more a b --number x",
            "trial more: error: --number: 'x' is not a whole number of 0 or more",
            "trial more [FIRST] REST [REST ...] [OPTIONS]",
        ),
        ("empty -", "trial empty: error: unexpected argument '-'", "trial empty"),
    ],
)
def test_two_lines(capsys, words, fault, form):
    with pytest.raises(SystemExit) as ended:
        trial().parse_args(words.split())
    assert ended.value.code == 2
    command = fault.partition(":")[0]
    assert capsys.readouterr().err.splitlines() == [fault, f"usage: {form}   (more: {command} --help)"]


def test_the_second_line_names_the_help():
    assert usage.second_line(Parser(prog="horolog trial")) == "usage: horolog trial   (more: horolog trial --help)"


def test_what_argparse_says_otherwise_stays():
    assert usage.plain(trial(), "not allowed with argument -a") == "not allowed with argument -a"


def test_the_parser_of_an_action_is_found_as_far_as_it_was_named():
    parser = trial()
    assert usage.chosen(parser, argparse.Namespace(action="move")).prog == "trial move"
    assert usage.chosen(parser, argparse.Namespace()) is parser


@pytest.mark.parametrize("command", [one for one in COMMANDS if one.name != "pipeline"], ids=lambda one: one.name)
def test_every_command_reports_an_unknown_option_in_two_lines(capsys, command):
    parser = parser_of(command)
    with pytest.raises(SystemExit):
        parser.error("the fault")
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == f"horolog {command.name}: error: the fault"
    assert lines[1].startswith(f"usage: horolog {command.name}")
    assert len(lines) == 2


def test_a_long_list_of_choices_is_left_to_help(capsys):
    with pytest.raises(SystemExit):
        build_parser().parse_args([])
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["horolog: error: COMMAND is missing", "usage: horolog COMMAND   (more: horolog --help)"]
