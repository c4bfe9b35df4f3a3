"""Measures the style rules of the design page on every tracked file: lengths, nesting, docstrings, and what must not be named."""

import ast
import re
import statistics
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
MAX_FUNCTION_LINES = 70
MAX_FILE_LINES = 700
MAX_NESTING = 4
LINKS = frozenset({"broker", "client", "pipeline", "protocol"})
"""Names that are importable only below `horolog`."""
VENDOR = PROJECT / "tests" / "vendor"
"""Vendored tools: no rule of style applies to them."""

_HOUSES = ("horolog.broker", "horolog.broker.log", "horolog.client", "horolog.pipeline")
"""Packages of rooms."""
_ROOMS_FOR_ALL = ("horolog.base", "horolog.commands", "horolog.stores")
_HEAD_FORMAT = re.compile(r">qi[a-zA-Z0-9]*b[a-zA-Z0-9]*|>qi|>iIb[a-zA-Z]*")
"""What begins with an entry's offset and length. `>qi` alone is the time index's entry, too."""
_POSITION_NAME = re.compile(r"(?:_|\b)(?:AT|ENDS_AT|FROM)\b")
_HEAD_POSITIONS = frozenset({12, 16, 17, 18, 21, 22, 23, 27, 35, 43, 51, 53, 57, 61})
_BLOCKS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.Try, ast.TryStar, ast.With, ast.AsyncWith, ast.Match)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_WITHOUT_STATEMENTS = (ast.expr, ast.expr_context, ast.arguments, ast.alias, ast.keyword, ast.operator, ast.pattern)

# Written in pieces so that this file does not name what it looks for.
_HOMES = r"/(?:ro" + r"ot|wo" + r"rk|ho" + r"me/[a-z]\w*|Us" + r"ers/\w+)/"
_INDEXES = r"https?://[^\s\"']*(?:/simp" + r"le|/packa" + r"ges/|regis" + r"try|/mav" + r"en2)"
UNWANTED = re.compile(rf"(?<![\w.$}}/-])(?:{_HOMES})|{_INDEXES}")


@dataclass(frozen=True, slots=True)
class Function:
    """One function and how long and how deep it is."""

    where: str
    lines: int
    nesting: int


@cache
def tracked_files() -> tuple[Path, ...]:
    """The files of the project: those tracked by git, or all in a copy without history."""
    return tuple(_tracked())


def _tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=PROJECT, capture_output=True, check=False)
    if listed.returncode == 0 and listed.stdout:
        names = [PROJECT / name for name in listed.stdout.decode().split("\0") if name]
        return [name for name in names if name.is_file()]
    return [path for path in PROJECT.rglob("*") if path.is_file() and not _hidden(path)]


def _hidden(path: Path) -> bool:
    return any(part.startswith((".", "__pycache__")) for part in path.relative_to(PROJECT).parts)


@cache
def python_files() -> tuple[Path, ...]:
    """The project's own files: vendored ones keep their style."""
    return tuple(path for path in tracked_files() if path.suffix == ".py" and VENDOR not in path.parents)


@dataclass(frozen=True, slots=True)
class Facts:
    """What several rules ask of a file. To parse all files once for each rule took longer than anything else in them."""

    functions: tuple[Function, ...]
    imported: tuple[str, ...]
    targets: tuple[str, ...]
    """What the file imports, each name with its module."""
    duty: str | None


@cache
def facts(path: Path) -> Facts:
    tree = ast.parse(path.read_bytes())
    where = path.relative_to(PROJECT)
    found: list[Function] = []
    imports: list[str] = []
    targets: list[str] = []
    for node in _statements(tree):
        if isinstance(node, _FUNCTIONS):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            found.append(Function(f"{where}:{node.lineno} {node.name}", lines, nesting(node)))
        elif isinstance(node, ast.Import):
            imports += [one.name for one in node.names]
            targets += [one.name for one in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            imports.append(node.module or "")
            targets += [f"{node.module}.{one.name}" for one in node.names]
    text = ast.get_docstring(tree)
    return Facts(
        tuple(found), tuple(imports), tuple(targets), " ".join(text.split("\n\n")[0].split()) if text else None
    )


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """Everything but expressions, which contain neither definitions nor imports."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, _WITHOUT_STATEMENTS):
            yield child
            yield from _statements(child)


def line_count(path: Path) -> int:
    return path.read_bytes().count(b"\n")


def functions(path: Path) -> tuple[Function, ...]:
    return facts(path).functions


def nesting(function: ast.AST) -> int:
    """The deepest block inside; an elif is no deeper than its if, and a nested function counts separately."""
    return max((_depth(child) for child in ast.iter_child_nodes(function)), default=0)


def _depth(node: ast.AST, *, is_elif: bool = False) -> int:
    if isinstance(node, (*_FUNCTIONS, ast.ClassDef, ast.expr)):
        return 0  # an expression contains no block
    own = 1 if isinstance(node, _BLOCKS) and not is_elif else 0
    inner = 0
    for child in ast.iter_child_nodes(node):
        chained = isinstance(node, ast.If) and isinstance(child, ast.If) and node.orelse == [child]
        inner = max(inner, _depth(child, is_elif=chained))
    # An elif's body is as deep as its if's.
    return own + inner if not is_elif else max(inner, 0)


def imported(path: Path) -> tuple[str, ...]:
    """The modules that a file imports, by the names it uses."""
    return facts(path).imported


def past_a_front(path: Path) -> Iterator[str]:
    """Imports of what a room does not show, by a file outside of it: its front is its `__init__`, which shows names or whole modules."""
    for target in facts(path).targets:
        yield from (f"{path.relative_to(PROJECT)}: {name}" for name in _hidden_from(path, target))


def _hidden_from(path: Path, target: str) -> Iterator[str]:
    parts = target.split(".")
    for depth in range(2, len(parts)):
        room = ".".join(parts[:depth])
        folder = PROJECT / room.replace(".", "/")
        if not folder.is_dir():
            return
        if is_room(room) and folder not in path.parents and parts[depth] not in names_shown(folder / "__init__.py"):
            yield f"{parts[depth]} of {room}"


def is_room(package: str) -> bool:
    """Whether a package is a room, or lies in one."""
    if package in _HOUSES:
        return False
    return package.startswith((*(f"{house}." for house in _HOUSES), *_ROOMS_FOR_ALL))


@cache
def names_shown(front: Path) -> frozenset[str]:
    assigned = (node for node in ast.parse(front.read_bytes()).body if isinstance(node, ast.Assign))
    return frozenset(
        next((ast.literal_eval(node.value) for node in assigned if ast.unparse(node.targets[0]) == "__all__"), ())
    )


def duty(path: Path) -> str | None:
    """The first paragraph of the module's docstring."""
    return facts(path).duty


def is_sentence(text: str | None) -> bool:
    """Whether a text has at least three words, and begins and ends like a sentence."""
    return text is not None and len(text.split()) >= 3 and not text[0].islower() and text[-1] in ".:"


def unwanted(path: Path) -> list[str]:
    """Lines that name a machine's folders or a package index."""
    try:
        text = path.read_text("utf-8")
    except UnicodeDecodeError:
        return []
    return [
        f"{path.relative_to(PROJECT)}:{n}: {line.strip()[:120]}"
        for n, line in enumerate(text.splitlines(), 1)
        if UNWANTED.search(line)
    ]


def summary() -> str:
    """The figures in one line."""
    lengths = [function.lines for path in python_files() for function in functions(path)]
    files = [line_count(path) for path in python_files()]
    return (
        f"style: {len(lengths)} functions, median {statistics.median(lengths):.0f} lines, p90 {_p90(lengths)}, longest {max(lengths)}; "
        f"{len(files)} files, median {statistics.median(files):.0f} lines, p90 {_p90(files)}, longest {max(files)}"
    )


def _p90(values: list[int]) -> int:
    return sorted(values)[len(values) * 9 // 10]


def layouts_of_heads(path: Path) -> Iterator[str]:
    """Numbers and struct formats by which a file knows where the fields of a batch's or message's head lie."""
    text = path.read_text("utf-8")
    if not _HEAD_FORMAT.search(text) and not _POSITION_NAME.search(text):
        return  # to parse them all takes long
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _HEAD_FORMAT.fullmatch(node.value):
            yield f"{path.relative_to(PROJECT)}:{node.lineno}: {node.value}"
        elif isinstance(node, ast.Assign) and _knows_a_position(node):
            yield f"{path.relative_to(PROJECT)}:{node.lineno}: {ast.unparse(node)}"


def _knows_a_position(node: ast.Assign) -> bool:
    names = " ".join(ast.unparse(target) for target in node.targets)
    numbers = [one.value for one in ast.walk(node.value) if isinstance(one, ast.Constant)]
    return bool(_POSITION_NAME.search(names)) and any(one in _HEAD_POSITIONS for one in numbers)


def reads_of(path: Path, names: set[str]) -> Iterator[str]:
    """Where a file reads attributes of these names."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Attribute) and node.attr in names and isinstance(node.ctx, ast.Load):
            yield f"{path.relative_to(PROJECT)}:{node.lineno}: {ast.unparse(node)}"
