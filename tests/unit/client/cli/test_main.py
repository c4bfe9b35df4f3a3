"""The command line finds commands, imports nothing that it does not need, and turns every end into its exit code."""

import argparse
import io
import os
import re
import signal
import subprocess
import sys
import types

import pytest

from horolog.client.cli import main
from horolog.client.cli.commands import COMMANDS, Command
from horolog.client.cli.completion import all_specs
from horolog.commands.console import Console
from horolog.commands.errors import CommandError, NotFoundError, UnreachableError, UsageError
from horolog.commands.exit_codes import ExitCode
from horolog.version import __version__
from tests.support.processor_time import commands_at_most
from tests.support.style import PROJECT

EXPENSIVE = (
    "asyncio",
    "uvloop",
    "ssl",
    "socket",
    "logging",
    "json",
    "dataclasses",
    "inspect",
    "protocol",
    "crc32c",
    "zoneinfo",
)
START_SECONDS = 1.5
"""Of processor time, far above the promised 0.2 s, for slow machines; the list of imports is the sharper test."""


def horolog(*words, **settings):
    command = [sys.executable, "-m", "horolog", *words]
    return subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=60, check=False, **settings)


def imported_by(*words):
    command = [sys.executable, "-X", "importtime", "-m", "horolog", *words]
    errors = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=60, check=True).stderr
    return {line.rpartition("|")[2].strip() for line in errors.splitlines() if line.startswith("import time:")}


def test_version(capsys):
    with pytest.raises(SystemExit) as ended:
        main.main(["--version"])
    assert (ended.value.code, capsys.readouterr().out.split()) == (0, ["horolog", __version__])


@pytest.mark.parametrize(
    "argv", [[], ["no-such-command"], ["serve", "--no-such-flag"], ["--no-such-flag"], ["serve", "--se", "a=b"]]
)
def test_arguments_that_cannot_be_read_end_with_code_2(argv, capsys):
    with pytest.raises(SystemExit) as ended:
        main.main(argv)
    assert ended.value.code == 2
    assert "usage: horolog" in capsys.readouterr().err


def test_a_word_that_is_nearly_a_command_is_answered_with_the_command(capsys):
    with pytest.raises(SystemExit):
        main.main(["verison"])
    assert "do you mean 'version'?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        ("list", "do you mean 'topics list' or 'groups list'?"),
        ("ls", "do you mean 'topics list' or 'groups list'?"),
        ("lag", "do you mean 'groups lag'?"),
        ("tail orders", "do you mean 'consume'?"),
        ("topic list", "do you mean 'topics'?"),
        ("topics ls", "there is no 'ls'; do you mean 'list'?"),
        ("groups rm x", "there is no 'rm'; do you mean 'delete'?"),
        ("topics frobnicate", "there is no 'frobnicate'; expected one of list, create, "),
        ("topics list -o jsn", "there is no 'jsn'; do you mean 'json'?"),
        ("-P dev topics list", "options come after the command: horolog topics list -P dev"),
        ("--bootstrap a:1 at orders 10:05", "options come after the command: horolog at orders 10:05 --bootstrap a:1"),
    ],
)
def test_names_of_other_tools_and_words_out_of_order_get_the_right_form(words, advice, capsys):
    with pytest.raises(SystemExit) as ended:
        main.main(words.split())
    assert ended.value.code == 2
    assert advice in capsys.readouterr().err


def test_a_word_that_is_like_nothing_gets_no_advice(capsys):
    with pytest.raises(SystemExit):
        main.main(["xyzzy"])
    assert "there is no command 'xyzzy'\n" in capsys.readouterr().err


def test_help_lists_every_command_and_imports_none():
    output = " ".join(horolog("--help").stdout.split())
    assert all(f"{command.name} {command.sentence}" in output for command in COMMANDS)
    imported = imported_by("--help")
    assert not imported & {*EXPENSIVE, *(command.module for command in COMMANDS)}


OURS = [command for command in COMMANDS if command.module.startswith("horolog.client.cli.")]
"""Others need an extra and answer for themselves."""


@pytest.mark.parametrize("command", [command.name for command in OURS])
def test_the_help_of_a_command_imports_nothing_expensive_and_comes_at_once(command):
    with commands_at_most(START_SECONDS):
        imported = imported_by(command, "--help")
    assert not imported & set(EXPENSIVE), sorted(imported & set(EXPENSIVE))


def test_every_command_and_action_has_a_sentence_and_every_command_examples():
    specs = all_specs()
    names = {command.name for command in OURS}
    for spec in specs[1:]:
        assert spec.sentence, spec.words
        assert not spec.sentence.endswith("."), spec.words
        assert all(option.sentence for option in spec.options if spec.words[0] in names), spec.words
    for command in COMMANDS:
        parser = main.parser_of(command)
        assert parser.description, command
        _, heading, examples = parser.epilog.partition("examples:\n")
        assert heading, command
        assert f"horolog {command.name}" in examples, command


OTHER_WORDS = re.compile(r"\b(?:may be repeated|again for|repeat for)\b|\((?!default: )[a-z0-9; ]*\d[a-z]?\)$")
"""For `repeatable`, and for `(default: 10m)`."""


def test_options_that_repeat_and_defaults_are_marked_in_one_way():
    said = [option.sentence for spec in all_specs() for option in spec.options]
    assert [sentence for sentence in said if OTHER_WORDS.search(sentence)] == []
    assert OTHER_WORDS.search("again for more")
    assert OTHER_WORDS.search("records for each commit (1000000)")
    assert not OTHER_WORDS.search("records per commit (default: 1000000)")


def run_module(monkeypatch, run, *words):
    """The exit code and the text on standard error when a command of this behaviour runs."""

    def configure(parser):
        parser.add_argument("-o", "--output", choices=("text", "json"), default="text")
        parser.add_argument("--tz")

    module = types.SimpleNamespace(configure=configure, run=run)
    monkeypatch.setitem(main.BY_NAME, "trial", Command("trial", "trial", "try"))
    monkeypatch.setattr(main, "import_module", lambda _name: module)
    console = Console(io.StringIO(), io.StringIO(), io.StringIO(), {})
    return main.main(["trial", *words], console), console.out.getvalue(), console.err.getvalue()


def raising(error):
    def run(_arguments, _console):
        raise error

    return run


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (CommandError("it broke", "try this"), 1, "horolog trial: error: it broke; try this\n"),
        (
            UsageError("neither nor"),
            2,
            "horolog trial: error: neither nor\nusage: horolog trial [OPTIONS]   (more: horolog trial --help)\n",
        ),
        (CommandError("the lag is 7 m", code=ExitCode.ALERT), 3, "horolog trial: error: the lag is 7 m\n"),
        (NotFoundError("no topic x"), 4, "horolog trial: error: no topic x\n"),
        (
            FileNotFoundError(2, "No such file or directory", "x.log"),
            4,
            "horolog trial: error: x.log: No such file or directory\n",
        ),
        (PermissionError(13, "Permission denied", "x.log"), 1, "horolog trial: error: x.log: Permission denied\n"),
        (UnreachableError("nobody answers"), 5, "horolog trial: error: nobody answers\n"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_every_end_is_an_exit_code_and_one_sentence(monkeypatch, error, code, said):
    assert run_module(monkeypatch, raising(error)) == (code, "", said)


def test_an_error_of_usage_shows_the_form_of_its_action():
    words = ("topics", "alter", "orders", "-b", "127.0.0.1:1")
    said = "horolog topics alter: error: nothing to alter; give --partitions, --config or --delete-config\n"
    form = "usage: horolog topics alter TOPIC [OPTIONS]   (more: horolog topics alter --help)\n"
    assert run_here(*words) == (2, "", said + form)


def test_a_command_whose_packages_are_missing_says_how_to_get_them(monkeypatch):
    def configure(_parser):
        raise ModuleNotFoundError("No module named 'spark'", name="spark.sql")

    monkeypatch.setitem(main.BY_NAME, "trial", Command("trial", "trial", "try"))
    monkeypatch.setattr(main, "import_module", lambda _name: types.SimpleNamespace(configure=configure))
    console = Console(io.StringIO(), io.StringIO(), io.StringIO(), {})
    assert main.main(["trial"], console) == 1
    said = "horolog trial: error: spark.sql is not installed; pip install 'horolog[trial]' installs what it needs\n"
    assert console.err.getvalue() == said


def test_a_module_of_ours_that_is_missing_is_not_hidden(monkeypatch):
    monkeypatch.setitem(main.BY_NAME, "trial", Command("trial", "horolog.client.cli.no_such_module", "try"))
    with pytest.raises(ModuleNotFoundError):
        main.main(["trial"])


def test_a_fault_of_ours_is_not_hidden(monkeypatch):
    with pytest.raises(ZeroDivisionError):
        run_module(monkeypatch, raising(ZeroDivisionError()))


def test_ctrl_c_while_a_class_is_made_is_ctrl_c(monkeypatch):
    """Until 3.12 Python wraps whatever `__set_name__` raises, and fields of dataclasses have one."""
    assert run_module(monkeypatch, raising(wrapped_in_a_class(KeyboardInterrupt()))) == (130, "", "")
    with pytest.raises(RuntimeError):
        run_module(monkeypatch, raising(wrapped_in_a_class(ValueError())))


def wrapped_in_a_class(error):
    """What Python 3.11 makes of an error while a class is made."""
    wrapped = RuntimeError("Error calling __set_name__")
    wrapped.__cause__ = error
    return wrapped


def test_a_command_may_be_a_coroutine(monkeypatch):
    async def run(arguments, console):
        console.print(f"{console.as_json} {console.zone_name} {console.command}")
        return ExitCode.ALERT

    code, out, _ = run_module(monkeypatch, run, "-o", "json", "--tz", "Asia/Tokyo")
    assert (code, out) == (3, "True Asia/Tokyo horolog trial\n")


def test_the_name_of_an_action_stands_before_messages():
    spoken = main._spoken(Command("groups", "m", "s"), argparse.Namespace(action="lag"))
    assert spoken == "horolog groups lag"


@pytest.mark.parametrize(
    ("words", "codes"), [(["version"], {141}), (["--help"], {0, 141}), (["dump", "--help"], {0, 141})]
)
def test_a_reader_that_stops_reading_ends_a_command_silently(words, codes):
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as output:
        command = [sys.executable, "-m", "horolog", *words]
        ended = subprocess.run(
            command, cwd=PROJECT, stdout=output, stderr=subprocess.PIPE, text=True, timeout=60, check=False
        )
    assert (ended.returncode in codes, ended.stderr) == (True, "")  # argparse passes over it when it prints help


def test_ctrl_c_ends_a_coroutine_after_its_cleaning_up():
    code = (
        "import asyncio, sys, types\n"
        "from horolog.client.cli import main\n"
        "from horolog.client.cli.commands import Command\n"
        "async def run(arguments, console):\n"
        "    try:\n"
        "        print('ready', flush=True)\n"
        "        await asyncio.sleep(60)\n"
        "    finally:\n"
        "        print('closed', flush=True)\n"
        "main.BY_NAME['trial'] = Command('trial', 'm', 's')\n"
        "main.import_module = lambda name: types.SimpleNamespace(configure=lambda parser: None, run=run)\n"
        "sys.exit(main.main(['trial']))\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=60)
    assert (process.returncode, out, errors) == (130, "closed\n", "")


def test_version_command_as_json():
    import json

    ended = horolog("version", "-o", "json")
    found = json.loads(ended.stdout)
    assert (ended.returncode, found["horolog"]) == (0, __version__)
    assert set(found) == {"horolog", "python", "platform", "compiled", "libraries"}
    assert found["compiled"] in ("yes", "no")
    assert found["libraries"]["crc32c"]


def run_here(*words):
    console = Console(io.StringIO(), io.StringIO(), io.StringIO(), {})
    return main.main(words, console), console.out.getvalue(), console.err.getvalue()


def test_words_run_their_command_in_this_process():
    code, out, _ = run_here("version")
    assert (code, out.splitlines()[0]) == (0, f"horolog {__version__}")
    code, out, err = run_here("health", "-b", "127.0.0.1:1", "--timeout", "10ms")
    assert (code, out) == (5, "")
    assert err.startswith("horolog health: error: no answer from 127.0.0.1:1")
    assert run_here(main.COMPLETE, "1", "horolog", "heal")[0] == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "COMMAND is missing"),
        (["--since", "1h", "consume", "t"], "options come after the command: horolog consume t --since 1h"),
        (["consum"], "there is no command 'consum'; do you mean 'consume'?"),
    ],
)
def test_words_that_are_no_command_are_answered_in_this_process(words, said, capsys):
    with pytest.raises(SystemExit) as ended:
        main.main(words)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err
