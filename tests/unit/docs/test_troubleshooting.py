"""Every message that the page of troubleshooting quotes is one that horolog has: `...` stands for what differs."""

import ast
import re
from collections.abc import Iterator
from functools import cache

import pytest

from tests.support.style import PROJECT

PAGE = PROJECT / "docs" / "troubleshooting.md"
ROW = re.compile(r"^\| (.*?) \|", re.MULTILINE)
QUOTED = re.compile(r"`([^`]+)`")
FROM_THE_SYSTEM = {"cannot listen on ...: address already in use"}
"""Words of the operating system."""
SHORTEST = 8


@cache
def texts() -> str:
    """Every string in the modules of horolog; a placeholder ends one."""
    found: list[str] = []
    for path in (PROJECT / "horolog").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.extend(re.split(r"%[srdf]|%\.\d+f", node.value))
    return "\n".join(found)


def pieces(message: str) -> Iterator[str]:
    """The parts of a quoted message between its placeholders."""
    return (one for one in message.split("...") if len(one.strip()) >= SHORTEST)


def messages() -> list[str]:
    """What stands in the first column as code and is a sentence: it has a blank. Settings and commands have none, or begin so."""
    cells = ROW.findall(PAGE.read_text("utf-8"))
    quoted = [one for cell in cells for one in QUOTED.findall(cell)]
    return [one for one in quoted if " " in one.strip() and one not in FROM_THE_SYSTEM]


def test_pieces_are_what_stands_between_placeholders():
    assert list(pieces("no answer from ...")) == ["no answer from "]
    assert list(pieces("one ... two and more")) == [" two and more"]


@pytest.mark.parametrize("message", messages())
def test_a_quoted_message_exists(message):
    parts = list(pieces(message))
    assert parts
    assert [one for one in parts if one.rstrip() not in texts()] == []


def test_most_rows_are_checked():
    assert len(messages()) >= 20
