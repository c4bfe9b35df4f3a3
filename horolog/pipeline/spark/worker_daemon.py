"""Spark's daemon of Python workers, without a traceback for each query that stops reading before the end (`limit`, `show`, `first`).

Spark closes the connection to a worker once it has the rows that it wants. The worker gets a broken pipe when it flushes the rest, and the
daemon (since Spark 4.1) prints that as if it were a fault. Nothing is lost: Spark no longer reads there, and the worker ends
either way. Errors of tasks are not affected: a worker sends them before it flushes, and Spark itself reports a worker that is gone
while it still reads.

The workers of `pipeline.session()` are started by this module (`spark.python.daemon.module`). Those of other sessions, and those that
plan queries, are started by Spark's own; there the data source does the same (`hush_this_process`).
"""

import sys
import traceback
from types import ModuleType
from typing import Any

DAEMON = "pyspark.daemon"
_HUNG_UP = (BrokenPipeError, ConnectionResetError)


class _Traceback:
    """The module `traceback` to a daemon: it prints everything but that Spark has hung up."""

    def print_exc(self) -> None:
        if not isinstance(sys.exception(), _HUNG_UP):
            traceback.print_exc()

    def __getattr__(self, name: str) -> Any:
        return getattr(traceback, name)


def hush(daemon: ModuleType) -> None:
    daemon.traceback = _Traceback()  # type: ignore[attr-defined]


def hush_this_process() -> None:
    """Hush this process if it is a worker that Spark's daemon has forked."""
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None and spec.name == DAEMON:
        hush(main)


def run() -> None:
    from pyspark import daemon

    hush(daemon)
    daemon.manager()


if __name__ == "__main__":
    run()
