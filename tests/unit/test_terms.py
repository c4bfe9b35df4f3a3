"""One name for one thing: terms that were given up stay away, and within a package no two classes share a name."""

import ast
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
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                yield node.name, path.relative_to(ROOT)


@pytest.mark.parametrize("package", PACKAGES)
def test_no_class_has_a_name_that_was_given_up(package):
    assert [(name, path, GIVEN_UP[name]) for name, path in classes(package) if name in GIVEN_UP] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_a_class_name_stands_once_in_a_package(package):
    found = defaultdict(list)
    for name, path in classes(package):
        found[name].append(str(path))
    assert {name: paths for name, paths in found.items() if len(paths) > 1} == {}
