"""The modes of new files and folders, which limit access by other users, and the check for existing ones with wider modes.

Folders are for the owner and the group, which may read segments and nothing else of value. Files that may hold secrets (the record
of the cluster and its journal) are for the owner alone, and so is the lock file, because any user that can open it can hold it. An
umask may narrow this.
"""

# Paths are plain strings, as in the storage.
# ruff: noqa: PTH116, PTH112, PTH119, PTH208
from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Final

FOLDER: Final = 0o750
FILE: Final = 0o640
PRIVATE: Final = 0o600
_PRIVATE_NAMES: Final = ("horolog-", ".lock")
"""The beginnings of names: copies set aside, and files being written aside, have an additional suffix."""


def of_file(path: str) -> int:
    """The mode of a new file."""
    return PRIVATE if os.path.basename(path).startswith(_PRIVATE_NAMES) else FILE


def narrow(descriptor: int, path: str) -> None:
    """Narrow a file that an earlier process left wider than a new one. Raises OSError.

    Only its owner may do so. A file of another owner stays as it is, unless it may hold secrets.
    """
    found, allowed = stat.S_IMODE(os.fstat(descriptor).st_mode), of_file(path)
    if found & ~allowed:
        try:
            os.fchmod(descriptor, found & allowed)
        except PermissionError:
            if allowed == PRIVATE:
                raise


def of_folder(path: str) -> dict[str, int]:
    """The widest allowed modes of a data folder and of its files for the owner alone; empty if it cannot be read."""
    with suppress(OSError):
        names = [name for name in os.listdir(path) if name.startswith(_PRIVATE_NAMES)]
        files = [f"{path}/{name}" for name in names if not os.path.isdir(f"{path}/{name}")]
        return {path: FOLDER, **dict.fromkeys(sorted(files), PRIVATE)}
    return {}


def wider(allowed: Mapping[str, int]) -> dict[str, int]:
    """The existing paths with a wider mode than allowed, with that mode."""
    found = {}
    for path, most in allowed.items():
        with suppress(OSError):
            mode = stat.S_IMODE(os.stat(path).st_mode)
            if mode & 0o777 & ~most:
                found[path] = mode
    return found


def advice(found: Iterable[str], allowed: Mapping[str, int]) -> str:
    """The command that narrows them to the allowed modes."""
    by_mode: dict[int, list[str]] = {}
    for path in found:
        by_mode.setdefault(allowed[path], []).append(shlex.quote(path))
    return " && ".join(f"chmod {mode:o} {' '.join(paths)}" for mode, paths in by_mode.items())


def told(allowed: Mapping[str, int]) -> str | None:
    """One line about paths that other users should not be able to read, with the command that narrows them."""
    found = wider(allowed)
    if not found:
        return None
    shown = ", ".join(f"{path} ({mode:04o})" for path, mode in found.items())
    return f"others on this machine may read {shown}; {advice(found, allowed)}"
