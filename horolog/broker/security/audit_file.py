"""The audit as a file: lines are queued, and appended by a thread of its own.

- To rotate the file, move or remove it: before each write the thread checks whether its file is still the one of that name, and
  creates a new one if not. A file that was copied and truncated continues at its new end.
- Several workers append to one file: each write holds whole lines.
- While the disk fails, lines stay in the queue, and the first unwritten ones are retried every second. Lines that find the queue full
  are lost: counted, and reported by one line of the log. Lines are given to the system, not synced one by one.
- At a clean stop the queue is written out, within `MOST_CLOSING_S`.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from itertools import islice
from pathlib import Path
from typing import Final

from horolog.base.readable import counted
from horolog.broker.base.metrics import Counter

log = logging.getLogger(__name__)

MOST_QUEUED: Final = 20_000
MOST_LINES_PER_WRITE: Final = 1_000
RETRY_S: Final = 1.0
MOST_CLOSING_S: Final = 5.0
ONLY_OURS: Final = 0o600


class AuditFile:
    """A `Sink`. `take` runs on the event loop's thread, `_run` on the other one."""

    def __init__(self, path: str, lost: Counter) -> None:
        self._path = path
        self._lost = lost
        self._queue: deque[bytes] = deque()
        self._changed = threading.Condition()
        self._is_closing = False
        self._is_failing = False
        self._dropped = 0
        self._descriptor = -1
        self._thread: threading.Thread | None = None

    def __repr__(self) -> str:
        return f"<AuditFile {self._path}: {len(self._queue)} lines queued>"

    def open(self) -> None:
        """Raises OSError: a broker that cannot keep its audit does not start."""
        self._descriptor = self._opened()
        self._thread = threading.Thread(target=self._run, name="audit", daemon=True)
        self._thread.start()

    def take(self, event: str, line: bytes) -> None:  # noqa: ARG002 - a file holds all kinds
        with self._changed:
            if len(self._queue) < MOST_QUEUED:
                self._queue.append(line + b"\n")
                self._changed.notify()
                return
            self._dropped += 1
            is_first = self._dropped == 1
        self._lost.value += 1
        if is_first:
            log.error("%s: the audit's queue is full: events are lost", self._path)

    def flush(self) -> None:
        """The thread writes without being asked."""

    def close(self) -> None:
        if self._thread is None:
            return
        with self._changed:
            self._is_closing = True
            self._changed.notify()
        self._thread.join(MOST_CLOSING_S)
        if self._thread.is_alive():
            log.error("%s: the last lines of the audit could not be written", self._path)
        else:
            os.close(self._descriptor)
        self._thread = None
        if self._queue:
            self._lost.value += len(self._queue)
            log.error("%s: the audit lost %s", self._path, counted(len(self._queue), "event"))

    # -- the thread

    def _run(self) -> None:
        while lines := self._next():
            data = whole = b"".join(lines)
            while data := self._write(data, is_begun=len(data) < len(whole)):
                if self._is_closing:
                    return
                with self._changed:
                    self._changed.wait_for(lambda: self._is_closing, RETRY_S)
            self._is_written(len(lines))

    def _next(self) -> list[bytes]:
        """Lines to write, which stay in the queue until they are written; none at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._is_closing)
            return list(islice(self._queue, MOST_LINES_PER_WRITE))

    def _write(self, data: bytes, *, is_begun: bool) -> bytes:
        """Write the data; return what was not written. The next call continues there, so that no line is split."""
        try:
            if not is_begun:
                self._follow_rotation()
            while data:
                data = data[os.write(self._descriptor, data) :]
        except OSError as error:
            if not self._is_failing:
                self._is_failing = True
                log.error("%s: the audit cannot be written: %s", self._path, error)
        return data

    def _is_written(self, count: int) -> None:
        with self._changed:
            for _ in range(count):
                self._queue.popleft()
            dropped, self._dropped = self._dropped, 0
        if self._is_failing or dropped:
            self._is_failing = False
            log.warning("%s: the audit log is writable again; it lost %s", self._path, counted(dropped, "event"))

    def _opened(self) -> int:
        """Open the file, and end a line that an earlier process left unfinished. Raises OSError."""
        descriptor = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, ONLY_OURS)
        try:
            size = os.fstat(descriptor).st_size
            if size and os.pread(descriptor, 1, size - 1) != b"\n":
                os.write(descriptor, b"\n")
        except OSError:
            os.close(descriptor)
            raise
        return descriptor

    def _follow_rotation(self) -> None:
        """Raises OSError."""
        mine = os.fstat(self._descriptor)
        try:
            there = Path(self._path).stat()
        except FileNotFoundError:
            there = None
        if there is None or (there.st_dev, there.st_ino) != (mine.st_dev, mine.st_ino):
            new = self._opened()
            os.close(self._descriptor)
            self._descriptor = new
