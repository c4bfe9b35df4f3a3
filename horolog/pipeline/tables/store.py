"""The small files that a table's own records are in: made only if they are not there, so that no writer overwrites another's.

That is what object stores call a conditional write; on a local file system it is a hard link from a file that is complete
and synced. Commits and locks need nothing more, and no names are taken from one to the other: so a store of
another kind has to do these five things only.
"""

import os
import uuid
from pathlib import Path
from typing import Protocol


class Store(Protocol):
    def create(self, name: str, data: bytes) -> bool:
        """Make the file with this content, durably; False if there is one of that name, which stays as it is."""

    def replace(self, name: str, data: bytes) -> None:
        """Put this content in the file's place: for files that have one writer only."""

    def read(self, name: str) -> bytes | None:
        """The content, None if there is no such file."""

    def names(self, folder: str) -> list[str]:
        """The files in a folder, sorted, without those under way; none if there is no such folder."""

    def remove(self, name: str) -> None:
        """Take the file away, if it is there."""


class LocalStore:
    """A folder of a local file system, or of one that is mounted."""

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
        aside.write_bytes(data)
        sync(aside)
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


def sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
