"""A table's files in a file system that a URL names (`file_systems`): in HDFS a file is created once, by a rename that replaces nothing.

Others create a file only if it is absent through fsspec; `check` finds those that cannot, which are only read.
"""

import io
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from horolog.pipeline.stores.file_systems import HDFS, FileSystemPlace
from horolog.pipeline.stores.store import AtPlace, Download, Files, Listed, Upload
from horolog.stores.faults import StoreError

_CHANGED = ("modification_time", "modificationTime", "mtime", "last_modified", "LastModified", "created")


class FileSystemStore(AtPlace[FileSystemPlace]):
    """A folder of a file system."""

    at_once = 8

    def _make_parent(self, path: str) -> None:
        self.opened.makedirs(path.rpartition("/")[0], exist_ok=True)

    # -- small files

    def create(self, name: str, data: bytes) -> bool:
        path = self.place.path(name)
        with self.place.told():
            self._make_parent(path)
            try:
                if self.place.scheme in HDFS:
                    self._create_by_rename(path, data)
                else:
                    self.opened.pipe_file(path, data, mode="create")
            except FileExistsError:
                return self.read(name) == data  # the response was lost; the content says who has written the file
        return True

    def _create_by_rename(self, path: str, data: bytes) -> None:
        aside = f"{path}.{uuid.uuid4().hex}.tmp"
        try:
            with self.opened.open(aside, "wb") as file:
                file.write(data)
            self.opened.mv(aside, path)
        except BaseException:
            with suppress(Exception):
                self.opened.rm_file(aside)
            raise

    def replace(self, name: str, data: bytes) -> None:
        path = self.place.path(name)
        aside = f"{path}.{uuid.uuid4().hex}.tmp"
        with self.place.told():
            self._make_parent(path)
            with self.opened.open(aside, "wb") as file:
                file.write(data)
            self.opened.mv(aside, path, overwrite=True)

    def read(self, name: str) -> bytes | None:
        try:
            with self.place.told(), self.opened.open(self.place.path(name), "rb") as file:
                return bytes(file.read())
        except FileNotFoundError:
            return None

    def names(self, folder: str) -> list[str]:
        return sorted(name for name in self._in(folder, "file") if not name.endswith(".tmp"))

    def folders(self, folder: str) -> list[str]:
        return sorted(self._in(folder, "directory"))

    def _in(self, folder: str, kind: str) -> list[str]:
        try:
            with self.place.told():
                self.opened.invalidate_cache()
                found = self.opened.ls(self.place.path(folder), detail=True)
        except FileNotFoundError:
            return []
        return [each["name"].rstrip("/").rpartition("/")[2] for each in found if each["type"] == kind]

    def remove(self, name: str) -> None:
        with suppress(FileNotFoundError), self.place.told():
            self.opened.rm_file(self.place.path(name))

    # -- files of rows

    def check(self) -> None:
        """Raise StoreError unless a second write of a name that is there is refused; then nothing here would be safe."""
        probe = f"probe-{uuid.uuid4().hex}"
        try:
            is_safe = self.create(probe, b"1") and not self.create(probe, b"2")
        except StoreError as error:
            if self.place.scheme in HDFS:
                raise
            raise StoreError(f"{error}: this file system cannot create a file only if it does not exist") from None
        finally:
            with suppress(StoreError):
                self.remove(probe)
        if not is_safe:
            raise StoreError(
                f"{self.place.url}: creating a file overwrites an existing one, so two jobs could overwrite each other's work"
            )

    def files(self, folder: str) -> dict[str, int]:
        return {name: each.size_bytes for name, each in self.listed(folder).items()}

    def listed(self, folder: str) -> dict[str, Listed]:
        own = len(self.place.path("").rstrip("/")) + 1

        def pass_over_gone(error: Exception) -> None:
            if not isinstance(error, FileNotFoundError):
                raise error

        with self.place.told():
            self.opened.invalidate_cache()
            found = self.opened.find(self.place.path(folder), detail=True, on_error=pass_over_gone)
        return {path[own:]: Listed(each["size"], _changed_ms(each), _version(each)) for path, each in found.items()}

    def move(self, name: str, to: Files, target: str) -> bool:
        assert isinstance(to, FileSystemStore)
        path = to.place.path(target)
        try:
            with self.place.told():
                self._make_parent(path)
                self.opened.mv(self.place.path(name), path, overwrite=True)
        except FileNotFoundError:
            return False
        return True

    def remove_folder(self, folder: str) -> None:
        with suppress(FileNotFoundError), self.place.told():
            self.opened.rm(self.place.path(folder), recursive=True)

    def remove_empty(self, folder: str) -> None:
        with suppress(FileNotFoundError, StoreError), self.place.told():
            if not self.opened.ls(self.place.path(folder)):
                self.opened.rmdir(self.place.path(folder))

    def exists(self, name: str) -> bool:
        with suppress(FileNotFoundError), self.place.told():
            self.opened.info(self.place.path(name))
            return True
        return False

    def writer(self, name: str) -> Upload:
        path = self.place.path(name)
        with self.place.told():
            self._make_parent(path)
            return Upload(self.place, self.opened.open(path, "wb"))

    def reader(self, name: str) -> Download:
        with self.place.told():
            size = int(self.opened.info(self.place.path(name))["size"])
        return Download(self, name, size)

    def read_range(self, name: str, start: int, end: int) -> bytes:
        with self.place.told(), self.opened.open(self.place.path(name), "rb") as file:
            file.seek(0, io.SEEK_END)
            if start >= file.tell():
                return b""
            file.seek(start)
            return bytes(file.read(end - start))

    def version(self, name: str) -> str:
        with self.place.told():
            self.opened.invalidate_cache()
            return _version(self.opened.info(self.place.path(name)))


def _version(said: Any) -> str:
    return f"{said['size']} {_changed_ms(said)}"


def _changed_ms(info: Mapping[str, Any]) -> int:
    """When a file last changed; now if unknown, so that it never seems old."""
    found = next((info[name] for name in _CHANGED if info.get(name)), None)
    if isinstance(found, datetime):
        return round(found.timestamp() * 1000)
    if isinstance(found, (int, float)):
        return round(found * 1000) if found < 1e11 else round(found)  # seconds, or milliseconds
    return time.time_ns() // 1_000_000
