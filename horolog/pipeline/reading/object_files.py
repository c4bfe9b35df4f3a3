"""Segment files in an object store, or a file system that a URL names, as the log's storage: nothing is written, and only the ranges that are read are fetched.

The folder is listed once, so that names and sizes cost no request for each file. Planning asks for small pieces next to each other:
a request brings `least_bytes`, and the last ones of a file are kept. Seals, and the ends of logs by which seals know them, are fetched
from many files at once. Tasks fetch the ranges that they ask for, of the versions of files that were planned. `bytes_read` counts what
was fetched.
"""

import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor

from horolog.broker.log.storage import File, FileMissing, ReadOnlyFile, ReadOnlyStorage, StorageFault, parent_of
from horolog.pipeline.stores.object_stores import Place
from horolog.pipeline.stores.store import files_of

LEAST_BYTES = 64 << 10
_KEPT_RANGES = 4
_AT_ONCE = 32


class ObjectFile(ReadOnlyFile):
    """One object; the ranges that were fetched last are kept while it is open."""

    __slots__ = ("_files", "_kept")

    def __init__(self, files: "ObjectFiles", path: str) -> None:
        super().__init__(files, path)
        self._files = files
        self._kept: list[tuple[int, bytes]] = files.edges.get(path, [])

    def pread(self, size: int, position: int) -> bytes:
        for start, data in self._kept:
            if start <= position and position + size <= start + len(data):
                return data[position - start : position - start + size]
        if not size:
            return b""
        data = self._files.fetch(self.path, position, size)
        if self._files.least_bytes:
            self._kept = [(position, data), *self._kept[: _KEPT_RANGES - 1]]
        return data[:size]

    def close(self) -> None:
        self._kept = []

    def __del__(self) -> None:
        """Nothing is open."""


def is_same(planned: str, there: str) -> bool:
    """Whether two versions may be of one file: by size, time, and the ETag, which decides if both have one."""
    (size, time_said, *e_tag), (other_size, other_time, *other_e_tag) = planned.split(), there.split()
    if size != other_size:
        return False
    if e_tag and other_e_tag:
        return e_tag == other_e_tag
    return abs(int(time_said) - int(other_time)) <= 1  # listings know fractions of a second, which some round


class ObjectFiles(ReadOnlyStorage):
    """The files below a place; their paths begin with its URL."""

    def __init__(self, place: Place, least_bytes: int = 0, planned: Mapping[str, str] | None = None) -> None:
        """`planned`: the versions of files to read, by path; a replaced file is a fault."""
        super().__init__()
        self._unchecked = dict(planned or {})
        self.versions: dict[str, str] = {}
        self.place = place
        self.least_bytes = least_bytes
        self._store = files_of(place)
        self._listed: dict[str, tuple[int, int]] | None = None
        self._folders: dict[str, set[str]] = {}
        self._whole: dict[str, bytes] = {}
        self.edges: dict[str, list[tuple[int, bytes]]] = {}

    @property
    def listed(self) -> dict[str, tuple[int, int]]:
        """Size and time of last change in nanoseconds of all files, by path; listed once."""
        if self._listed is None:
            listed = {f"{self.place.url}/{name}": each for name, each in self._store.listed("").items()}
            self.versions = {path: each.version for path, each in listed.items()}
            found = {path: (each.size_bytes, each.changed_ms * 1_000_000) for path, each in listed.items()}
            for path in found:
                child = path
                while child != self.place.url:
                    folder = parent_of(child)
                    self._folders.setdefault(folder, set()).add(child.rpartition("/")[2])
                    child = folder
            self._listed = found
        return self._listed

    def fetch(self, path: str, position: int, size: int, least_bytes: int | None = None) -> bytes:
        """At least this much from there on; StorageFault if the object ends before."""
        end = position + size
        if least := self.least_bytes if least_bytes is None else least_bytes:
            end = max(end, min(position + least, self.stat(path)[0]))
        name = path.removeprefix(self.place.url).strip("/")
        try:
            self._check(path, name)
            data = self._store.read_range(name, position, end)
        except FileNotFoundError:
            raise FileMissing(f"read {path}: the file is gone", path=path) from None
        if len(data) < size:
            raise StorageFault(f"read {path}: ends {size - len(data)} bytes before {position + size}", path=path)
        self.count(path, len(data))
        return data

    def _check(self, path: str, name: str) -> None:
        planned = self._unchecked.pop(path, None)
        if planned is not None and not is_same(planned, there := self._store.version(name)):
            raise StorageFault(f"read {path}: version {planned} was planned, but the store now has {there}", path=path)

    def prefetch(self, paths: Iterable[str]) -> None:
        """Fetch these small files at once, as far as they exist, instead of one after the other."""
        wanted = [path for path in paths if path in self.listed and path not in self._whole]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            self._whole |= dict(zip(wanted, pool.map(self._get, wanted), strict=True))

    def prefetch_edges(self, paths: Iterable[str], size_bytes: int) -> None:
        """Fetch the first and the last bytes of these files, by which seals recognise them."""
        wanted = [path for path in paths if self.stat(path)[0]]

        def edges(path: str) -> list[tuple[int, bytes]]:
            size = self.stat(path)[0]
            starts = {0, max(0, size - size_bytes)}
            return [(start, self.fetch(path, start, min(size_bytes, size - start), 0)) for start in sorted(starts)]

        with ThreadPoolExecutor(_AT_ONCE) as pool:
            self.edges |= dict(zip(wanted, pool.map(edges, wanted), strict=True))

    def _get(self, path: str) -> bytes:
        size = self.stat(path)[0]
        return self.fetch(path, 0, size) if size else b""

    # -- what the log asks of a storage

    def list_dir(self, path: str) -> list[str]:
        if not self.is_dir(path):
            raise FileMissing(f"list {path}: there is no such folder", path=path)
        return sorted(self._folders[path])

    def exists(self, path: str) -> bool:
        return path in self.listed or self.is_dir(path)

    def is_dir(self, path: str) -> bool:
        return bool(self.listed) and path in self._folders

    def stat(self, path: str) -> tuple[int, int]:
        found = self.listed.get(path)
        if found is None:
            raise FileMissing(f"stat {path}: there is no such file", path=path)
        return found

    def read_all(self, path: str) -> bytes:
        if path not in self._whole:
            self.stat(path)
            self._whole[path] = self._get(path)
        return self._whole[path]

    def open(self, path: str) -> File:
        return ObjectFile(self, path)

    def end_of_data(self, path: str) -> int:
        """An object has no room that was taken in advance."""
        return self.stat(path)[0]

    def disk_space(self, path: str) -> tuple[int, int]:  # noqa: ARG002
        return 0, 0

    now_ns = staticmethod(time.time_ns)
