"""The faults of a disk or file system, as exceptions."""

import errno
import os


class StorageFault(Exception):
    """The disk or the file system failed: the third family of faults, next to clients' faults and bugs."""

    def __init__(self, message: str, *, path: str = "", code: int = 0) -> None:
        super().__init__(message)
        self.path = path
        self.code = code
        """The operating system's error number, 0 if there is none."""


class FileMissing(StorageFault):
    """The file or folder does not exist."""


class NotHere(StorageFault):
    """The bytes lie in a store and are on their way here: a retry helps. `has_failed`: they have been for longer than they should be."""

    def __init__(self, message: str, *, path: str = "", has_failed: bool = False) -> None:
        super().__init__(message, path=path)
        self.has_failed = has_failed


class FolderInUse(StorageFault):
    """Another process holds the lock of this folder."""


class DataFolderError(Exception):
    """A data folder cannot be used; the message says why and what to do."""


def fault(operation: str, path: str, error: OSError) -> StorageFault:
    """The storage fault for an operating system error."""
    code = error.errno or 0
    kind = FileMissing if code == errno.ENOENT else StorageFault
    return kind(f"{operation} {path}: {os.strerror(code) if code else error}", path=path, code=code)
