"""Who else on the machine may read what: the modes with which files and folders are made, and which of those that are there are wider.

Folders are for the owner and the group, which may read segments and nothing else of worth. Files that may hold secrets (what the cluster
knows, and its journal) and the lock, which whoever can open it can hold, are for the owner alone. An umask may narrow this.
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
"""The beginnings: copies that are set aside, and files that are written aside, have an ending more."""


def of_file(path: str) -> int:
    """The mode with which a file is made."""
    return PRIVATE if os.path.basename(path).startswith(_PRIVATE_NAMES) else FILE


def narrow(descriptor: int, path: str) -> None:
    """Narrow a file that an earlier process left wider than a new one is. Raises OSError.

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
    """What a data folder and the files in it that are for the owner alone may have at most; nothing of one that cannot be read."""
    with suppress(OSError):
        names = [name for name in os.listdir(path) if name.startswith(_PRIVATE_NAMES)]
        files = [f"{path}/{name}" for name in names if not os.path.isdir(f"{path}/{name}")]
        return {path: FOLDER, **dict.fromkeys(sorted(files), PRIVATE)}
    return {}


def wider(allowed: Mapping[str, int]) -> dict[str, int]:
    """Those of the paths that are there and have a wider mode, with the one they have."""
    found = {}
    for path, most in allowed.items():
        with suppress(OSError):
            mode = stat.S_IMODE(os.stat(path).st_mode)
            if mode & 0o777 & ~most:
                found[path] = mode
    return found


def advice(found: Iterable[str], allowed: Mapping[str, int]) -> str:
    """The command that makes them as narrow as they may be."""
    by_mode: dict[int, list[str]] = {}
    for path in found:
        by_mode.setdefault(allowed[path], []).append(shlex.quote(path))
    return " && ".join(f"chmod {mode:o} {' '.join(paths)}" for mode, paths in by_mode.items())


def told(allowed: Mapping[str, int]) -> str | None:
    """One line about all that others on this machine may read and should not, with the command that narrows them."""
    found = wider(allowed)
    if not found:
        return None
    shown = ", ".join(f"{path} ({mode:04o})" for path, mode in found.items())
    return f"others on this machine may read {shown}; {advice(found, allowed)}"
