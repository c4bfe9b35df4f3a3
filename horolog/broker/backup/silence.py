"""Notes for how long no request of a backup has succeeded.

A round tries a request for minutes before it fails, because the line may be slow. The broker learns earlier that the store does not answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from horolog.stores.faults import StoreError, StoreRefusal
from horolog.stores.object_store import Bytes, Created, ObjectStore, Outcome, Stored

SILENT_S = 15.0
"""Longer than a small request takes until it is given up."""
LOOK_EVERY_S = 1.0


class Silence:
    """The time since the first of the requests that have not succeeded; one thread notes, and another looks."""

    def __init__(self, url: str, now: Callable[[], float]) -> None:
        self._url = url
        self._now = now
        self._since_s: float | None = None
        self._fault = ""
        self._is_told = False

    def __repr__(self) -> str:
        return f"<Silence of {self._url} since {self._since_s}>"

    def begin(self) -> None:
        """A request begins."""
        if self._since_s is None:
            self._fault, self._is_told, self._since_s = "", False, self._now()

    def failed(self, fault: str) -> None:
        """A request has failed, and may succeed if it is repeated."""
        self._fault = fault

    def end(self) -> None:
        """The store has answered."""
        self._since_s = None

    def look(self) -> str | None:
        """The fault, once for each silence that lasts too long."""
        since_s = self._since_s
        if since_s is None or self._is_told or self._now() - since_s < SILENT_S:
            return None
        self._is_told = True
        reason = self._fault or f"{self._url}: it does not answer"
        return f"no request to the store has succeeded for {SILENT_S:.0f} s: {reason}"


class HeardStore:
    """A store whose answers end a silence."""

    def __init__(self, store: ObjectStore, silence: Silence) -> None:
        self._store = store
        self._silence = silence

    def __repr__(self) -> str:
        return f"<HeardStore of {self._store!r}>"

    def create(self, key: str, data: bytes) -> Created:
        self._silence.begin()
        created = self._store.create(key, data)
        if created.outcome is Outcome.UNKNOWN and not created.is_refused:
            self._silence.failed(created.fault)
        else:
            self._silence.end()
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
        self._silence.begin()
        try:
            yield
        except (StoreRefusal, FileNotFoundError):
            self._silence.end()
            raise
        except StoreError as error:
            self._silence.failed(str(error))
            raise
        self._silence.end()


def look_on(silence: Silence, say: Callable[[str], object], sleep: Callable[[float], None]) -> None:
    """Say each silence that lasts too long, until the process ends."""
    while True:
        sleep(LOOK_EVERY_S)
        fault = silence.look()
        if fault is not None:
            say(fault)
