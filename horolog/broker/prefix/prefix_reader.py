"""Reads the objects of a prefix, so many at a time, and counts those that it has read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Self, TypeVar

from horolog.broker.bucket.names import number_of
from horolog.stores.object_store import ObjectStore, read_range

Item = TypeVar("Item")
Result = TypeVar("Result")


class PrefixReader:
    """`seen` is called with the size of each object that was read. Methods raise StoreError."""

    def __init__(self, store: ObjectStore, at_once: int, seen: Callable[[int], None] = lambda _: None) -> None:
        self._store = store
        self._threads = ThreadPoolExecutor(at_once, thread_name_prefix="prefix")
        self._seen = seen

    def __repr__(self) -> str:
        return f"<PrefixReader of {self._store!r}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._threads.shutdown(cancel_futures=True)

    def get(self, name: str) -> bytes | None:
        """An object, or None if it is missing."""
        try:
            data = self._store.get(name)
        except FileNotFoundError:
            return None
        self._seen(len(data))
        return data

    def get_range(self, name: str, start: int, end: int) -> bytes | None:
        """The bytes of an object from `start` up to `end`, fewer where it ends; None if it is missing."""
        try:
            data = read_range(self._store, name, start, end)
        except FileNotFoundError:
            return None
        if start == 0:
            self._seen(len(data))
        return data

    def listed(self, folder: str) -> dict[str, int]:
        """The sizes of the objects in a folder by their keys; all objects of the prefix for an empty name."""
        return {one.key: one.size_bytes for one in self._store.list(folder)}

    def numbers(self, folder: str) -> dict[int, int]:
        """The sizes of the numbered objects in a folder."""
        found = ((number_of(name), size) for name, size in self.listed(folder).items())
        return {number: size for number, size in found if number is not None}

    def each(self, work: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """The result of each item, in their order; several are worked on at a time."""
        return list(self._threads.map(work, items))
