"""One job at a time writes to a table: a lock whose owner is told, and which is taken over from an owner that is dead.

    lock/<generation, 8 digits>.json    made only if it is not there; generations count up, the newest one is the lock

A generation is {"version": 1, "owner": {"user", "host", "pid"}, "place": "...", "process": "...", "since_ms": n, "beat_ms": n, "released": bool}. The
owner writes its own generation again every few seconds (`beat_ms`) and at its end (`released`); nobody else ever writes to it. Whoever finds the
newest one released, or its owner dead, makes the next: of several that try, one makes it. So nothing has to be deleted to take a
lock over, and a store that has conditional writes is enough. `place` says on which running system the owner's pid means
something: there its process is looked at; seen from elsewhere it is dead when its beat has grown old.

The lock keeps jobs from working in vain. That no row is lost or repeated does not hang on it: commits see to that.
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

from horolog.client.processes import beginning_of as _process
from horolog.client.processes import this_place as _this_place
from horolog.client.times import format_duration
from horolog.pipeline.object_stores import StoreError
from horolog.pipeline.tables.store import Store
from horolog.pipeline.tables.table import TableError

if TYPE_CHECKING:
    from horolog.pipeline.tables.table import Table

VERSION = 1
BEAT_SECONDS = 5.0
DEAD_AFTER_MS = 60_000
"""A beat so old is that of a dead owner; clocks of two hosts should not differ by as much."""
POLL_SECONDS = 0.5
_KEPT = 2


class LockHeld(TableError):
    """Somebody else is writing to the table."""


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
                raise TableError(f"{name} is no lock of version {VERSION}")
            return cls(**{**found, "owner": Owner(**found["owner"])})
        except (ValueError, TypeError, KeyError) as error:
            raise TableError(f"{name} is no lock: {error!r}") from error


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
        """Take it, waiting so long for its owner to end; LockHeld says who that is."""
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
        """Take it, or say whose it is."""
        while True:
            names = self._store.names(self._folder)
            newest = self._read(names[-1]) if names else None
            if newest is not None and self._is_alive(newest):
                return newest
            if self._make(names):
                self.taken_from = None if newest is None or newest.released else str(newest.owner)
                return None

    def _make(self, names: list[str]) -> bool:
        """Make the generation behind these; False if somebody else was quicker."""
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
        """What cannot be written now is written the next time; if never, the owner counts as dead elsewhere."""
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
        return f"{found.owner} is writing to the table, for {since} now"


@contextmanager
def writing(table: "Table", wait_ms: int = 0, tell: Callable[[str], None] = lambda _: None) -> Iterator[Lock]:
    """Hold the table's lock, once what a crash has left is recovered; told whose it was, if that one is dead."""
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
