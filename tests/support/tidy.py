"""Measures what the style rules leave open: methods of a class, arguments of a function, reads of a clock, and unused code."""

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
MAX_METHODS = 25
MAX_POSITIONAL = 6
MAX_ARGUMENTS = 10

_DOTTED = re.compile(r"\w+(?:\.\w+)*(?::\w+)?")
_WORD = re.compile(r"\w+")
_DEFINED = re.compile(r"\b(?:def|class) (\w+)")


class Measured(NamedTuple):
    """A named thing and its count."""

    name: str
    amount: int


def methods(tree: ast.AST) -> Iterator[Measured]:
    """Each class with the number of its methods: every `def` in its body, so properties, their setters and dunders too.

    A nested class counts separately. Inherited methods count for the base class.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield Measured(node.name, sum(isinstance(one, FUNCTIONS) for one in node.body))


def with_repr(tree: ast.AST) -> Iterator[str]:
    """The classes that define `__repr__`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and any(
            isinstance(one, FUNCTIONS) and one.name == "__repr__" for one in node.body
        ):
            yield node.name


def arguments(tree: ast.AST) -> Iterator[tuple[str, int, int]]:
    """Each function with its numbers of arguments: positional ones, and all. `self`, `cls` and `*rest` do not count."""
    for owner in ast.walk(tree):
        for node in ast.iter_child_nodes(owner):
            if isinstance(node, FUNCTIONS):
                given = [one.arg for one in (*node.args.posonlyargs, *node.args.args)]
                positional = len(given) - (given[:1] in (["self"], ["cls"]))
                name = f"{owner.name}.{node.name}" if isinstance(owner, ast.ClassDef) else node.name
                yield name, positional, positional + len(node.args.kwonlyargs)


CLOCKS = {
    "time": {"time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns"},
    "datetime": {"now", "utcnow", "today"},
    "date": {"today"},
    "loop": {"time"},
}


def clock_reads(tree: ast.AST) -> Iterator[str]:
    """Where a clock of the machine is named, called or passed on: `time.monotonic`, `datetime.now`, `self._loop.time`."""
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


def module_name(path: Path) -> str:
    """`horolog.broker.log` of `horolog/broker/log/__init__.py`."""
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def names_modules(tree: ast.AST) -> Iterator[str]:
    """Modules that a file imports, and strings that may name one: tables of lazy imports hold them, dotted or not."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{one.name}" for one in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _DOTTED.fullmatch(node.value):
            name = node.value.partition(":")[0]
            yield from (name, name.rpartition(".")[0])  # a module, or something in one


def dead_modules(trees: Mapping[Path, ast.AST], pages: str) -> Iterator[Path]:
    """Modules that no other one imports or names, and that no page or entry point runs (`python -m NAME`)."""
    run = set(re.findall(r"(?:-m |\")([\w.]+)", pages))
    users: dict[str, set[Path]] = defaultdict(set)
    for path, tree in trees.items():
        for name in names_modules(tree):
            users[name].add(path)
    for path in trees:
        name = module_name(path)
        stem = name.rpartition(".")[2]
        is_run = path.name in {"__init__.py", "__main__.py"} or name in run
        if not is_run and not (users[name] | users[stem]) - {path}:
            yield path


def lone_definitions(sources: Mapping[Path, str], pages: str) -> Iterator[tuple[Path, str]]:
    """Functions, methods and classes whose name occurs only in their definition: no code and no page uses them."""
    counted = Counter(word for text in (*sources.values(), pages) for word in _WORD.findall(text))
    for path, text in sources.items():
        if not any(counted[name] == 1 for name in _DEFINED.findall(text)):
            continue  # to parse them all takes long
        for node in ast.walk(ast.parse(text)):
            is_defined = isinstance(node, (*FUNCTIONS, ast.ClassDef)) and not node.name.startswith("__")
            if is_defined and counted[node.name] == 1:  # type: ignore[attr-defined]
                yield path, node.name  # type: ignore[attr-defined]
