"""`python -m tools.lanes NAME --seed SEED`: which part of a long lane of .ci/run runs, as options of pytest, one a line.

A lane runs a share of its tests, chosen by the seed: `ONE_IN` of them if a module that the lane tests, a module that one of these
imports, or a file of its tests has changed since `.ci/run` passed last, else `ONE_IN_IF_UNCHANGED`. Test files that have changed run
in any case, and so do those whose helpers have. Where the folders of a lane's tests are named for the rooms of its package, the tests
of a room that has changed run, too. `make search` runs what was left out.
"""

import argparse
import ast
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import grimp

from tools.changed import ROOT, changed_files

ONE_IN, ONE_IN_IF_UNCHANGED = 5, 10


class Lane(NamedTuple):
    """What a lane tests, and where its tests are."""

    packages: tuple[str, ...]
    tests: tuple[str, ...]
    by_room: bool = False
    """Whether `tests/pipeline/jobs` is about `horolog.pipeline.jobs`, and so on."""


SERVED = ("horolog.broker", "horolog.client", "horolog.testing")
SEEN_BY_CLIENTS, CLIENTS = ("horolog.broker", "horolog.client"), ("tests/wire", "tests/golden", "tests/interop")
LANES = {
    "planted": Lane(("horolog.broker",), ("tests/simulation",)),
    "marked": Lane(SERVED, ("tests",)),
    "tests": Lane(("horolog",), ("tests",)),
    "pipeline": Lane(("horolog.pipeline", "pyspark_horolog"), ("tests/pipeline",), by_room=True),
    "browser": Lane(("horolog.console",), ("tests/console",)),
    "faults": Lane(("horolog.broker",), ("tests/faults", "tests/workers")),
    "workers": Lane(SEEN_BY_CLIENTS, CLIENTS),
    "store": Lane(SEEN_BY_CLIENTS, CLIENTS),
}


def modules(lane: Lane, graph: grimp.ImportGraph) -> set[str]:
    """The modules of a lane, and all that they import."""
    own = {name for package in lane.packages for name in (package, *graph.find_descendants(package))}
    return own.union(*(graph.find_upstream_modules(name) for name in own))


def module_of(file: str) -> str:
    """The name under which a file of Python is imported."""
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def room_of(module: str) -> str:
    """The room of a package that a module belongs to: `horolog.pipeline.jobs.expire` is in `horolog.pipeline.jobs`."""
    return ".".join(module.split(".")[:3])


def is_below(file: str, folders: Iterable[str]) -> bool:
    return any(PurePosixPath(file).is_relative_to(folder) for folder in folders)


def is_touched(lane: Lane, changed: frozenset[str], graph: grimp.ImportGraph) -> bool:
    """Whether a change concerns the lane at all."""
    tested = modules(lane, graph)
    return any(is_below(file, lane.tests) or (file.endswith(".py") and module_of(file) in tested) for file in changed)


def imports_of(source: str) -> set[str]:
    """The modules that a file of Python imports, wherever it does; of `from a import b` both `a` and `a.b`."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names.update(one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            names.update(f"{node.module}.{one.name}" for one in node.names)
    return names


def due(lane: Lane, changed: frozenset[str], root: Path) -> Iterator[str]:
    """The test files of a lane that a change is about."""
    helpers = {module_of(file) for file in changed if file.startswith("tests/") and file.endswith(".py")}
    programs = {PurePosixPath(file).stem for file in changed if is_below(file, lane.tests) and not file.endswith(".py")}
    rooms = {room_of(module_of(file)) for file in changed if file.endswith(".py")} if lane.by_room else set()
    rooms -= {package for package in lane.packages if package in rooms}
    for path in sorted(path for folder in lane.tests for path in (root / folder).rglob("test_*.py")):
        file, source = path.relative_to(root).as_posix(), path.read_text("utf-8")
        names = imports_of(source)
        about = {room_of(name) for name in names} | {room_of(module_of(file).replace("tests", "horolog", 1))}
        if file in changed or names & helpers or about & rooms or any(name in source for name in programs):
            yield file


def options(lane: Lane, seed: str, changed: frozenset[str] | None, root: Path = ROOT) -> list[str]:
    """What pytest is to be told. Where nobody knows what has changed, the seed chooses alone."""
    if changed is None:
        return ["--part-of", seed, "--parts", str(ONE_IN)]
    graph = grimp.build_graph(*dict.fromkeys(one.partition(".")[0] for one in lane.packages), cache_dir=None)
    parts = ONE_IN if is_touched(lane, changed, graph) else ONE_IN_IF_UNCHANGED
    return ["--part-of", seed, "--parts", str(parts), *(f"--always={file}" for file in due(lane, changed, root))]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lane", choices=LANES)
    parser.add_argument("--seed", required=True, help="chooses the share of the lane")
    chosen = parser.parse_args(arguments)
    words = options(LANES[chosen.lane], chosen.seed, changed_files())
    sys.stdout.writelines(f"{word}\n" for word in words)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
