"""One name for one thing: terms that were given up stay away, and within a package no two classes share a name."""

import ast
import io
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

import horolog

ROOT = Path(horolog.__file__).parent
PACKAGES = ("broker", "client", "console", "testing")
GIVEN_UP = {
    "Asked": "the request or query it is: LogQuery, MomentQuery, HttpRequest",
    "Asks": "RequestSender, SupervisorLink",
    "Company": "JournalFollowers",
    "Crew": "LifecycleEvents",
    "Hears": "WorkerEvents",
    "Kept": "UpkeepHost",
    "Lookout": "FetchWatch",
    "Others": "OtherBrokers",
    "Peer": "ClientConnection",
    "SentBack": "RetryGuard",
    "Told": "what the call does: Answerable, AnswerChange, CodeCallback",
    "Turns": "KeyedQueue",
}
"""A class is named for what it is. The old name, and what to say instead."""


def classes(package: str) -> Iterator[tuple[str, Path]]:
    for path in sorted((ROOT / package).rglob("*.py")):
        for name in re.findall(r"^class (?!_)(\w+)", path.read_text("utf-8"), re.MULTILINE):
            yield name, path.relative_to(ROOT)


@pytest.mark.parametrize("package", PACKAGES)
def test_no_class_has_a_name_that_was_given_up(package):
    assert [(name, path, GIVEN_UP[name]) for name, path in classes(package) if name in GIVEN_UP] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_a_class_name_stands_once_in_a_package(package):
    found = defaultdict(list)
    for name, path in classes(package):
        found[name].append(str(path))
    assert {name: paths for name, paths in found.items() if len(paths) > 1} == {}


PLAIN = ("base", "broker", "client", "commands", "console", "pipeline", "protocol", "stores", "testing")
"""Packages whose docstrings and comments name the caller, the client, the message or the reason instead of using these phrases."""
VAGUE = re.compile(
    r"\b(?:whoever|nobody|somebody|told|tells|by\s+whom|is\s+said|what\s+is|what\s+becomes\s+of|of\s+a\s+Kafka|finds?\s+out\s+who|he|we)\b",
    re.IGNORECASE,
)
CODE = re.compile(r"`[^`]*`")


def sentences(text: str) -> Iterator[str]:
    """The docstrings and comments of a module's text, without the code in them."""
    for node in ast.walk(ast.parse(text)):
        for one in getattr(node, "body", ()) if isinstance(getattr(node, "body", None), list) else ():
            if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant) and isinstance(one.value.value, str):
                yield " ".join(CODE.sub("", one.value.value).split())
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield CODE.sub("", token.string)


def vague(text: str) -> list[str]:
    """The phrases. Most modules have none anywhere, and are not parsed, which takes long."""
    if not VAGUE.search(text) and not VAGUE.search(re.sub(r"`[^`\n]*`", "", text)):
        return []
    return [found.group() for one in sentences(text) for found in VAGUE.finditer(one)]


@pytest.mark.parametrize("package", PLAIN)
def test_docstrings_and_comments_say_who_and_what(package):
    found = {str(path.relative_to(ROOT)): vague(path.read_text("utf-8")) for path in (ROOT / package).rglob("*.py")}
    assert {path: phrases for path, phrases in found.items() if phrases} == {}


def test_phrases_are_found_in_docstrings_and_comments_and_not_in_code():
    text = '"""Whoever asks is `told`."""\ntold = "nobody"  # nobody\n\ndef run() -> None:\n    """Asks what\n    is there."""\n'
    assert [phrase.split()[0] for phrase in vague(text)] == ["Whoever", "what", "nobody"]
