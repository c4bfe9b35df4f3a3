"""Completion scripts name every command and option, and bash completes by them."""

import shutil
import subprocess

import pytest

from horolog.client.cli import completion
from horolog.client.cli.commands import COMMANDS
from horolog.client.cli.completion import Option, Spec

SPECS = [
    Spec((), "", (), ("groups", "dump"), takes_files=False),
    Spec(("groups",), "groups of consumers", (), ("lag", "list"), takes_files=False),
    Spec(
        ("groups", "lag"),
        "how far groups are behind",
        (Option(("-o", "--output"), "its form", True, ("text", "json")),),
        (),
        False,
    ),
    Spec(("groups", "list"), "all groups", (Option(("--watch",), "don't stop", False, ()),), (), takes_files=False),
    Spec(("dump",), "a file's content", (Option(("--deep",), "records too", False, ()),), (), takes_files=True),
]


def complete(words, folder):
    """What bash offers for the last of these words."""
    quoted = " ".join(f"'{word}'" for word in words)
    script = completion.bash(SPECS) + (
        f"COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; COMP_LINE='{' '.join(words)}'; _horolog; printf '%s\\n' \"${{COMPREPLY[@]}}\"\n"
    )
    shell = [shutil.which("bash"), "--norc", "-c", script]
    ended = subprocess.run(shell, cwd=folder, capture_output=True, text=True, timeout=60, check=True)
    assert ended.stderr == ""
    return ended.stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["horolog", ""], ["groups", "dump"]),
        (["horolog", "gr"], ["groups"]),
        (["horolog", "groups", "l"], ["lag", "list"]),
        (["horolog", "groups", "lag", "-"], ["-o", "--output"]),
        (["horolog", "groups", "lag", "-o", ""], ["text", "json"]),
        (["horolog", "groups", "lag", "-o", "json", "--o"], ["--output"]),
        (["horolog", "groups", "list", "--w"], ["--watch"]),
        (["horolog", "dump", "so"], ["some.log"]),
        (["horolog", "dump", "--deep", "so"], ["some.log"]),
    ],
)
def test_bash_completes(words, offered, tmp_path):
    (tmp_path / "some.log").touch()
    assert complete(words, tmp_path) == offered


@pytest.mark.parametrize("shell", completion.WRITERS)
def test_every_script_names_every_command_and_option(shell, capsys):
    from horolog.client.cli.main import main

    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert all(command.name in script for command in COMMANDS)
    names = {name for spec in completion.all_specs() for option in spec.options for name in option.names}
    assert all((name.lstrip("-") if shell == "fish" else name) in script for name in names)


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_scripts_are_read_by_their_shells(shell):
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    script = completion.WRITERS[shell](SPECS)
    subprocess.run([program, "-n"], input=script, text=True, timeout=60, check=True)


def test_quotes_in_sentences_do_not_end_a_word():
    assert "'--watch:don'\\''t stop'" in completion.zsh(SPECS)
    assert "-d 'don\\'t stop'" in completion.fish(SPECS)
