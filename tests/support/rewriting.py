"""Rewrites the assertions of test modules once, where several processes are about to collect the same tests for the first time.

pytest rewrites a module when it imports it, and keeps the result in `__pycache__`. Processes that begin together import the same module
at the same time, so each of them rewrites all: ten seconds in every one. Here each process begins at another place of the list,
and skips the modules that another one has rewritten.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from _pytest.assertion.rewrite import PYC_TAIL, _rewrite_test, _write_pyc, assertstate_key, get_cache_dir, try_makedirs


def in_turn(files: Sequence[Path], number: int, count: int) -> Iterator[Path]:
    """All files, from where this one of several processes begins."""
    begin = len(files) * number // count
    yield from files[begin:]
    yield from files[:begin]


def kept(file: Path) -> Path:
    """Where pytest keeps a test module whose assertions are rewritten."""
    return get_cache_dir(file) / f"{file.stem}{PYC_TAIL}"


def is_kept(file: Path) -> bool:
    """Whether a module was rewritten since its last change; pytest looks closer when it imports it."""
    try:
        return kept(file).stat().st_mtime_ns >= file.stat().st_mtime_ns
    except FileNotFoundError:
        return False


def rewrite(config: pytest.Config, file: Path) -> None:
    digest, code = _rewrite_test(file, config)
    if try_makedirs(kept(file).parent):
        _write_pyc(config.stash[assertstate_key], code, digest, kept(file))


def named(config: pytest.Config) -> Iterator[Path]:
    """The test modules below what the command line names."""
    for word in config.args:
        path = config.invocation_params.dir / word.partition("::")[0]
        yield from path.rglob("test_*.py") if path.is_dir() else [path]


def share(config: pytest.Config) -> None:
    """Rewrite this process's part of the test modules; a process that collects alone rewrites them as it imports them."""
    worker = getattr(config, "workerinput", None)
    if worker is None:
        return
    number = int(worker["workerid"].removeprefix("gw"))
    for file in in_turn(sorted(set(named(config))), number, worker["workercount"]):
        if not is_kept(file):
            rewrite(config, file)
