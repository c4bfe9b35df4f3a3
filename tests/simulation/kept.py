"""Seeds that failed once: one line each of kept_seeds.txt, `WORKERS STEPS SEED`; what follows a `#` is for people.

A seed stands for the same history as long as the simulation itself is the same. One that has passed for long may go.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

FILE = Path(__file__).with_name("kept_seeds.txt")


class Kept(NamedTuple):
    """A history that failed."""

    workers: int
    steps: int
    seed: int


def kept(path: Path = FILE) -> Iterator[Kept]:
    """Every seed of the file; a line of another form is an error."""
    for line in path.read_text("utf-8").splitlines() if path.exists() else ():
        words = line.partition("#")[0].split()
        if words:
            workers, steps, seed = map(int, words)
            yield Kept(workers, steps, seed)


def keep(seed: int, steps: int, workers: int, path: Path = FILE) -> None:
    """Adds a seed, unless it is there."""
    if Kept(workers, steps, seed) not in set(kept(path)):
        with path.open("a", encoding="utf-8") as file:
            file.write(f"{workers} {steps} {seed}\n")
