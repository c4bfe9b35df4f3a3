"""`python -m tools.own_coverage`: how much of each module its own test file runs, alone. Nine of ten statements and branches are enough.

`horolog/broker/x/y.py` has `tests/unit/broker/x/test_y.py`. All test files run once, and the measurement tells them apart: a line
that only the tests of other modules run counts as not run. What a module does when it is imported counts for every test file, the
inside of its functions does not. `own_coverage.toml` beside this file lists what the rule does not hold for, each with its reason; an
entry that is not needed any more fails, too, so that the list only gets shorter.

Arguments are those of pytest, and choose another run in which the test files are measured: `-n 3 -m "not slow"` gives the result of
all tests and the measurement in one. Modules without a test file are named before anything runs. With `--sample SEED` only the
modules are measured that have changed since `.ci/run` passed last, or whose tests have, and a third of the others, which the seed chooses:
a test takes about twice as long while it is measured.
"""

import argparse
import ast
import importlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import tomllib
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any

from coverage import Coverage, CoverageData

from tools import compiled, measured
from tools.changed import changed_files

ROOT = Path(__file__).resolve().parents[1]
RULES = Path(__file__).with_suffix(".toml")
ENOUGH = 90
SAMPLED = 3
"""Of the modules that have not changed, one in so many is measured where a sample is asked for."""
ENTRY = "if __name__ == "
"""What follows is for a process of its own, which a test starts and this one does not measure."""
ALONE = (
    "-q",
    "-n",
    "2",
    "--dist",
    "loadfile",
    "-m",
    "not (kafka_jars or java or node or go or spark or faults)",
    *measured.TESTS,
)
"""What pytest runs where nothing else is asked for: the tests that are measured."""

Arcs = set[tuple[int, int]]
"""From which line to which line a file ran; a negative one stands for the edge of a function."""


@dataclass(frozen=True, slots=True)
class Rules:
    """Which modules are covered by a file of another name, which are not covered well enough, and which need a package of an extra."""

    shared: Mapping[str, str] = field(default_factory=dict)
    exceptions: Mapping[str, str] = field(default_factory=dict)
    needs: Mapping[str, str] = field(default_factory=dict)

    def is_measured(self, module: str) -> bool:
        """Whether the package is installed that its tests need."""
        return module not in self.needs or importlib.util.find_spec(self.needs[module]) is not None

    def tests_of(self, module: str) -> str:
        return next((tests for name, tests in self.shared.items() if fnmatchcase(module, name)), own_test(module))


@dataclass(frozen=True, slots=True)
class Figures:
    """How much of a module its test file runs."""

    module: str
    tests: str
    has_tests: bool
    is_declaration: bool
    statements: float
    branches: float
    missing: str

    @property
    def enough(self) -> bool:
        return self.is_declaration or (self.has_tests and min(self.statements, self.branches) >= ENOUGH)

    def __str__(self) -> str:
        if self.is_declaration:
            return f"{self.module}: declarations only"
        if not self.has_tests:
            return f"{self.module}: there is no {self.tests}"
        return f"{self.module}: {self.statements:.0f} % of statements, {self.branches:.0f} % of branches; not run: {self.missing}"


def read_rules(path: Path = RULES) -> Rules:
    tables = tomllib.loads(path.read_text("utf-8"))
    shared = {name: one["by"] for name, one in tables.get("shared", {}).items()}
    return Rules(shared, tables.get("exceptions", {}), tables.get("needs", {}))


def own_test(module: str) -> str:
    """The file that mirrors a module; a package is tested as a module of its name."""
    path = PurePosixPath(module)
    path = path.parent if path.stem == "__init__" else path.with_suffix("")
    return str(PurePosixPath("tests/unit", *path.parts[1:-1], f"test_{path.name}.py"))


def complaints(figures: Iterable[Figures], rules: Rules, names: Iterable[str] = ()) -> Iterator[str]:
    """What breaks the rule, and what of the list is not needed; there may be modules of other names that were not measured."""
    listed = (set(rules.exceptions) | set(rules.needs)) - set(names)
    for one in figures:
        if not one.enough and one.module not in rules.exceptions and rules.is_measured(one.module):
            yield str(one)
        elif one.enough and one.module in rules.exceptions:
            yield f"{one.module}: its own test file covers it; take it off the list of exceptions"
        listed.discard(one.module)
    yield from (f"{name}: it is listed, but there is no such module" for name in sorted(listed))


def inside_functions(source: str) -> set[int]:
    """The lines that run when a function is called."""
    functions = (one for one in ast.walk(ast.parse(source)) if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef))
    return {line for one in functions for line in range(one.body[0].lineno, (one.end_lineno or 0) + 1)}


def at_import(arcs: Arcs, inside: set[int]) -> Arcs:
    """What importing a module ran of it outside of its functions."""
    return {(one, other) for one, other in arcs if not {abs(one), abs(other)} & inside}


def own_arcs(data: CoverageData, module: str, tests: str, root: Path) -> Arcs:
    """What a test file alone ran of a module."""
    path = root / module
    data.set_query_context("")
    imported = set(data.arcs(str(path)) or ())
    data.set_query_context(tests)
    return at_import(imported, inside_functions(path.read_text("utf-8"))) | set(data.arcs(str(path)) or ())


def report(arcs: Mapping[str, Arcs], folder: Path, root: Path) -> dict[str, Any]:
    """What coverage says of modules of which these arcs ran."""
    if not arcs:
        return {}
    folder.mkdir()
    data = CoverageData(str(folder / "data"))
    data.add_arcs({str(root / module): ran for module, ran in arcs.items()})
    data.write()
    coverage = Coverage(data_file=folder / "data", config_file=False, branch=True)
    coverage.exclude(ENTRY)
    coverage.load()
    coverage.json_report(outfile=str(folder / "report"))
    files = json.loads((folder / "report").read_text("utf-8"))["files"]
    return {str((Path.cwd() / name).relative_to(root)): file for name, file in files.items()}


def figures(
    data: CoverageData, rules: Rules, folder: Path, names: Sequence[str] | None = None, root: Path = ROOT
) -> list[Figures]:
    """One row for each module. What an import runs is asked only of those whose tests do not run enough: to ask takes long."""
    names = modules(root) if names is None else names
    alone = report({name: own_arcs(data, name, rules.tests_of(name), root) for name in names}, folder / "alone", root)
    found = [
        Figures(
            module=name,
            tests=rules.tests_of(name),
            has_tests=(root / rules.tests_of(name)).exists(),
            is_declaration=False,
            statements=alone[name]["summary"]["percent_statements_covered"],
            branches=alone[name]["summary"]["percent_branches_covered"],
            missing=missing(alone[name]),
        )
        for name in names
    ]
    short = {one.module: own_arcs(data, one.module, "", root) for one in found if not one.enough}
    imported = report(short, folder / "imported", root)
    return [replace(one, is_declaration=is_whole(imported.get(one.module))) for one in found]


def is_whole(imported: Mapping[str, Any] | None) -> bool:
    """Whether an import ran all of a module."""
    return imported is not None and not imported["missing_lines"]


def missing(file: Mapping[str, Any]) -> str:
    """The lines that did not run, and from where to where a branch was never taken."""
    lines = set(file["missing_lines"])
    untaken = [(one, other) for one, other in file["missing_branches"] if not lines & {one, other}]
    branches = [f"{one}->{other if other > 0 else 'end'}" for one, other in untaken]
    return ", ".join([*map(str, sorted(lines)), *branches])


def modules(root: Path = ROOT) -> list[str]:
    folders = (root / package.replace(".", "/") for package in measured.PACKAGES)
    return sorted(path.relative_to(root).as_posix() for folder in folders for path in folder.rglob("*.py"))


def without_tests(data: CoverageData, rules: Rules, folder: Path, root: Path = ROOT) -> Iterator[str]:
    """Modules that do more than an import runs, but have no test file: whatever tests run, they break the rule."""
    names = [
        name
        for name in modules(root)
        if name not in rules.exceptions and rules.is_measured(name) and not (root / rules.tests_of(name)).exists()
    ]
    imported = report({name: own_arcs(data, name, "", root) for name in names}, folder / "without tests", root)
    for name in names:
        if imported[name]["missing_lines"]:
            yield f"{name}: there is no {rules.tests_of(name)}"


def sample(names: Iterable[str], rules: Rules, changed: frozenset[str] | None, seed: str) -> list[str]:
    """The modules to measure: all where nobody knows what has changed."""
    return [
        name
        for name in names
        if changed is None
        or not changed.isdisjoint((name, rules.tests_of(name)))
        or zlib.crc32(f"{seed} {name}".encode()) % SAMPLED == 0
    ]


def import_all(folder: Path, root: Path = ROOT) -> None:
    """Measures what importing the modules runs of them."""
    coverage = measured.measuring(folder)
    with coverage.collect():
        for module in modules(root):
            importlib.import_module(module.removesuffix(".py").removesuffix("/__init__").replace("/", "."))
    coverage.save()


def run_tests(folder: Path, arguments: Sequence[str], measured_tests: Iterable[str], root: Path = ROOT) -> int:
    """Runs tests, and measures some of them."""
    listed = folder / "tests"
    listed.write_text("\n".join(measured_tests), "utf-8")
    variables = {measured.FOLDER: str(folder), measured.CHOSEN: str(listed)}
    variables |= {"PYTEST_PLUGINS": measured.__name__, "HYPOTHESIS_PROFILE": "steady"}
    command = [sys.executable, "-m", "pytest", *(arguments or ALONE)]
    return subprocess.run(command, cwd=root, env=os.environ | variables, check=False).returncode


def combined(folder: Path) -> CoverageData:
    """What all processes measured."""
    data = CoverageData(str(folder / "combined"))
    for path in sorted(folder.glob("data.*")):
        part = CoverageData(str(path))
        part.read()
        data.update(part)
    return data


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="show every module, not only what breaks the rule")
    parser.add_argument("--sample", metavar="SEED", help="measure what has changed, and a third of the other modules")
    options, others = parser.parse_known_args()
    if compiled.extensions():
        parser.error("what a compiled module runs cannot be measured: `make plain` first")
    rules, names = read_rules(), modules()
    chosen = names if options.sample is None else sample(names, rules, changed_files(), options.sample)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        import_all(folder)
        untested = list(without_tests(combined(folder), rules, folder))
        complain(untested)
        code = run_tests(folder, others, {rules.tests_of(one) for one in chosen})
        found = figures(combined(folder), rules, folder, chosen)
    if options.all:
        print(*found, sep="\n")
    wrong = list(complaints(found, rules, names if options.sample else ()))
    complain(wrong)
    enough = sum(one.enough for one in found)
    print(f"{enough} of {len(found)} modules are covered by their own tests, {len(rules.exceptions)} are exceptions")
    return code or bool(wrong or untested)


def complain(lines: Iterable[str]) -> None:
    for line in lines:
        print("FAILED", line, flush=True)  # as pytest says it: .ci/run repeats such lines at its end


if __name__ == "__main__":
    sys.exit(main())
