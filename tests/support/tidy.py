"""Measures what the style rules leave open: methods of a class, arguments of a function."""

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
