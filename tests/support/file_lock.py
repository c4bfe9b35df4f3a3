"""One process at a time: what several workers of a run need is made by the first of them, and the others wait."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Hold the lock file, whose folder is there; the system gives it back should this process die."""
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
