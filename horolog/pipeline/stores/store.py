"""Where a table's files are. Its own records are created only if they do not exist, so that no writer overwrites another's.

Object stores call that a conditional write; on a local file system it is a hard link from a file that is complete
and synced. Commits and locks need nothing more (`Store`). Files of rows are written by tasks, listed, and moved into place
(`Files`). Both travel to tasks. `LocalStore` is here; `object_store` and `file_system_store` are for URLs.
"""

import io
import os
import shutil
import stat
import uuid
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from horolog.pipeline.stores.object_stores import Place, hadoop_options, is_url

OWN = "_horolog"
"""Our own files in a table's folder."""

P = TypeVar("P", bound=Place)


@dataclass(frozen=True, slots=True)
class Listed:
    """The size and the time of a file, as a listing has them."""

    size_bytes: int
    changed_ms: int
    version: str = ""
    """Distinguishes it from a file that replaced it, as `Files.version` does."""


class Store(Protocol):
    def check(self) -> None:
        """Raise StoreError if `create` would not be safe."""

    def create(self, name: str, data: bytes) -> bool:
        """Create the file with this content, durably; False if one of that name exists, which stays unchanged."""

    def replace(self, name: str, data: bytes) -> None:
        """Replace the file with this content: for files that have a single writer."""

    def read(self, name: str) -> bytes | None:
        """The content, None if there is no such file."""

    def names(self, folder: str) -> list[str]:
        """The files in a folder, sorted, without those under way; none if there is no such folder."""

    def remove(self, name: str) -> None:
        """Take the file away, if it is there."""

    def listed(self, folder: str) -> dict[str, Listed]:
        """All files in a folder and in its folders, by their names from here, those under way as well."""


class Sink(Protocol):
    """A file that is being written, and is there once it is closed."""

    size: int

    def write(self, data: Any) -> int: ...
    def close(self) -> None: ...


class Files(Store, Protocol):
    """A store that files of rows are in as well."""

    at_once: int
    """So many of them are moved at a time."""

    def files(self, folder: str) -> dict[str, int]:
        """All files in a folder and in its folders, by their names from here, with their sizes."""

    def folders(self, folder: str) -> list[str]:
        """The folders in a folder, sorted."""

    def exists(self, name: str) -> bool: ...

    def move(self, name: str, to: "Files", target: str) -> bool:
        """Move a file to another store of the same kind; False if it is not there."""

    def remove_folder(self, folder: str) -> None:
        """Take away a folder, if it is there, with all that is in it."""

    def remove_empty(self, folder: str) -> None:
        """Take away a folder, if it is there and nothing is in it."""

    def writer(self, name: str) -> Sink: ...
    def reader(self, name: str) -> Any: ...

    def read_range(self, name: str, start: int, end: int) -> bytes:
        """The bytes from there to there, fewer where the file ends; FileNotFoundError if there is no such file."""

    def version(self, name: str) -> str:
        """Distinguishes the file from one that replaced it; FileNotFoundError if there is no such file."""


def files_of(place: str | Place) -> Files:
    """The files in a folder of this machine, of an object store, or of a file system that a URL names."""
    if isinstance(place, Place):
        from horolog.pipeline.stores.file_system_store import FileSystemStore
        from horolog.pipeline.stores.file_systems import FileSystemPlace
        from horolog.pipeline.stores.object_store import ObjectStore

        if isinstance(place, FileSystemPlace):
            return FileSystemStore(place)
        return ObjectStore(place)
    return LocalStore(Path(place.removeprefix("file://")))


def own_files(place: str | Place) -> Files:
    """Our own files in a table's folder."""
    if isinstance(place, Place):
        return files_of(place / OWN)
    return files_of(str(Path(place.removeprefix("file://")) / OWN))


def place_of(folder: str, spark: Any) -> str | Place:
    """The folder as the user names it, with the options that the session's Hadoop configuration has for it."""
    if not is_url(folder):
        return folder
    return Place.of(folder, hadoop_options(spark, folder))


class LocalStore:
    """A folder of a local file system, or of one that is mounted."""

    at_once = 1

    def __init__(self, root: Path) -> None:
        self.root = root

    def create(self, name: str, data: bytes) -> bool:
        aside = self._write_aside(name, data)
        target = self.root / name
        try:
            target.hardlink_to(aside)
        except FileExistsError:
            return False
        finally:
            aside.unlink(missing_ok=True)
        sync(target.parent)
        return True

    def replace(self, name: str, data: bytes) -> None:
        aside = self._write_aside(name, data)
        aside.replace(self.root / name)
        sync(aside.parent)

    def _write_aside(self, name: str, data: bytes) -> Path:
        target = self.root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        aside = target.with_name(f"{target.name}.{uuid.uuid4().hex}.tmp")
        try:
            aside.write_bytes(data)
            sync(aside)
        except OSError:  # the disk is full, and a rest of each attempt would fill it further
            aside.unlink(missing_ok=True)
            raise
        return aside

    def read(self, name: str) -> bytes | None:
        try:
            return (self.root / name).read_bytes()
        except FileNotFoundError:
            return None

    def names(self, folder: str) -> list[str]:
        return sorted(path.name for path in (self.root / folder).glob("*") if path.suffix != ".tmp")

    def remove(self, name: str) -> None:
        (self.root / name).unlink(missing_ok=True)

    def check(self) -> None:
        """Hard links are made once."""

    def files(self, folder: str) -> dict[str, int]:
        found = (path for path in (self.root / folder).rglob("*") if path.is_file())
        return {str(path.relative_to(self.root)): path.stat().st_size for path in found}

    def listed(self, folder: str) -> dict[str, Listed]:
        found = {}
        for path in (self.root / folder).rglob("*"):
            with suppress(FileNotFoundError):  # moved or deleted meanwhile
                status = path.stat()
                if stat.S_ISREG(status.st_mode):
                    found[str(path.relative_to(self.root))] = Listed(status.st_size, status.st_mtime_ns // 1_000_000)
        return found

    def folders(self, folder: str) -> list[str]:
        return sorted(path.name for path in (self.root / folder).glob("*") if path.is_dir())

    def exists(self, name: str) -> bool:
        return (self.root / name).exists()

    def move(self, name: str, to: Files, target: str) -> bool:
        assert isinstance(to, LocalStore)
        place = to.root / target
        place.parent.mkdir(parents=True, exist_ok=True)
        try:
            (self.root / name).rename(place)
        except FileNotFoundError:
            return False
        sync(place.parent)
        return True

    def remove_folder(self, folder: str) -> None:
        shutil.rmtree(self.root / folder, ignore_errors=True)

    def remove_empty(self, folder: str) -> None:
        with suppress(OSError):
            (self.root / folder).rmdir()

    def writer(self, name: str) -> "LocalSink":
        return LocalSink(self.root / name)

    def reader(self, name: str) -> Any:
        return (self.root / name).open("rb")

    def read_range(self, name: str, start: int, end: int) -> bytes:
        with self.reader(name) as file:
            file.seek(start)
            return bytes(file.read(end - start))

    def version(self, name: str) -> str:
        status = (self.root / name).stat()
        return f"{status.st_size} {status.st_mtime_ns}"


class AtPlace(Generic[P]):
    """Files that a URL names. They travel to tasks as a place, which each process opens for itself."""

    def __init__(self, place: P) -> None:
        self.place = place
        self._opened: Any = None

    def __getstate__(self) -> P:
        return self.place

    def __setstate__(self, place: P) -> None:
        self.place, self._opened = place, None

    @property
    def opened(self) -> Any:
        """What the place's client has opened, once in each process."""
        if self._opened is None:
            self._opened = self.place.open()
        return self._opened


class Download(io.RawIOBase):
    """A file of which only the ranges that are read are fetched."""

    def __init__(self, files: Files, name: str, size: int) -> None:
        self._files = files
        self._name = name
        self._position = 0
        self._size = size

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._position = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        return self._position

    def tell(self) -> int:
        return self._position

    def readinto(self, buffer: Any) -> int:
        end = min(self._position + len(buffer), self._size)
        if end <= self._position:
            return 0
        data = self._files.read_range(self._name, self._position, end)
        buffer[: len(data)] = memoryview(data)
        self._position += len(data)
        return len(data)


class Upload(io.RawIOBase):
    """A file that is being written at a place, to what its client has opened; `size` is how large it has become."""

    def __init__(self, place: Place, opened: Any) -> None:
        self._place = place
        self._opened = opened
        self.size = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        content = bytes(data)
        with self._place.told():
            self._opened.write(content)
        self.size += len(content)
        return len(content)

    def tell(self) -> int:
        return self.size

    def close(self) -> None:
        if not self.closed:
            super().close()
            with self._place.told():
                self._opened.close()


class LocalSink(io.FileIO):
    """A new file that is synced before it is closed."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        super().__init__(path, "xb")
        self.size = 0

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        while len(view):
            view = view[super().write(view) :]
        self.size = self.tell()
        return len(memoryview(data).cast("B"))

    def close(self) -> None:
        if not self.closed:
            os.fsync(self.fileno())
            super().close()


def sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
