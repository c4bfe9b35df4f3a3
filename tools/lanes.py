"""`python -m tools.lanes NAME`: whether a long lane of .ci/run runs as a whole, or a third of it is enough.

It prints `whole` where a module that the lane tests, a module that one imports, or a file of its tests has changed since the lane
passed as a whole, and `third` where nothing has. `--passed` notes in `.ci/lanes.json` that it has just passed: run the lane first
(`make pipeline-test`), and commit the file with the change.
"""

import argparse
import hashlib
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import grimp

ROOT = Path(__file__).resolve().parents[1]
NOTED = Path(".ci", "lanes.json")


class Lane(NamedTuple):
    """What a lane tests, and where its tests are."""

    packages: tuple[str, ...]
    tests: str


LANES = {
    "pipeline": Lane(("horolog.pipeline", "pyspark_horolog"), "tests/pipeline"),
    "browser": Lane(("horolog.console",), "tests/console"),
}


def modules(lane: Lane, graph: grimp.ImportGraph) -> set[str]:
    """The modules of a lane, and all that they import."""
    own = {name for package in lane.packages for name in (package, *graph.find_descendants(package))}
    return own.union(*(graph.find_upstream_modules(name) for name in own))


def sources(lane: Lane, graph: grimp.ImportGraph, root: Path) -> Iterator[Path]:
    """The files whose change makes the lane run as a whole."""
    for name in modules(lane, graph):
        path = root / name.replace(".", "/")
        yield path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    yield from (root / lane.tests).rglob("*.py")


def digest(paths: Iterable[Path], root: Path) -> str:
    """One line for what lies in files, whatever their order."""
    whole = hashlib.sha256()
    for path in sorted(paths):
        whole.update(f"{path.relative_to(root).as_posix()} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return whole.hexdigest()


def read(root: Path) -> dict[str, str]:
    path = root / NOTED
    return json.loads(path.read_text("utf-8")) if path.exists() else {}


def main(arguments: list[str], root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lane", choices=LANES)
    parser.add_argument("--passed", action="store_true", help="note that it has passed as a whole")
    options = parser.parse_args(arguments)
    lane = LANES[options.lane]
    graph = grimp.build_graph(*dict.fromkeys(one.partition(".")[0] for one in lane.packages), cache_dir=None)
    now = digest(sources(lane, graph, root), root)
    noted = read(root)
    if options.passed:
        (root / NOTED).write_text(
            json.dumps(dict(sorted((noted | {options.lane: now}).items())), indent=2) + "\n", "utf-8"
        )
    else:
        sys.stdout.write("third\n" if noted.get(options.lane) == now else "whole\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
