"""Which tests a run leaves out: all but the share that a seed chooses, and those that its time is too short for.

Tests that the run names, and those that failed in a search once, always belong to the share and run first.
"""

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

PARTS = 3
"""One test in so many belongs to a share, unless the run says otherwise."""
FOUND = Path(__file__).parents[1] / "found_tests.txt"
"""Tests that failed in `make search`: a name per line, and what follows a `#` is for people. One that has passed for long may go."""


@dataclass(frozen=True, slots=True)
class Share:
    """What a run is limited to; without a seed, nothing."""

    seed: str | None = None
    parts: int = PARTS
    cases_seed: str | None = None
    """Chooses among the cases of a test that is marked `one_in`."""
    always: frozenset[str] = frozenset()
    """Names of tests, or of their files."""

    def must(self, name: str) -> bool:
        return name in self.always or file_of(name) in self.always

    def has(self, name: str, one_in: int = 1) -> bool:
        """Whether a test belongs to the share; it may be one of many cases of which one in so many is enough."""
        chosen = ((self.seed, self.parts), (self.cases_seed, one_in))
        return self.must(name) or all(seed is None or is_chosen(seed, name, parts) for seed, parts in chosen)

    def place(self, name: str) -> tuple[bool, int]:
        """Orders the files of a run whose time is limited: what must run comes first, then another file for another seed."""
        return not self.must(name), _number(self.seed or "", file_of(name))


def file_of(name: str) -> str:
    return name.partition("::")[0]


def is_chosen(seed: str, name: str, parts: int = PARTS) -> bool:
    return _number(seed, name) % parts == 0


def _number(seed: str, name: str) -> int:
    return zlib.crc32(f"{seed} {name}".encode())


def found(path: Path = FOUND) -> Iterator[str]:
    """The tests that failed in a search."""
    for line in path.read_text("utf-8").splitlines() if path.exists() else ():
        name = line.partition(" #")[0].strip()
        if name and not name.startswith("#"):
            yield name


def keep(names: Iterable[str], path: Path = FOUND) -> None:
    """Adds tests to those that failed, unless they are there."""
    known = set(found(path))
    new = [name for name in dict.fromkeys(names) if name not in known]
    if new:
        with path.open("a", encoding="utf-8") as file:
            file.writelines(f"{name}\n" for name in new)
