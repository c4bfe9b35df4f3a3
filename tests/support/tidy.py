"""Measures what the style rules leave open: methods of a class, and who reads a clock."""

import ast
from collections.abc import Iterator
from typing import NamedTuple

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
MAX_METHODS = 25


class Measured(NamedTuple):
    """One thing by its name, and how much of it there is."""

    name: str
    amount: int


def methods(tree: ast.AST) -> Iterator[Measured]:
    """Each class with the number of its methods: every `def` in its body, so properties, their setters and dunders too.

    A nested class counts for itself. What a base class brings is the base class's.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield Measured(node.name, sum(isinstance(one, FUNCTIONS) for one in node.body))


CLOCKS = {
    "time": {"time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns"},
    "datetime": {"now", "utcnow", "today"},
    "date": {"today"},
    "loop": {"time"},
}


def clock_reads(tree: ast.AST) -> Iterator[str]:
    """Where a clock of the machine is named, called at once or handed on: `time.monotonic`, `datetime.now`, `self._loop.time`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            owner = _last_name(node.value)
            if any(owner.endswith(clock) and node.attr in reads for clock, reads in CLOCKS.items()):
                yield ast.unparse(node)
        elif isinstance(node, ast.ImportFrom) and node.module == "time":
            yield from (f"from time import {one.name}" for one in node.names if one.name in CLOCKS["time"])


def _last_name(node: ast.AST) -> str:
    """`running_loop` of `asyncio.get.running_loop()`, `_loop` of `self._loop`."""
    while isinstance(node, ast.Call):
        node = node.func
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
