"""The folder of the Unix sockets at which workers are asked: only this user enters it, and paths of sockets have to be short.

Its name follows from the data folder, which one supervisor holds at a time: what an earlier one left is found again and removed.
"""

# Paths are plain strings, as in the storage.
# ruff: noqa: PTH101, PTH102, PTH106, PTH108, PTH208
from __future__ import annotations

import contextlib
import os
import stat
import zlib
from collections.abc import Iterator, Mapping

LONGEST_PATH = 100
"""Of a socket: systems allow 104 to 108 bytes."""
LONGEST_NAME = len("/2147483647.http")
PRIVATE = 0o700


def made(data_dir: str, environ: Mapping[str, str]) -> str:
    """An empty folder for the workers of this data folder. Raises OSError where none can be made."""
    fault = OSError(f"no folder for the sockets of workers can be made for {data_dir}: every path would be too long")
    for path in _candidates(data_dir, environ):
        if len(os.fsencode(path)) + LONGEST_NAME > LONGEST_PATH:
            continue
        try:
            _make(path)
        except OSError as error:
            fault = error
        else:
            return path
    raise fault


def remove(path: str) -> None:
    """The folder, with the sockets that are left in it, as far as that goes: the next start empties it."""
    with contextlib.suppress(OSError):
        _empty(path)
        os.rmdir(path)


def _empty(path: str) -> None:
    for name in os.listdir(path):
        os.unlink(f"{path}/{name}")


def _candidates(data_dir: str, environ: Mapping[str, str]) -> Iterator[str]:
    """The system's places for such things, the data folder where none of them can be written."""
    places = [environ.get(name, "") for name in ("RUNTIME_DIRECTORY", "XDG_RUNTIME_DIR", "TMPDIR")]
    name = f"horolog-{os.getuid()}-{zlib.crc32(os.fsencode(data_dir)):08x}"
    for place in (*places, "/tmp"):  # noqa: S108 - nobody else can have made the folder in it: see `_make`
        if place.startswith("/"):
            yield f"{place.rstrip('/')}/{name}"
    yield f"{data_dir}/.sockets"


def _make(path: str) -> None:
    """One that is there is emptied if it is a folder of ours; anything else that has its name is left alone."""
    try:
        os.mkdir(path, PRIVATE)
    except FileExistsError:
        found = os.lstat(path)
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
            raise
        _empty(path)
        os.chmod(path, PRIVATE)
