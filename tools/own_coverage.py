"""`python -m tools.own_coverage`: how much of each module its own test file runs, alone. Nine of ten statements and branches are enough.

`horolog/broker/x/y.py` has `tests/unit/broker/x/test_y.py`. All test files run once, and the measurement tells them apart: a line
that only the tests of other modules run counts as not run. What a module does when it is imported counts for every test file, the
inside of its functions does not. `own_coverage.toml` beside this file lists what the rule does not hold for, each with its reason; an
entry that is not needed any more fails, too, so that the list only gets shorter.

Modules whose tests need the packages of an extra have their test file among those of a lane of `.ci/run` instead, which `[lanes]` of the
list names; `--lane NAME` measures these modules, and a run without it the others. A module of such a package that has a test file in
`tests/unit` all the same is one of the others. A sample of a lane shows what falls short, and the whole lane fails for it.

Arguments are those of pytest, and choose another run in which the test files are measured: `-n 3 -m "not slow"` gives the result of
all tests and the measurement in one. Modules without a test file are named before anything runs. With `--sample SEED` only the
modules are measured that have changed since `.ci/run` passed last, or whose tests have, and an eighth of the others, which the seed
chooses: a test takes about twice as long while it is measured. Of a lane it is a twentieth of the others, and pytest gets their test files as
`--always`, so that they run completely.
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
UNIT = "tests/unit"
ENOUGH = 90
SAMPLED, SAMPLED_OF_LANE = 8, 20
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
OF_LANE = ("-q", "-n", "2", "--dist", "loadfile", "--timeout", "600", "-m", "not kills")
"""With which options it runs the measured tests of a lane."""

Arcs = set[tuple[int, int]]
"""From which line to which line a file ran; a negative one stands for the edge of a function."""


@dataclass(frozen=True, slots=True)
class Lane:
    """A package whose modules have tests in another folder than `tests/unit`, and in another run."""

    package: str
    tests: str

    def own_test(self, module: str) -> str:
        """The file in the lane's folder that mirrors a module of the package."""
        return own_test(module).replace(self.package.replace("horolog", UNIT, 1), self.tests, 1)


@dataclass(frozen=True, slots=True)
class Rules:
    """Which modules are covered by a file of another name, which are not covered well enough, and which need a package of an extra."""

    shared: Mapping[str, str] = field(default_factory=dict)
    exceptions: Mapping[str, str] = field(default_factory=dict)
    needs: Mapping[str, str] = field(default_factory=dict)
    lanes: Mapping[str, Lane] = field(default_factory=dict)
    root: Path = ROOT

    def is_measured(self, module: str) -> bool:
        """Whether the package is installed that its tests need."""
        return module not in self.needs or importlib.util.find_spec(self.needs[module]) is not None

    def tests_of(self, module: str) -> str:
        shared = next((tests for name, tests in self.shared.items() if fnmatchcase(module, name)), None)
        if shared is not None:
            return shared
        mirrored = own_test(module)
        if (self.root / mirrored).exists():
            return mirrored
        return next((lane.own_test(module) for lane in self.lanes.values() if is_below(module, lane.package)), mirrored)

    def lane_of(self, module: str) -> str | None:
        """The lane that measures a module; None if the tests that need no extra do."""
        tests = self.tests_of(module)
        return next((name for name, lane in self.lanes.items() if is_below(tests, lane.tests)), None)


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
    lanes = {name: Lane(one["package"], one["tests"]) for name, one in tables.get("lanes", {}).items()}
    return Rules(shared, tables.get("exceptions", {}), tables.get("needs", {}), lanes, path.parents[1])


def is_below(file: str, folder: str) -> bool:
    return PurePosixPath(file).is_relative_to(folder)


def own_test(module: str) -> str:
    """The file that mirrors a module; a package is tested as a module of its name."""
    path = PurePosixPath(module)
    path = path.parent if path.stem == "__init__" else path.with_suffix("")
    return str(PurePosixPath(UNIT, *path.parts[1:-1], f"test_{path.name}.py"))


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


def without_tests(
    data: CoverageData, rules: Rules, folder: Path, all_names: Iterable[str], root: Path = ROOT
) -> Iterator[str]:
    """Modules that do more than an import runs, but have no test file: whatever tests run, they break the rule."""
    names = [
        name
        for name in all_names
        if name not in rules.exceptions and rules.is_measured(name) and not (root / rules.tests_of(name)).exists()
    ]
    imported = report({name: own_arcs(data, name, "", root) for name in names}, folder / "without tests", root)
    for name in names:
        if imported[name]["missing_lines"]:
            yield f"{name}: there is no {rules.tests_of(name)}"


def sample(
    names: Iterable[str], rules: Rules, changed: frozenset[str] | None, seed: str, one_in: int = SAMPLED
) -> list[str]:
    """The modules to measure: all where it is not known what has changed."""
    return [
        name
        for name in names
        if changed is None
        or not changed.isdisjoint((name, rules.tests_of(name)))
        or zlib.crc32(f"{seed} {name}".encode()) % one_in == 0
    ]


def sample_of_lane(names: Iterable[str], rules: Rules, changed: frozenset[str] | None, seed: str) -> list[str]:
    """The modules of a lane to measure: its time is short, so few where it is not known what has changed."""
    return sample(names, rules, changed or frozenset(), seed, SAMPLED_OF_LANE)


def arguments_of_lane(given: Sequence[str], tests: Iterable[str], *, is_sample: bool) -> list[str]:
    """What pytest runs: the measured tests, or what the lane runs with all tests of these files."""
    if is_sample:
        return [*given, *(f"--always={one}" for one in sorted(tests))]
    return [*(given or OF_LANE), *([] if given else sorted(tests))]


def import_all(folder: Path, names: Iterable[str]) -> None:
    """Measures what importing the modules runs of them."""
    coverage = measured.measuring(folder)
    with coverage.collect():
        for module in names:
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
    rules = read_rules()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="show every module, not only what breaks the rule")
    parser.add_argument("--lane", choices=rules.lanes, help="measure the modules whose tests are in this lane")
    parser.add_argument("--sample", metavar="SEED", help="measure what has changed, and a part of the other modules")
    options, others = parser.parse_known_args()
    everything = modules()
    names = [name for name in everything if rules.lane_of(name) == options.lane]
    if {Path(name) for name in names} & {module_of_extension(path) for path in compiled.extensions()}:
        parser.error("what a compiled module runs cannot be measured: `make plain` first")
    chosen = names
    if options.sample is not None:
        chosen = (sample_of_lane if options.lane else sample)(names, rules, changed_files(), options.sample)
    tests = {rules.tests_of(name) for name in chosen}
    if options.lane:
        there = {one for one in tests if (ROOT / one).exists()}
        others = arguments_of_lane(others, there, is_sample=options.sample is not None)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        import_all(folder, names)
        untested = list(without_tests(combined(folder), rules, folder, names))
        complain(untested)
        code = run_tests(folder, others, tests)
        cut = measured.left_out(folder) if options.lane else frozenset()
        found = figures(combined(folder), rules, folder, chosen)
    if options.all:
        print(*found, sep="\n")
    unsure = [one for one in found if not one.enough and one.tests in cut]
    for one in unsure:
        print(f"not judged, for tests of its file were skipped: {one}")
    wrong = list(complaints([one for one in found if one not in unsure], rules, everything))
    is_failure = fails(wrong, is_cut=options.lane is not None and options.sample is not None)
    enough = sum(one.enough for one in found)
    print(f"{enough} of {len(found)} modules are covered by their own tests, {len(rules.exceptions)} are exceptions")
    return code or bool(untested or is_failure)


def module_of_extension(path: Path) -> Path:
    """The source of an extension module: `broker/x.cpython-311-x86_64-linux-gnu.so` is made of `broker/x.py`."""
    relative = path.relative_to(ROOT)
    return relative.with_name(f"{relative.name.partition('.')[0]}.py")


def fails(wrong: Sequence[str], *, is_cut: bool) -> bool:
    """Print what breaks the rule. A sample of a lane fails for none of it: the machine's speed decides how much of it is measured."""
    if is_cut:
        for line in wrong:
            print("falls short in this sample:", line)
        return False
    complain(wrong)
    return bool(wrong)


def complain(lines: Iterable[str]) -> None:
    for line in lines:
        print("FAILED", line, flush=True)  # as pytest says it: .ci/run repeats such lines at its end


if __name__ == "__main__":
    sys.exit(main())
