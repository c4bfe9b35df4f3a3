"""The folder of the workers' Unix sockets, where no cleanup job deletes them and only this user has access.

It is in systemd's `RuntimeDirectory=`, else `.sockets` in the data folder. If neither can hold sockets (some shared folders of virtual
machines cannot), it is in the user's session folder, or in that for temporary files. Its name there is derived from the data folder,
which one supervisor holds at a time: what an earlier one left is found again and removed.
"""

# Paths are plain strings, as in the storage.
# ruff: noqa: PTH106, PTH108, PTH208
from __future__ import annotations

import contextlib
import logging
import os
import socket
import zlib
from collections.abc import Iterator, Mapping

from horolog.broker.base.unix_sockets import SOCKETS, fits, make_private, reachable

log = logging.getLogger(__name__)

LONGEST_NAME = "/2147483647.http"
PROBE = "probe"
OTHERS = ("XDG_RUNTIME_DIR", "TMPDIR")


def made(data_dir: str, environ: Mapping[str, str]) -> str:
    """An empty folder for the workers of this data folder. Raises OSError where none can be made."""
    fault = OSError(f"no folder for the sockets of workers can be made for {data_dir}: every path would be too long")
    for path in _candidates(data_dir, environ):
        if not fits(path + LONGEST_NAME):
            continue
        try:
            make_private(path)
            _empty(path)
            _try(path)
        except OSError as error:
            log.warning("%s cannot hold the sockets of workers: %s", path, error)
            fault = error
        else:
            if path != (in_data_folder := f"{data_dir}/{SOCKETS}"):
                remove(in_data_folder)  # killed workers may have left it, before there was a better place
            return path
    raise fault


def remove(path: str) -> None:
    """Remove the folder and the sockets left in it, as far as possible: the next start empties it."""
    with contextlib.suppress(OSError):
        _empty(path)
        os.rmdir(path)


def _empty(path: str) -> None:
    for name in os.listdir(path):
        os.unlink(f"{path}/{name}")


def _try(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as probe, reachable(f"{path}/{PROBE}") as at:
        probe.bind(at)
        os.unlink(at)


def _candidates(data_dir: str, environ: Mapping[str, str]) -> Iterator[str]:
    """The best first. systemd separates several folders by colons."""
    name = f"horolog-{os.getuid()}-{zlib.crc32(os.fsencode(data_dir)):08x}"
    for place in environ.get("RUNTIME_DIRECTORY", "").split(":"):
        if place.startswith("/"):
            yield f"{place.rstrip('/')}/{name}"
    yield f"{data_dir}/{SOCKETS}"
    for place in (*(environ.get(one, "") for one in OTHERS), "/tmp"):  # noqa: S108 - the folder in it has an owner, who is checked
        if place.startswith("/"):
            yield f"{place.rstrip('/')}/{name}"
