"""Requests to an object store that do not wait where they are made: each calls back once, whatever became of it.

A request without an answer calls back as UNKNOWN, or with a StoreError, and may still arrive. `ThreadedRequests` sends requests of any
store from threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from typing import Any, Protocol, TypeVar

from horolog.stores.faults import StoreError
from horolog.stores.object_store import Bytes, Created, ObjectStore, Stored

Result = TypeVar("Result")

Got = bytes | None | StoreError
"""The bytes of an object; None if it is missing; or why that is not known."""
GotPart = Bytes | None | StoreError
"""The same for a part of an object."""
Listing = Sequence[Stored] | StoreError
Folders = Sequence[str] | StoreError
Deleted = StoreError | None
Deliver = Callable[[Callable[[], None]], Any]
"""Runs a callback where it belongs: `loop.call_soon_threadsafe`."""


class StoreRequests(Protocol):
    """An object store whose answers come later; no call raises."""

    def create(self, key: str, data: bytes, done: Callable[[Created], None]) -> None: ...
    def get(self, key: str, done: Callable[[Got], None]) -> None: ...
    def get_range(self, key: str, start: int, end: int, done: Callable[[GotPart], None]) -> None: ...
    def list(self, prefix: str, done: Callable[[Listing], None], limit: int | None = None) -> None:
        """With a limit at most so many of the objects, any of them."""

    def folders(self, prefix: str, done: Callable[[Folders], None]) -> None: ...
    def delete(self, key: str, done: Callable[[Deleted], None]) -> None: ...


class ThreadedRequests:
    """Requests to a store that waits, a few at a time."""

    def __init__(self, store: ObjectStore, deliver: Deliver, at_once: int) -> None:
        self._store = store
        self._deliver = deliver
        self._threads = ThreadPoolExecutor(at_once, thread_name_prefix="store")

    def create(self, key: str, data: bytes, done: Callable[[Created], None]) -> None:
        self._send(partial(self._store.create, key, data), done)

    def get(self, key: str, done: Callable[[Got], None]) -> None:
        self._send(partial(_got, partial(self._store.get, key)), done)

    def get_range(self, key: str, start: int, end: int, done: Callable[[GotPart], None]) -> None:
        self._send(partial(_got, partial(self._store.get_range, key, start, end)), done)

    def list(self, prefix: str, done: Callable[[Listing], None], limit: int | None = None) -> None:
        self._send(partial(_whole, lambda: islice(self._store.list(prefix), limit)), done)

    def folders(self, prefix: str, done: Callable[[Folders], None]) -> None:
        self._send(partial(_whole, partial(self._store.folders, prefix)), done)

    def delete(self, key: str, done: Callable[[Deleted], None]) -> None:
        self._send(partial(_deleted, self._store, key), done)

    def close(self) -> None:
        """Wait until all requests have their answers. Later ones are refused."""
        self._threads.shutdown()

    def _send(self, request: Callable[[], Result], done: Callable[[Result], None]) -> None:
        self._threads.submit(lambda: self._deliver(partial(done, request())))


def _got(read: Callable[[], Result]) -> Result | StoreError | None:
    try:
        return read()
    except FileNotFoundError:
        return None
    except StoreError as error:
        return error


def _whole(read: Callable[[], Iterator[Result]]) -> Sequence[Result] | StoreError:
    try:
        return list(read())
    except StoreError as error:
        return error


def _deleted(store: ObjectStore, key: str) -> Deleted:
    try:
        store.delete(key)
    except StoreError as error:
        return error
    return None
