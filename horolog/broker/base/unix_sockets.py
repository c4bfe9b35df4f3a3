"""Unix sockets by their paths: of any length, in a folder private to this user, and made again if they are removed.

Systems allow 104 to 108 bytes in the path of a socket. If Linux shows open descriptors in `/proc`, a longer path is reached through a
descriptor of its folder.
"""

# Paths are plain strings, as in the storage.
# ruff: noqa: PTH101, PTH102, PTH103, PTH116
from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import stat
from collections.abc import Callable, Iterator

log = logging.getLogger(__name__)

SOCKETS = ".sockets"
"""The folder of workers' Unix sockets, if it is in a data folder."""
LONGEST_PATH = 100
PRIVATE = 0o700
LOOKS_EVERY_S = 1.0
DESCRIPTORS = "/proc/self/fd"


def fits(path: str) -> bool:
    """Whether a socket can be at a path of this length."""
    return len(os.fsencode(path)) <= LONGEST_PATH or (hasattr(os, "O_PATH") and os.path.isdir(DESCRIPTORS))  # noqa: PTH112


@contextlib.contextmanager
def reachable(path: str) -> Iterator[str]:
    """A path of the same socket that is short enough, valid inside the context. Raises OSError if its folder is missing."""
    if len(os.fsencode(path)) <= LONGEST_PATH:
        yield path
        return
    folder, _, name = path.rpartition("/")
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"{DESCRIPTORS}/{descriptor}/{name}"
    finally:
        os.close(descriptor)


def make_private(folder: str) -> bool:
    """Make a folder for sockets, and those above it; whether it was missing. Raises OSError, also where its name is another user's."""
    try:
        os.makedirs(folder.rpartition("/")[0], exist_ok=True)
        os.mkdir(folder, PRIVATE)
    except FileExistsError:
        found = os.lstat(folder)
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
            raise
        os.chmod(folder, PRIVATE)
        return False
    return True


class UnixServer:
    """A server at a path, which it makes again if it is removed. asyncio removes what an earlier process has left there."""

    def __init__(self, path: str, connect: Callable[[], asyncio.Protocol], backlog: int = 100) -> None:
        self._path = path
        self._connect = connect
        self._backlog = backlog
        self._server: asyncio.Server | None = None
        self._bound: tuple[int, int] | None = None
        self._keeping: asyncio.Task[None] | None = None
        self._fault = ""

    def __repr__(self) -> str:
        return f"<UnixServer at {self._path}>"

    async def start(self) -> None:
        """Raises OSError."""
        await self._bind()
        self._keeping = asyncio.create_task(self._keep())

    def close(self) -> None:
        """Accept no more connections."""
        if self._keeping is not None:
            self._keeping.cancel()
        self._close_server()

    async def _bind(self) -> None:
        make_private(self._path.rpartition("/")[0])
        with reachable(self._path) as at:
            self._server = await asyncio.get_running_loop().create_unix_server(self._connect, at, backlog=self._backlog)
            self._bound = _file_at(at)

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(LOOKS_EVERY_S)
            if self._server is None or _file_at(self._path) != self._bound:
                await self._bind_again()

    async def _bind_again(self) -> None:
        """Make the socket again; open connections stay."""
        self._close_server()
        try:
            await self._bind()
        except OSError as error:
            if str(error) != self._fault:
                log.error("the socket %s was removed and cannot be recreated: %s", self._path, error)
            self._fault = str(error)
        else:
            self._fault = ""
            log.warning("the socket %s was removed: recreating it", self._path)

    def _close_server(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None


def _file_at(path: str) -> tuple[int, int] | None:
    """Which file it is; None where there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
