"""Writes and reads the objects of a backup: bytes of many partitions share an object, so a round costs few requests."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from crc32c import crc32c

from horolog.broker.backup.moment import DATA, KeptPiece
from horolog.broker.backup.pacing import BytePace
from horolog.stores.faults import StoreError
from horolog.stores.object_store import Bytes, ObjectStore, Outcome, read_range

OBJECT_BYTES = 16 << 20
ATTEMPTS = 6
FIRST_PAUSE_S = 0.1
SMALL_BYTES = 1 << 20
"""Smaller pieces are read with the whole object that they lie in: the next ones lie there, too."""
KEPT_OBJECTS = 8


class Patient:
    """A store whose creates are tried several times."""

    def __init__(self, store: ObjectStore, sleep: Callable[[float], None]) -> None:
        self.store = store
        self._sleep = sleep

    def __repr__(self) -> str:
        return f"<Patient with {self.store!r}>"

    def create(self, key: str, data: bytes) -> bytes | None:
        """None if the key holds these bytes; else the bytes that it holds. Raises StoreError."""
        fault = ""
        for attempt in range(ATTEMPTS):
            if attempt:
                self._sleep(FIRST_PAUSE_S * 2**attempt)
            created = self.store.create(key, data)
            if created.outcome is Outcome.MADE:
                return None
            if created.outcome is Outcome.TAKEN:
                there = self.store.get(key)
                return None if there == data else there
            fault = created.fault
            if created.is_refused:
                break
        raise StoreError(fault or f"{key} could not be written")


class PieceWriter:
    """Gathers bytes into objects. A piece counts once `flush` has returned."""

    def __init__(self, store: Patient, new_name: Callable[[], str], pace: BytePace) -> None:
        self._store = store
        self._new_name = new_name
        self._pace = pace
        self._parts: list[Bytes] = []
        self._size_bytes = 0
        self._name = new_name()
        self.shipped_bytes = 0

    def __repr__(self) -> str:
        return f"<PieceWriter: {self._size_bytes} bytes wait, {self.shipped_bytes} are shipped>"

    def add(self, data: Bytes) -> KeptPiece:
        """Raises StoreError."""
        if self._parts and self._size_bytes + len(data) > OBJECT_BYTES:
            self.flush()
        piece = KeptPiece(len(data), crc32c(data), self._name, self._size_bytes)
        self._parts.append(data)
        self._size_bytes += len(data)
        return piece

    def flush(self) -> None:
        """Write what was gathered. Raises StoreError, and keeps it for the next attempt."""
        if self._parts:
            self._store.create(f"{DATA}/{self._name}", b"".join(self._parts))
            self.shipped_bytes += self._size_bytes
            self._pace.spent(self._size_bytes)
            self._parts, self._size_bytes, self._name = [], 0, self._new_name()


class LostPiece(Exception):
    """An object is missing, or its bytes are not those that were written; `is_missing` says which."""

    def __init__(self, reason: str, *, is_missing: bool) -> None:
        super().__init__(reason)
        self.is_missing = is_missing


class PieceReader:
    """Reads pieces, and holds each against its checksum."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._objects: OrderedDict[str, bytes] = OrderedDict()

    def __repr__(self) -> str:
        return f"<PieceReader with {len(self._objects)} objects>"

    def read(self, piece: KeptPiece) -> bytes:
        """Raises LostPiece and StoreError."""
        try:
            data = self._read(piece)
        except FileNotFoundError:
            raise LostPiece("it is missing", is_missing=True) from None
        if len(data) != piece.size_bytes or crc32c(data) != piece.crc:
            reason = f"{piece.size_bytes} bytes at {piece.position} are not those that were written"
            raise LostPiece(reason, is_missing=False)
        return data

    def _read(self, piece: KeptPiece) -> bytes:
        end = piece.position + piece.size_bytes
        if piece.size_bytes >= SMALL_BYTES and piece.key not in self._objects:
            return read_range(self._store, piece.key, piece.position, end)
        if piece.key not in self._objects:
            self._objects[piece.key] = self._store.get(piece.key)
            if len(self._objects) > KEPT_OBJECTS:
                self._objects.popitem(last=False)
        self._objects.move_to_end(piece.key)
        return self._objects[piece.key][piece.position : end]
