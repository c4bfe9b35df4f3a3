"""An object store in memory, for tests and simulations: what it answers is so at once, for every thread."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass

from horolog.base.clock import Clock
from horolog.stores.faults import StoreError
from horolog.stores.object_store import Created, Outcome, Stored, as_folder, folders_in


@dataclass(frozen=True, slots=True)
class _Object:
    data: bytes
    last_modified_ms: int


class MemoryStore:
    """Objects by their keys."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._objects: dict[str, _Object] = {}
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"<MemoryStore with {len(self._objects)} objects>"

    def create(self, key: str, data: bytes) -> Created:
        new = _Object(bytes(data), self._clock.wall_ms())
        with self._lock:
            return Created(Outcome.MADE if self._objects.setdefault(key, new) is new else Outcome.TAKEN)

    def get(self, key: str) -> bytes:
        return self._object(key).data

    def get_range(self, key: str, start: int, end: int) -> bytes:
        data = self.get(key)
        if start >= len(data):
            raise StoreError(f"{key}: a range that begins at {start} of {len(data)} bytes")
        return data[start:end]

    def stat(self, key: str) -> Stored:
        found = self._object(key)
        return Stored(key, len(found.data), found.last_modified_ms)

    def list(self, prefix: str = "") -> Iterator[Stored]:
        folder = as_folder(prefix)
        for key, found in list(self._objects.items()):
            if key.startswith(folder):
                yield Stored(key, len(found.data), found.last_modified_ms)

    def folders(self, prefix: str) -> Iterator[str]:
        return folders_in(prefix, self.list(prefix))

    def delete(self, key: str) -> None:
        self._objects.pop(key, None)

    def _object(self, key: str) -> _Object:
        found = self._objects.get(key)
        if found is None:
            raise FileNotFoundError(key)
        return found
