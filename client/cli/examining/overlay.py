"""A storage that reads real files and keeps every change in memory: recovery can be tried out, and seen at work.

What is copied aside (files whose names `set_aside` gives) is kept as a size only, so that memory does not depend on the damage.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from broker.log import set_aside
from broker.log.storage import Buffer, File, FileMissing, Lock, parent_of
from client.cli.common.read_only import ReadOnlyStorage, refused


@dataclass(slots=True)
class Changed:
    """A file that is not as it lies on the disk: the first `kept_bytes` of `source`, and what was written over them."""

    source: str | None
    kept_bytes: int
    size_bytes: int
    hollow: bool = False
    patches: list[tuple[int, bytes]] = field(default_factory=list)

    def truncate(self, size_bytes: int) -> None:
        self.kept_bytes = min(self.kept_bytes, size_bytes)
        if size_bytes < self.size_bytes:
            self.patches = [(at, data[: size_bytes - at]) for at, data in self.patches if at < size_bytes]
        self.size_bytes = size_bytes

    def write(self, data: bytes, position: int) -> None:
        if not self.hollow:
            self.patches.append((position, data))
        self.size_bytes = max(self.size_bytes, position + len(data))


class OverlayFile:
    """A file of an overlay; like a real one it is a name until it is used."""

    __slots__ = ("_storage", "path")

    def __init__(self, storage: "OverlayStorage", path: str) -> None:
        self._storage = storage
        self.path = path

    def pread(self, size: int, position: int) -> bytes:
        return self._storage.read(self.path, size, position)

    def pwritev(self, buffers: Sequence[Buffer], position: int) -> None:
        self._storage.changing(self.path).write(b"".join(buffers), position)

    def truncate(self, size: int) -> None:
        if size != self.size():
            self._storage.changing(self.path).truncate(size)

    def allocate(self, size: int) -> None:
        self._storage.changing(self.path).truncate(max(size, self.size()))

    def size(self) -> int:
        return self._storage.stat(self.path)[0]

    def datasync(self) -> None:
        """Nothing is to survive."""

    def close(self) -> None:
        self._storage.close_base(self.path)


class NoLock:
    def release(self) -> None:
        """Nothing is held."""


class OverlayStorage(ReadOnlyStorage):
    """See the module's docstring. `changed` has None for files that were removed."""

    def __init__(self) -> None:
        super().__init__()
        self.changed: dict[str, Changed | None] = {}
        self._bases: dict[str, File] = {}
        self._now_ns = time.time_ns()

    def changing(self, path: str) -> Changed:
        """The file, as one that is about to change."""
        if path not in self.changed:
            size_bytes, _ = super().stat(path)
            self.changed[path] = Changed(path, size_bytes, size_bytes)
        changed = self.changed[path]
        if changed is None:
            raise FileMissing(f"open {path}: it was removed", path=path)
        return changed

    def read(self, path: str, size: int, position: int) -> bytes:
        changed = self.changed.get(path)
        if path not in self.changed:
            return self._base(path).pread(size, position)
        if changed is None or position + size > changed.size_bytes:
            raise FileMissing(f"read {path}: it does not reach so far", path=path)
        data = bytearray(size)
        kept = min(max(changed.kept_bytes - position, 0), size)
        if kept and changed.source is not None:
            data[:kept] = self._base(changed.source).pread(kept, position)
        for at, patch in changed.patches:
            start, end = max(at, position), min(at + len(patch), position + size)
            if start < end:
                data[start - position : end - position] = patch[start - at : end - at]
        return bytes(data)

    def _base(self, path: str) -> File:
        if path not in self._bases:
            self._bases[path] = super().open(path)
        return self._bases[path]

    def close_base(self, path: str) -> None:
        base = self._bases.pop(path, None)
        if base is not None:
            base.close()

    def close(self) -> None:
        for path in list(self._bases):
            self.close_base(path)

    # -- what the log asks of a storage

    def open(self, path: str) -> File:
        return OverlayFile(self, path)

    def open_apart(self, path: str) -> File:
        return OverlayFile(self, path)

    def create(self, path: str) -> File:
        name = path.rpartition("/")[2].removesuffix(".tmp")
        self.changed[path] = Changed(None, 0, 0, hollow=set_aside.parse_name(name) is not None)
        return OverlayFile(self, path)

    def list_dir(self, path: str) -> list[str]:
        names = set(super().list_dir(path))
        for changed, content in self.changed.items():
            if parent_of(changed) == path:
                name = changed.rpartition("/")[2]
                (names.discard if content is None else names.add)(name)
        return sorted(names)

    def exists(self, path: str) -> bool:
        return self.changed[path] is not None if path in self.changed else super().exists(path)

    def stat(self, path: str) -> tuple[int, int]:
        if path not in self.changed:
            return super().stat(path)
        changed = self.changed[path]
        if changed is None:
            raise FileMissing(f"stat {path}: it was removed", path=path)
        return changed.size_bytes, self._now_ns

    def read_all(self, path: str) -> bytes:
        if path not in self.changed:
            return super().read_all(path)
        return self.read(path, self.stat(path)[0], 0)

    def write_atomically(self, path: str, data: bytes) -> None:
        self.changed[path] = Changed(None, 0, len(data), patches=[(0, data)])

    def rename(self, old: str, new: str) -> None:
        if self.is_dir(old):
            raise refused("rename", old)
        content = self.changing(old)
        self.changed[old] = None
        self.changed[new] = content

    def remove(self, path: str) -> None:
        self.changing(path)
        self.changed[path] = None

    def set_mtime_ms(self, path: str, mtime_ms: int) -> None:
        """Nothing is kept of it: no decision of recovery rests on it."""

    def lock(self, path: str) -> Lock:  # noqa: ARG002
        return NoLock()

    # -- what has become of it

    def differences(self) -> Iterator[tuple[str, Changed | None]]:
        """Files that are not as they lie on the disk, None for those that are gone. Files that came and went are left out."""
        for path, content in sorted(self.changed.items()):
            if content is not None or super().exists(path):
                yield path, content
