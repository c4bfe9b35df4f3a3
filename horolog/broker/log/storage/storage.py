"""The only place with file calls: the log's interface to a file system, and the real one behind it.

The rest of `broker.log` uses `Storage` and `File`. `RealStorage` is here; `memory_storage.MemoryStorage` has the same
semantics, remembers what has been synced, and fails on demand.

Choices that the rest of the log relies on:

- Reads are `pread`, never a memory map: a truncated file or a bad sector is an error of one request, not a signal that ends
  the process. A long slice that is sent unchanged is not read at all (`unread`): the kernel sends it from its page cache. If
  that fails, the connection ends, and the file is read from then on. A slice may have to wait for its reader; meanwhile the
  file stays open, even if its name changes (`keep`). A slice is not sent if its bytes may have changed: the file was cut
  before its end, a sync failed, or the log was opened again (`withdraw`).
- `pread` returns exactly the requested bytes or raises; `pwritev` writes everything or raises. After a failed
  write the bytes behind `position` are unknown and the caller truncates.
- A `File` is only a name until it is used: its descriptor is opened on first use, and when more than `max_open_files` are
  open, the least recently used ones are closed (and opened again when needed). So thousands of idle partitions hold no
  descriptors.
- `File.datasync` may run in a worker thread. It holds the descriptor meanwhile: closing the file waits for the sync, so that
  it cannot sync another file that got the same number. A duplicate would do as well, but costs two more calls, at each of which
  the worker releases the interpreter lock and has to wait for it. For a file that is not open a fresh descriptor is synced: the
  kernel reports a failed write-back there if it was not reported yet.
- `open_apart` returns a file with a descriptor that nothing else closes, for a worker thread that reads and writes.
- A file that may only be read is opened for reading; writes to it fail with the reason.
- A file remembers its identity from its first opening: `check_in_place` detects that its name is gone or stands for another file,
  and it is never opened again as that other file.
- When the process or the machine has no descriptors left, idle files are closed to make room, and the call is retried once.
- Every fault of the operating system becomes a `StorageFault`.
"""

# Paths are plain strings here: building Path objects for thousands of partitions costs start-up time.
# ruff: noqa: PTH102, PTH104, PTH106, PTH108, PTH110, PTH112, PTH116, PTH123, PTH208
import errno
import fcntl
import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from horolog.broker.log.storage import file_locks, modes
from horolog.broker.log.storage.faults import FolderInUse, fault
from horolog.broker.log.storage.real_file import NOT_WRITABLE, RealFile, write_all
from horolog.protocol.primitives import Buffer, Unread

MAX_OPEN_FILES = 4096
"""Open descriptors of one storage, or half of the process's limit if that is lower."""

NO_DESCRIPTORS = frozenset({errno.EMFILE, errno.ENFILE})

CANNOT_WRITE = NOT_WRITABLE | {errno.ENOSPC, errno.EDQUOT}
"""Errors while nothing can be written: changes can be kept in memory, and reads go on."""
CLOSED_TO_MAKE_ROOM = 8
"""The number of idle files closed when there are no descriptors left."""

KEPT_SHARE = 4
"""One in this many descriptors may be kept for waiting slices, in addition to the open ones."""

T = TypeVar("T")

TURN_LOOKS = 2_000
TURN_PAUSE_S = 0.001
"""How often a lock that is taken in turn is tried; it is free again after one append, unless its holder hangs."""


class File(Protocol):
    """One file, opened when it is first used."""

    path: str

    def pread(self, size: int, position: int) -> bytes: ...
    def unread(self, size: int, position: int) -> Unread | None:
        """The same bytes as a slice to send to a socket; None if they have to be read."""
        ...

    def withdraw(self) -> None:
        """Stop sending slices that were handed out unread: their bytes may change."""
        ...

    def pwritev(self, buffers: Sequence[Buffer], position: int) -> None: ...
    def truncate(self, size: int) -> None: ...
    def allocate(self, size: int) -> None: ...
    def reserve(self, position: int, size: int) -> bool:
        """Set blocks aside for appends, without a change of size; whether that could be done."""
        ...

    def datasync(self) -> None: ...
    def size(self) -> int: ...
    def check_in_place(self) -> None: ...
    def close(self) -> None: ...


class Lock(Protocol):
    """A lock that this process holds on a folder."""

    def release(self) -> None: ...


class Storage(Protocol):
    """A file system as the log sees it. Paths are strings with `/`, and `now_ns` is the clock that dates files."""

    @property
    def now_ns(self) -> Callable[[], int]: ...

    def open(self, path: str) -> File: ...
    def open_apart(self, path: str, *, create: bool = False) -> File: ...
    def create(self, path: str) -> File: ...
    def list_dir(self, path: str) -> list[str]: ...
    def exists(self, path: str) -> bool: ...
    def is_dir(self, path: str) -> bool: ...
    def stat(self, path: str) -> tuple[int, int]: ...
    def set_mtime_ms(self, path: str, mtime_ms: int) -> None: ...
    def rename(self, old: str, new: str) -> None: ...
    def remove(self, path: str) -> None: ...
    def remove_dir(self, path: str) -> None: ...
    def make_dir(self, path: str) -> None: ...
    def sync_dir(self, path: str) -> None: ...
    def read_all(self, path: str) -> bytes: ...
    def write_atomically(self, path: str, data: bytes, *, synced: bool = True) -> None: ...
    def disk_space(self, path: str) -> tuple[int, int]: ...
    def check_writable(self, path: str) -> None: ...
    def lock(self, path: str) -> Lock: ...
    def lock_in_turn(self, path: str) -> Lock: ...


def parent_of(path: str) -> str:
    """The folder of a path."""
    return path.rpartition("/")[0] or ("/" if path.startswith("/") else ".")


def default_max_open_files() -> int:
    """Half of the descriptors this process may have, so that sockets keep the other half."""
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MAX_OPEN_FILES if soft == resource.RLIM_INFINITY else max(16, min(MAX_OPEN_FILES, soft // 2))


class _RealLock:
    __slots__ = ("_descriptor",)

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def release(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def fileno(self) -> int:
        """The descriptor that holds the lock: a process that inherits it also holds the lock."""
        return self._descriptor


class DiskLooks:
    """The read-only operations of a storage over the disk that keep no file open."""

    now_ns = staticmethod(time.time_ns)

    def list_dir(self, path: str) -> list[str]:
        try:
            return os.listdir(path)
        except OSError as error:
            raise fault("list", path, error) from error

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def is_dir(self, path: str) -> bool:
        return os.path.isdir(path)

    def stat(self, path: str) -> tuple[int, int]:
        """Size in bytes and time of last change in nanoseconds."""
        try:
            status = os.stat(path)
        except OSError as error:
            raise fault("stat", path, error) from error
        return status.st_size, status.st_mtime_ns

    def read_all(self, path: str) -> bytes:
        try:
            with open(path, "rb", buffering=0) as file:
                return file.read()
        except OSError as error:
            raise fault("read", path, error) from error

    def disk_space(self, path: str) -> tuple[int, int]:
        """The total bytes of the file system, and those that this user may still use."""
        try:
            status = os.statvfs(path)
        except OSError as error:
            raise fault("stat", path, error) from error
        return status.f_blocks * status.f_frsize, status.f_bavail * status.f_frsize


class RealStorage(DiskLooks):
    """The operating system's file system; with `read_only` files are opened for reading and locks are shared."""

    def __init__(self, max_open_files: int | None = None, *, read_only: bool = False) -> None:
        self.max_open_files = max_open_files or default_max_open_files()
        self.read_only = read_only
        self._open_files: dict[RealFile, None] = {}
        self._guard = threading.Lock()
        self._held: dict[int, int] = {}
        """The number of users of each held descriptor."""
        self._dropped: set[int] = set()
        """The held descriptors that their last user has to close."""

    def __repr__(self) -> str:
        return f"<RealStorage {len(self._open_files)} of {self.max_open_files} files open>"

    @property
    def open_files(self) -> int:
        return len(self._open_files)

    def open(self, path: str) -> RealFile:
        return RealFile(self, path)

    def create(self, path: str) -> RealFile:
        """An empty file, created or truncated."""
        try:
            descriptor = self._with_room(lambda: _made(path))
        except OSError as error:
            raise fault("create", path, error) from error
        file = RealFile(self, path)
        file.recognise(descriptor)
        with self._guard:
            self._adopt(file, descriptor)
        return file

    def open_descriptor(self, file: RealFile) -> int:
        """Open the descriptor of a file on first use; closes others when too many are open."""
        descriptor = self._with_room(lambda: file.open_by_name(read_only=self.read_only))
        with self._guard:
            self._adopt(file, descriptor)
        return descriptor

    def open_apart(self, path: str, *, create: bool = False) -> RealFile:
        """A file whose descriptor is its own until it is closed: safe to read and write in a worker thread."""
        file = RealFile(self, path)
        try:
            descriptor = self._with_room(lambda: _made(path) if create else file.open_by_name(read_only=self.read_only))
        except OSError as error:
            raise fault("create" if create else "open", path, error) from error
        file.set_descriptor(descriptor)
        return file

    def _with_room(self, call: Callable[[], T]) -> T:
        """Make a call that needs a descriptor; if none is left, close idle files and retry."""
        try:
            return call()
        except OSError as error:
            if error.errno not in NO_DESCRIPTORS or threading.current_thread() is not threading.main_thread():
                raise  # the files belong to the main thread: it may be reading one of them
        with self._guard:
            for _ in range(min(CLOSED_TO_MAKE_ROOM, len(self._open_files))):
                self._close_idlest(None)
        return call()

    def _adopt(self, file: RealFile, descriptor: int) -> None:
        file.set_descriptor(descriptor)
        file.used = False
        self._open_files[file] = None
        while len(self._open_files) > self.max_open_files:
            self._close_idlest(file)

    def _close_idlest(self, spare: RealFile | None) -> None:
        """Close one idle file by second chance: a file used since the last pass is skipped once."""
        for _ in range(2 * len(self._open_files)):
            candidate = next(iter(self._open_files))
            del self._open_files[candidate]
            if candidate is spare or candidate.used:
                candidate.used = candidate is spare
                self._open_files[candidate] = None
                continue
            descriptor = candidate.descriptor()
            candidate.set_descriptor(-1)
            if not self._is_put_off(descriptor):
                os.close(descriptor)
            return

    def hold(self, file: RealFile) -> int:
        """A descriptor that stays open until it is let go: for a worker thread."""
        with self._guard:
            descriptor = file.descriptor()
            if descriptor >= 0:
                self._held[descriptor] = self._held.get(descriptor, 0) + 1
                return descriptor
        return file.open_by_name(read_only=self.read_only)

    def keep(self, file: RealFile) -> int:
        """Like `hold`, for an open file; -1 if too many descriptors are held already."""
        with self._guard:
            descriptor, held = file.descriptor(), self._held
            if descriptor in held or len(held) < max(1, self.max_open_files // KEPT_SHARE):
                held[descriptor] = held.get(descriptor, 0) + 1
                return descriptor
        return -1

    def let_go(self, descriptor: int) -> None:
        with self._guard:
            holders = self._held.pop(descriptor, 0)
            if holders > 1:
                self._held[descriptor] = holders - 1
                return
            if holders and descriptor not in self._dropped:
                return
            self._dropped.discard(descriptor)
        os.close(descriptor)

    def _is_put_off(self, descriptor: int) -> bool:
        """Whether the last user of a descriptor without a file closes it later; called under the lock."""
        if descriptor in self._held:
            self._dropped.add(descriptor)
            return True
        return False

    def forget(self, file: RealFile) -> None:
        with self._guard:
            self._open_files.pop(file, None)
            descriptor = file.descriptor()
            file.set_descriptor(-1)
            is_closed_here = descriptor >= 0 and not self._is_put_off(descriptor)
        if is_closed_here:
            os.close(descriptor)

    def set_mtime_ms(self, path: str, mtime_ms: int) -> None:
        """Give a file the time of the one that it replaces."""
        try:
            os.utime(path, ns=(mtime_ms * 1_000_000, mtime_ms * 1_000_000))
        except OSError as error:
            raise fault("touch", path, error) from error

    def rename(self, old: str, new: str) -> None:
        try:
            os.rename(old, new)
        except OSError as error:
            raise fault("rename", old, error) from error

    def remove(self, path: str) -> None:
        try:
            os.unlink(path)
        except OSError as error:
            raise fault("remove", path, error) from error

    def remove_dir(self, path: str) -> None:
        try:
            os.rmdir(path)
        except OSError as error:
            raise fault("remove", path, error) from error

    def make_dir(self, path: str) -> None:
        try:
            os.mkdir(path, modes.FOLDER)
        except OSError as error:
            raise fault("make", path, error) from error

    def sync_dir(self, path: str) -> None:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise fault("sync", path, error) from error

    def write_atomically(self, path: str, data: bytes, *, synced: bool = True) -> None:
        """Write aside, sync, rename over the old file, sync the folder: after a crash the file is old or new, never a mixture.

        Without the syncs this is so only until a power cut.
        """
        aside = path + ".tmp"
        try:
            descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, modes.of_file(path))
            try:
                modes.narrow(descriptor, path)
                write_all(descriptor, [data], 0)
                if synced:
                    os.fsync(descriptor)
            finally:
                os.close(descriptor)
            os.rename(aside, path)
        except OSError as error:
            raise fault("write", path, error) from error
        if synced:
            self.sync_dir(parent_of(path))

    def check_writable(self, path: str) -> None:
        """Raises StorageFault if this user, or any user, may not write to a file or folder."""
        if os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
            return
        try:
            is_read_only = os.statvfs(path).f_flag & os.ST_RDONLY
        except OSError as error:
            raise fault("write", path, error) from error
        code = errno.EROFS if is_read_only else errno.EACCES
        raise fault("write", path, OSError(code, os.strerror(code)))

    def lock(self, path: str) -> _RealLock:
        """Lock `path` until released or until the process ends: exclusively, or shared with other readers.

        Two locks are taken: `flock`, which also refuses a second broker inside one process, and the POSIX record lock that Kafka
        takes on the same file, so that neither opens a folder that the other uses. `file_locks` says when the call waits.
        """
        flags, kind = (os.O_RDONLY, fcntl.LOCK_SH) if self.read_only else (os.O_RDWR | os.O_CREAT, fcntl.LOCK_EX)
        try:
            descriptor = os.open(path, flags | os.O_CLOEXEC, modes.of_file(path))
        except OSError as error:
            raise fault("lock", path, error) from error
        try:
            file_locks.take(descriptor, kind)
        except OSError as error:
            os.close(descriptor)
            if error.errno in (errno.EAGAIN, errno.EACCES):
                raise FolderInUse(
                    f"lock {path}: another broker has this folder open", path=path, code=errno.EAGAIN
                ) from error
            raise fault("lock", path, error) from error
        return _RealLock(descriptor)

    def lock_in_turn(self, path: str) -> Lock:
        """Lock an existing file once it is free; each holder needs it for one short step. Raises FolderInUse if that takes too long.

        A holder may replace the file: a caller that has waited for the old one then waits for the new one.
        """
        for _ in range(TURN_LOOKS):
            try:
                descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                        return _RealLock(descriptor)
                except BaseException:
                    os.close(descriptor)
                    raise
                os.close(descriptor)
            except BlockingIOError:
                time.sleep(TURN_PAUSE_S)
            except OSError as error:
                raise fault("lock", path, error) from error
        raise FolderInUse(f"lock {path}: another process does not let it go", path=path, code=errno.EAGAIN)


def _made(path: str) -> int:
    """The descriptor of an empty file, created or truncated."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, modes.of_file(path))
    try:
        modes.narrow(descriptor, path)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
