"""A file of the operating system: calls on its descriptor, which is opened on first use; see `storage` for what the log relies on."""

from __future__ import annotations

# ruff: noqa: PTH116
import errno
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mypy_extensions import mypyc_attr

from horolog.broker.log.storage.faults import FileMissing, StorageFault, fault
from horolog.broker.log.storage.file_slice import FileSlice
from horolog.broker.log.storage.reservation import reserve
from horolog.protocol.primitives import Buffer, Unread

if TYPE_CHECKING:
    from horolog.broker.log.storage.storage import RealStorage

CAN_SEND = hasattr(os, "sendfile")

NOT_WRITABLE = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})
"""Errors of files that can be read at most, not written."""
_NOT_OPEN_FOR_WRITING = frozenset({errno.EBADF, errno.EINVAL})

MAX_BUFFERS_PER_WRITE = 1024
"""The limit of one `pwritev` (IOV_MAX on Linux)."""

JOIN_BELOW_BYTES = 32 * 1024
"""Many small buffers are joined up to this size: one copy is cheaper than a long vector."""


@mypyc_attr(allow_interpreted_subclasses=True)
class RealFile:
    """See the module's docstring."""

    __slots__ = (
        "_descriptor",
        "_identity",
        "_may_be_sent",
        "_shown_bytes",
        "_storage",
        "_unwritable",
        "edition",
        "path",
        "used",
    )

    def __init__(self, storage: RealStorage, path: str) -> None:
        self._storage = storage
        self._descriptor = -1
        self._identity: tuple[int, int] | None = None
        """Device and inode, once it has been opened."""
        self._unwritable = 0
        """Why it is open for reading only: the operating system's error number."""
        self._may_be_sent = CAN_SEND
        """Until sending has failed once: then the file is read, so that a fault is known before a response begins."""
        self._shown_bytes = 0
        """The end of the furthest slice handed out."""
        self.edition = 0
        """The edition that slices belong to: those of an older one are not sent."""
        self.path = path
        self.used = False

    def __repr__(self) -> str:
        return f"<RealFile {self.path} {'open' if self._descriptor >= 0 else 'closed'}>"

    def pread(self, size: int, position: int) -> bytes:
        descriptor = self._descriptor
        if descriptor < 0:
            descriptor = self._open()
        self.used = True
        try:
            data = os.pread(descriptor, size, position)
            if len(data) == size:
                return data
            return self._read_rest(descriptor, data, size, position)
        except OSError as error:
            raise fault("read", self.path, error) from error

    def _read_rest(self, descriptor: int, data: bytes, size: int, position: int) -> bytes:
        parts = [data]
        missing = size - len(data)
        while missing:
            more = os.pread(descriptor, missing, position + size - missing)
            if not more:
                raise StorageFault(f"read {self.path}: ends {missing} bytes before {position + size}", path=self.path)
            parts.append(more)
            missing -= len(more)
        return b"".join(parts)

    def unread(self, size: int, position: int) -> Unread | None:
        if not self._may_be_sent:
            return None
        self._shown_bytes = max(self._shown_bytes, position + size)
        return FileSlice(self, size, position)

    def withdraw(self) -> None:
        self.edition += 1
        self._shown_bytes = 0

    def keep(self) -> int:
        """A descriptor to pass to `let_go`; -1 if too many are kept, and this file is opened by its name again."""
        if self._descriptor < 0:
            self._open()
        return self._storage.keep(self)

    def let_go(self, descriptor: int) -> None:
        self._storage.let_go(descriptor)

    def read_kept(self, kept: int, size: int, position: int) -> bytes:
        """Like `pread`, from the kept descriptor if there is one."""
        if kept < 0:
            return self.pread(size, position)
        try:
            return self._read_rest(kept, b"", size, position)
        except OSError as error:
            raise fault("read", self.path, error) from error

    def cannot_be_sent(self) -> None:
        """Read the file from now on, so that a fault is known before a response begins."""
        self._may_be_sent = False

    def send(self, socket: int, size: int, position: int, kept: int = -1) -> int:
        """Send, from the kept descriptor if there is one; returns the bytes sent, 0 if the socket is full or broken."""
        descriptor = self._descriptor if kept < 0 else kept
        if descriptor < 0:
            descriptor = self._open()
        self.used = True
        try:
            sent = os.sendfile(socket, descriptor, position, size)
        except (BlockingIOError, ConnectionError):
            return 0
        except OSError as error:
            self._may_be_sent = False
            raise fault("send", self.path, error) from error
        if not sent:
            self._may_be_sent = False
            raise StorageFault(f"send {self.path}: ends {size} bytes before {position + size}", path=self.path)
        return sent

    def pwritev(self, buffers: Sequence[Buffer], position: int) -> None:
        descriptor = self._descriptor
        if descriptor < 0:
            descriptor = self._open()
        self.used = True
        try:
            if len(buffers) == 1:
                buffer = buffers[0]
                written = os.pwrite(descriptor, buffer, position)
                if written != len(buffer):
                    write_all(descriptor, [memoryview(buffer)[written:]], position + written)
            else:
                write_all(descriptor, buffers, position)
        except OSError as error:
            raise self._not_written("write", error) from error

    def truncate(self, size: int) -> None:
        descriptor = self._descriptor if self._descriptor >= 0 else self._open()
        if size < self._shown_bytes:
            self.withdraw()
        try:
            os.ftruncate(descriptor, size)
        except OSError as error:
            raise self._not_written("truncate", error) from error

    def allocate(self, size: int) -> None:
        """Reserve blocks up to `size`, so that later writes cannot fail for lack of space."""
        descriptor = self._descriptor if self._descriptor >= 0 else self._open()
        try:
            os.posix_fallocate(descriptor, 0, size)
        except OSError as error:
            raise self._not_written("allocate", error) from error

    def reserve(self, position: int, size: int) -> bool:
        return reserve(self._descriptor if self._descriptor >= 0 else self._open(), position, size)

    def datasync(self) -> None:
        try:
            descriptor = self._storage.hold(self)
            try:
                os.fdatasync(descriptor)
            finally:
                self._storage.let_go(descriptor)
        except OSError as error:
            self.withdraw()  # the kernel may have dropped pages that it could not write
            raise fault("sync", self.path, error) from error

    def size(self) -> int:
        try:
            return os.stat(self.path if self._descriptor < 0 else self._descriptor).st_size
        except OSError as error:
            raise fault("stat", self.path, error) from error

    def check_in_place(self) -> None:
        """Raises FileMissing if its name is gone, or stands for another file. Safe in a worker thread."""
        try:
            status = os.stat(self.path)
        except OSError as error:
            raise fault("stat", self.path, error) from error
        self._check_identity(status)

    def _check_identity(self, status: os.stat_result) -> None:
        if self._identity is not None and self._identity != (status.st_dev, status.st_ino):
            raise FileMissing(f"{self.path} is gone: another file has its name", path=self.path)

    def close(self) -> None:
        self._storage.forget(self)

    def _not_written(self, operation: str, error: OSError) -> StorageFault:
        if self._unwritable and error.errno in _NOT_OPEN_FOR_WRITING:
            error = OSError(self._unwritable, os.strerror(self._unwritable))
        return fault(operation, self.path, error)

    def _open(self) -> int:
        try:
            return self._storage.open_descriptor(self)
        except OSError as error:
            raise fault("open", self.path, error) from error

    # Called by RealStorage only.
    def open_by_name(self, *, read_only: bool) -> int:
        """A descriptor, for the same file as before if it was opened before; for reading if it may not be written."""
        try:
            descriptor = -1 if read_only else os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            if error.errno not in NOT_WRITABLE:
                raise
            descriptor, self._unwritable = -1, error.errno
        if descriptor < 0:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self.recognise(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def recognise(self, descriptor: int) -> None:
        status = os.fstat(descriptor)
        self._check_identity(status)
        self._identity = status.st_dev, status.st_ino

    # Called by RealStorage only, under its lock.
    def descriptor(self) -> int:
        return self._descriptor

    def set_descriptor(self, descriptor: int) -> None:
        self._descriptor = descriptor


def write_all(descriptor: int, buffers: Sequence[Buffer], position: int) -> None:
    """Write every buffer, whatever the kernel takes at a time."""
    pending = _joined(buffers)
    start = 0
    while start < len(pending):
        group = pending[start : start + MAX_BUFFERS_PER_WRITE]
        written = os.pwritev(descriptor, group, position)
        position += written
        for buffer in group:
            if written < len(buffer):
                pending[start] = memoryview(buffer)[written:]
                break
            written -= len(buffer)
            start += 1


def _joined(buffers: Sequence[Buffer]) -> list[Buffer]:
    if sum(map(len, buffers)) <= JOIN_BELOW_BYTES:
        return [b"".join(buffers)]
    return list(buffers)
