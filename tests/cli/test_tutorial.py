"""The tutorial is true: its commands are run, in order, and print what the page says."""

import os
import re
import shlex
import subprocess
import sys
from typing import NamedTuple

import pytest

from tests.support.style import PROJECT

PAGE = PROJECT / "docs" / "tutorial.md"
ANYTHING = "..."


class Step(NamedTuple):
    command: str
    expected: list[str]


def steps(text: str) -> list[Step]:
    """The commands of all console blocks, each with the lines that follow it; a here-document belongs to its command."""
    found: list[Step] = []
    for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL):
        end_of_input = None
        for line in block.splitlines():
            if end_of_input is not None:
                found[-1] = found[-1]._replace(command=f"{found[-1].command}\n{line}")
                end_of_input = None if line == end_of_input else end_of_input
            elif line.startswith("$ "):
                found.append(Step(line[2:], []))
                here = re.search(r"<<'(\w+)'", line)
                end_of_input = here[1] if here else None
            else:
                found[-1].expected.append(line)
    return found


def as_pattern(expected: list[str]) -> str:
    """Lines with `...` where anything may stand, also in place of the blanks around it."""
    return "\n".join(r"\s*\S.*?\s*".join(map(re.escape, re.split(r" *\.\.\. *", line))) for line in expected)


def test_a_page_is_read_as_its_writer_means_it():
    text = "```console\n$ one\nx ... y\n$ cat <<'END'\n$ no\nEND\n```\nbetween\n```console\n$ two\n```\n"
    assert steps(text) == [Step("one", ["x ... y"]), Step("cat <<'END'\n$ no\nEND", []), Step("two", [])]
    assert re.fullmatch(as_pattern(["x ... y"]), "x    17   y")
    assert not re.fullmatch(as_pattern(["x ... y"]), "x 17 z")
    assert not re.fullmatch(as_pattern(["x ... y"]), "x  y")


@pytest.fixture
def shell(broker, tmp_path):
    """A shell in an empty folder, with the command `horolog` and a broker."""
    folder = tmp_path / "bin"
    folder.mkdir()
    command = folder / "horolog"
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m client.cli "$@"\n')
    command.chmod(0o755)
    environ = os.environ | {
        "PATH": f"{folder}:{os.environ['PATH']}",
        "PYTHONPATH": str(PROJECT),
        "HOROLOG_BOOTSTRAP": broker.address,
        "HOROLOG_TZ": "UTC",
        "COLUMNS": "200",
    }

    def run(text: str) -> str:
        ended = subprocess.run(
            ["bash", "-c", text],
            cwd=tmp_path,
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=False,
        )
        return ended.stdout

    return run


def test_the_tutorial(shell):
    text = PAGE.read_text()
    found = steps(text)
    assert len(found) >= 20
    assert text.count("\n$ ") == len(found), "every command is in a console block"
    for step in found:
        printed = shell(step.command).rstrip("\n")
        assert re.fullmatch(as_pattern(step.expected), printed), f"$ {step.command}\n{printed}"
