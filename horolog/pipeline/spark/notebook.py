"""In a notebook, shows the workers' lines and Spark's progress below the cell that ran the query.

IPython reports when a cell begins and ends. In between a thread reads what workers have sent (`notes`) and asks Spark for its tasks. Each
cell has its own thread, because a kernel shows a thread's output below the cell that created the thread.
"""

import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from horolog.pipeline.spark.notes import SOCKET

_LOOK_SECONDS = 0.2
_QUICK_SECONDS = 2.0
"""A cell that is done by then has no progress to show."""
_LONGEST_LINE = 1 << 16

Tasks = tuple[int, int]
"""How many are done, of how many."""


def shell_of_notebook() -> Any:
    """IPython's shell if it runs in a kernel; None at a terminal and in a program."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell if getattr(shell, "kernel", None) is not None else None


def _to_this_cell(text: str) -> None:
    sys.stderr.write(text)  # IPython may have replaced it


class Notebook:
    """Shows lines and progress below the cell at work."""

    def __init__(self, path: str, write: Callable[[str], object] = _to_this_cell) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.settimeout(_LOOK_SECONDS)
        self._socket.bind(path)
        self._write = write
        self._cell: threading.Thread | None = None
        self._is_over = threading.Event()
        self._drawn = 0
        self.tasks: Callable[[], Tasks | None] = lambda: None
        """What Spark is doing, once there is one."""

    def begin(self, *_: Any) -> None:
        """A cell begins."""
        self.end()
        self._is_over.clear()
        self._cell = threading.Thread(target=self._show, args=(time.monotonic(),), daemon=True)
        self._cell.start()

    def end(self, *_: Any) -> None:
        """The cell is done: pending lines are shown before the next begins."""
        if self._cell is not None:
            self._is_over.set()
            self._cell.join()
            self._cell = None

    def _show(self, began: float) -> None:
        while not self._is_over.is_set():
            self._read()
            if time.monotonic() - began >= _QUICK_SECONDS:
                self._draw()
        self._socket.setblocking(False)
        while self._read():
            pass
        self._socket.settimeout(_LOOK_SECONDS)
        self._clear()

    def _read(self) -> bool:
        try:
            line = self._socket.recv(_LONGEST_LINE)
        except (TimeoutError, BlockingIOError):
            return False
        self._clear()
        self._write(line.decode(errors="replace") + "\n")
        return True

    def _draw(self) -> None:
        try:
            found = self.tasks()
        except Exception:  # noqa: BLE001 - Spark is ending, and progress is not what anybody waits for
            return
        if found is None:
            return
        line = f"horolog: {found[0]:,} of {found[1]:,} tasks"
        self._write("\r" + line.ljust(self._drawn))
        self._drawn = len(line)

    def _clear(self) -> None:
        if self._drawn:
            self._write("\r" + " " * self._drawn + "\r")
            self._drawn = 0


_listening: Notebook | None = None


def listen(folder: Callable[[], str]) -> Notebook | None:
    """Begin to show things, if this is a notebook, before Spark starts: its processes find the socket in the environment."""
    global _listening  # noqa: PLW0603 - one for each process, as its shell is
    shell = shell_of_notebook()
    if shell is None or os.name != "posix":
        return None
    if _listening is None:
        path = os.path.join(folder(), "notes")  # noqa: PTH118 - a socket's path is a text
        _listening = Notebook(path)
        os.environ[SOCKET] = path
        shell.events.register("pre_run_cell", _listening.begin)
        shell.events.register("post_run_cell", _listening.end)
        _listening.begin()  # for the cell that makes the session
    return _listening


def tasks_of(spark: Any) -> Tasks | None:
    """The tasks of the stages at work; None if there are none."""
    with suppress(AttributeError):  # with Spark Connect there is no context
        tracker = spark.sparkContext.statusTracker()
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        known = [stage for stage in stages if stage is not None]
        if known:
            return sum(stage.numCompletedTasks for stage in known), sum(stage.numTasks for stage in known)
    return None
