"""Notes for how long no request of a backup to the store has succeeded, and how long the disk has not answered.

A round tries a request for minutes before it fails, because the line may be slow. The broker learns earlier that the store does not answer.
A disk may never answer: then the round waits with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from horolog.broker.log.storage import File, ReadOnlyFile, ReadOnlyStorage
from horolog.stores.faults import StoreError, StoreRefusal
from horolog.stores.object_store import Bytes, Created, ObjectStore, Outcome, Stored

SILENT_S = 15.0
"""Longer than a small request takes until it is given up."""
LOOK_EVERY_S = 1.0


class Silence:
    """The time since the first of the requests that have not succeeded; one thread notes, and another looks."""

    def __init__(self, text: str, now: Callable[[], float]) -> None:
        self._text = text
        self._now = now
        self._since_s: float | None = None
        self._reason = ""
        self._is_told = False

    def __repr__(self) -> str:
        return f"<Silence: {self._text} since {self._since_s}>"

    def begin(self, reason: str) -> None:
        """A request begins; the reason is what to say if it never ends."""
        if self._since_s is None:
            self._reason, self._is_told, self._since_s = reason, False, self._now()

    def failed(self, reason: str) -> None:
        """A request has failed, and may succeed if it is repeated."""
        self._reason = reason

    def end(self) -> None:
        """There is an answer."""
        self._since_s = None

    def look(self) -> str | None:
        """The fault, once for each silence that lasts too long."""
        since_s = self._since_s
        if since_s is None or self._is_told or self._now() - since_s < SILENT_S:
            return None
        self._is_told = True
        return f"{self._text} for {SILENT_S:.0f} s: {self._reason}"


class HeardStore:
    """A store whose answers end a silence."""

    def __init__(self, store: ObjectStore, url: str, now: Callable[[], float]) -> None:
        self._store = store
        self._no_answer = f"{url}: it does not answer"
        self.silence = Silence("no request to the store has succeeded", now)

    def __repr__(self) -> str:
        return f"<HeardStore of {self._store!r}>"

    def create(self, key: str, data: bytes) -> Created:
        self.silence.begin(self._no_answer)
        created = self._store.create(key, data)
        if created.outcome is Outcome.UNKNOWN and not created.is_refused:
            self.silence.failed(created.fault)
        else:
            self.silence.end()
        return created

    def get(self, key: str) -> bytes:
        with self._asking():
            return self._store.get(key)

    def get_range(self, key: str, start: int, end: int) -> Bytes:
        with self._asking():
            return self._store.get_range(key, start, end)

    def stat(self, key: str) -> Stored:
        with self._asking():
            return self._store.stat(key)

    def list(self, prefix: str = "") -> Iterator[Stored]:
        return self._each(self._store.list(prefix))

    def folders(self, prefix: str) -> Iterator[str]:
        with self._asking():
            return iter(list(self._store.folders(prefix)))

    def delete(self, key: str) -> None:
        with self._asking():
            self._store.delete(key)

    def _each(self, found: Iterator[Stored]) -> Iterator[Stored]:
        """They come in pages, each with a request."""
        while True:
            with self._asking():
                one = next(found, None)
            if one is None:
                return
            yield one

    @contextmanager
    def _asking(self) -> Iterator[None]:
        self.silence.begin(self._no_answer)
        try:
            yield
        except (StoreRefusal, FileNotFoundError):
            self.silence.end()
            raise
        except StoreError as error:
            self.silence.failed(str(error))
            raise
        self.silence.end()


class HeardDisk:
    """The disk of the data folders, whose answers end a silence."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.silence = Silence("the disk has not answered", now)

    def __repr__(self) -> str:
        return f"<HeardDisk: {self.silence!r}>"

    def storage(self) -> HeardStorage:
        """A storage that knows nothing of earlier looks."""
        return HeardStorage(self)

    @contextmanager
    def reading(self, path: str) -> Iterator[None]:
        self.silence.begin(f"reading {path}")
        try:
            yield
        finally:
            self.silence.end()


class HeardStorage(ReadOnlyStorage):
    """What a round reads of a disk."""

    def __init__(self, disk: HeardDisk) -> None:
        super().__init__()
        self._disk = disk

    def list_dir(self, path: str) -> list[str]:
        with self._disk.reading(path):
            return super().list_dir(path)

    def exists(self, path: str) -> bool:
        with self._disk.reading(path):
            return super().exists(path)

    def is_dir(self, path: str) -> bool:
        with self._disk.reading(path):
            return super().is_dir(path)

    def stat(self, path: str) -> tuple[int, int]:
        with self._disk.reading(path):
            return super().stat(path)

    def read_all(self, path: str) -> bytes:
        with self._disk.reading(path):
            return super().read_all(path)

    def open(self, path: str) -> File:
        return HeardFile(self, path, self._disk)


class HeardFile(ReadOnlyFile):
    """A file on a disk whose answers end a silence."""

    __slots__ = ("_disk",)

    def __init__(self, storage: HeardStorage, path: str, disk: HeardDisk) -> None:
        super().__init__(storage, path)
        self._disk = disk

    def pread(self, size: int, position: int) -> bytes:
        with self._disk.reading(self.path):
            return super().pread(size, position)


def look_on(
    silences: Sequence[Silence], say: Callable[[dict[str, Any]], object], sleep: Callable[[float], None]
) -> None:
    """Say each silence that lasts too long, and with each look that the process lives, until it ends."""
    while True:
        sleep(LOOK_EVERY_S)
        say({"alive": True})
        for silence in silences:
            fault = silence.look()
            if fault is not None:
                say({"fault": fault})
