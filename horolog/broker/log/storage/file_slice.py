"""Sends a slice of a file to a socket without reading it, at once or when the socket is writable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from horolog.broker.log.storage.faults import StorageFault
from horolog.protocol.primitives import Unread

if TYPE_CHECKING:
    from horolog.broker.log.storage.real_file import RealFile

SENT_IN_A_TURN_BYTES: Final = 8 * 1024 * 1024
"""A peer that takes a slice as quickly as it is sent gets so much of it at once."""


class FileSlice(Unread):
    """A slice of a file that the kernel sends from its page cache, without copying it through this process."""

    __slots__ = ("_edition", "_file", "_kept", "_position", "_size_bytes")

    def __init__(self, file: RealFile, size_bytes: int, position: int) -> None:
        self._file = file
        self._edition = file.edition
        self._kept = -1
        self._size_bytes = size_bytes
        self._position = position

    def __repr__(self) -> str:
        return f"<FileSlice of {self._size_bytes} bytes from {self._position} of {self._file.path}>"

    def __len__(self) -> int:
        return self._size_bytes

    def read(self) -> bytes:
        return self._read(self._size_bytes)

    def take(self, size_bytes: int) -> bytes:
        size_bytes = min(size_bytes, self._size_bytes)
        data = self._read(size_bytes)
        self._position += size_bytes
        self._size_bytes -= size_bytes
        return data

    def _read(self, size_bytes: int) -> bytes:
        self._check()
        try:
            return self._file.read_kept(self._kept, size_bytes, self._position)
        except StorageFault:
            self._file.cannot_be_sent()
            raise

    def send(self, descriptor: int) -> bool:
        """As much as the socket takes, unless its peer takes it as quickly: others have their turn."""
        self._check()
        ends = self._size_bytes - SENT_IN_A_TURN_BYTES
        while self._size_bytes:
            sent = self._file.send(descriptor, self._size_bytes, self._position, self._kept)
            if not sent:
                return False
            self._position += sent
            self._size_bytes -= sent
            if self._size_bytes < ends:
                return not self._size_bytes
        return True

    def keep(self) -> bool:
        if self._kept < 0:
            self._kept = self._file.keep()
        return self._kept >= 0

    def let_go(self) -> None:
        if self._kept >= 0:
            kept, self._kept = self._kept, -1
            self._file.let_go(kept)

    def _check(self) -> None:
        if self._edition != self._file.edition:
            path = self._file.path
            raise StorageFault(f"send {path}: its end was lost or rewritten after the response began", path=path)
