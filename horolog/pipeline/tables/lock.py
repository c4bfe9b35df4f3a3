"""One job at a time writes to a table: a lock that names its owner, and that is taken over from a dead owner.

    lock/<generation, 8 digits>.json    created only if it does not exist; generations count up, the newest one is the lock

A generation is {"version": 1, "owner": {"user", "host", "pid"}, "place": "...", "process": "...", "since_ms": n, "beat_ms": n, "released": bool}. The
owner rewrites its generation every few seconds (`beat_ms`) and at its end (`released`); no other job ever writes to it. A job that finds the
newest one released, or its owner dead, creates the next: of several that try, one succeeds. So nothing has to be deleted to take a
lock over, and a store with conditional writes is enough. `place` names the running system on which the owner's pid is
valid: there the process is checked; seen from elsewhere the owner is dead when its beat is old.

The lock keeps jobs from working in vain. Correctness does not depend on it: commits ensure that no row is lost or repeated.
"""

import getpass
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING

from horolog.base.processes import beginning_of as _process
from horolog.base.processes import this_place as _this_place
from horolog.client.values.times import format_duration
from horolog.pipeline.stores.store import Store
from horolog.pipeline.tables.table import TableError
from horolog.stores.faults import StoreError

if TYPE_CHECKING:
    from horolog.pipeline.tables.table import Table

VERSION = 1
BEAT_SECONDS = 5.0
DEAD_AFTER_MS = 60_000
"""An owner whose beat is this old is dead; the clocks of two hosts should not differ by as much."""
POLL_SECONDS = 0.5
_KEPT = 2


class LockHeld(TableError):
    """Another job is writing to the table."""


@dataclass(frozen=True, slots=True)
class Owner:
    user: str
    host: str
    pid: int

    def __str__(self) -> str:
        return f"{self.user} on {self.host}, pid {self.pid}"


@dataclass(frozen=True, slots=True)
class Generation:
    """What one file says."""

    owner: Owner
    place: str
    process: str
    since_ms: int
    beat_ms: int
    released: bool = False
    version: int = field(default=VERSION)

    def encode(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def decode(cls, name: str, data: bytes) -> "Generation":
        try:
            found = json.loads(data)
            if found["version"] != VERSION:
                raise TableError(f"{name} is not a lock of version {VERSION}")
            return cls(**{**found, "owner": Owner(**found["owner"])})
        except (ValueError, TypeError, KeyError) as error:
            raise TableError(f"{name} is not a lock: {type(error).__name__}: {error}") from error


class Lock:
    """To be held while something is written to a table."""

    def __init__(
        self, store: Store, folder: str = "lock", now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    ) -> None:
        self._store = store
        self._folder = folder
        self._now_ms = now_ms
        self._name = ""
        self._own: Generation | None = None
        self.taken_from: str | None = None
        """Whose it was, if that one died with it."""

    @contextmanager
    def held(self, wait_ms: int = 0) -> Iterator["Lock"]:
        """Take it, waiting this long for its owner to end; LockHeld names the owner."""
        self._store.check()
        deadline = time.monotonic() + wait_ms / 1000
        while (held_by := self.take()) is not None:
            if time.monotonic() >= deadline:
                raise LockHeld(self._told(held_by))
            time.sleep(min(POLL_SECONDS, max(0.0, deadline - time.monotonic())))
        stop = threading.Event()
        beating = threading.Thread(target=self._beat, args=(stop,), name="lock", daemon=True)
        beating.start()
        try:
            yield self
        finally:
            stop.set()
            beating.join()
            self.release()

    def take(self) -> Generation | None:
        """Take it, or return its owner."""
        while True:
            names = self._store.names(self._folder)
            newest = self._read(names[-1]) if names else None
            if newest is not None and self._is_alive(newest):
                return newest
            if self._make(names):
                self.taken_from = None if newest is None or newest.released else str(newest.owner)
                return None

    def _make(self, names: list[str]) -> bool:
        """Create the generation after these; False if another job was quicker."""
        now_ms = self._now_ms()
        own = Generation(_this_owner(), _this_place(), _process(os.getpid()), now_ms, now_ms)
        name = f"{int(names[-1].removesuffix('.json')) + 1 if names else 1:08}.json"
        if not self._store.create(f"{self._folder}/{name}", own.encode()):
            return False
        self._name, self._own = name, own
        for old in names[:-_KEPT]:
            self._store.remove(f"{self._folder}/{old}")
        return True

    def release(self) -> None:
        if self._own is not None:
            self._write(replace(self._own, released=True))
            self._own = None

    def _beat(self, stop: threading.Event) -> None:
        """A failed write is retried at the next beat; if all fail, the owner counts as dead elsewhere."""
        while not stop.wait(BEAT_SECONDS):
            with suppress(OSError, StoreError):
                if self._own is not None:
                    self._write(replace(self._own, beat_ms=self._now_ms()))

    def _write(self, own: Generation) -> None:
        self._store.replace(f"{self._folder}/{self._name}", own.encode())

    def _read(self, name: str) -> Generation | None:
        data = self._store.read(f"{self._folder}/{name}")
        return None if data is None else Generation.decode(f"{self._folder}/{name}", data)

    def _is_alive(self, found: Generation) -> bool:
        if found.released:
            return False
        if found.place == _this_place():
            return _process(found.owner.pid) == found.process
        return self._now_ms() - found.beat_ms < DEAD_AFTER_MS

    def _told(self, found: Generation) -> str:
        since = format_duration(max(0, self._now_ms() - found.since_ms))
        return f"{found.owner} has been writing to the table for {since}"


@contextmanager
def writing(table: "Table", wait_ms: int = 0, tell: Callable[[str], None] = lambda _: None) -> Iterator[Lock]:
    """Hold the table's lock, once what a crash has left is recovered; `tell` gets the owner before, if that one is dead."""
    with table.lock.held(wait_ms) as lock:
        table.recover()
        if lock.taken_from is not None:
            tell(f"the lock of {lock.taken_from}, which has died, was taken over")
        yield lock


def _this_owner() -> Owner:
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = f"uid {os.getuid()}"
    return Owner(user, socket.gethostname(), os.getpid())
