"""Servers at Unix sockets are reached by paths of any length, and are there again after somebody removed socket or folder."""

import asyncio
import os
import shutil
import tempfile
from pathlib import Path

import pytest

from horolog.broker.base import unix_sockets
from horolog.broker.base.unix_sockets import LONGEST_PATH, UnixServer, make_private, reachable
from tests.support.waiting import until


class Greets(asyncio.Protocol):
    def connection_made(self, transport):
        transport.write(b"hello")


@pytest.fixture(params=["short", "long" + "x" * LONGEST_PATH])
def path(request, monkeypatch):
    monkeypatch.setattr(unix_sockets, "LOOKS_EVERY_S", 0.01)
    with tempfile.TemporaryDirectory(prefix="h-") as folder:
        yield f"{folder}/{request.param}/sockets/1"


async def greeted(path):
    with reachable(path) as at:
        reader, writer = await asyncio.open_unix_connection(at)
    try:
        return await reader.readexactly(5) == b"hello", writer
    except BaseException:
        writer.close()
        raise


async def is_greeted(path):
    try:
        said, writer = await greeted(path)
    except OSError:
        return False
    writer.close()
    return said


async def until_greeted(path):
    async with asyncio.timeout(20):
        while not await is_greeted(path):  # noqa: ASYNC110 - somebody else's work is waited for
            await asyncio.sleep(0.01)


async def test_a_removed_socket_and_a_removed_folder_are_there_again(path, caplog):
    server = UnixServer(path, Greets)
    await server.start()
    _, stays = await greeted(path)
    for removed in (Path(path), Path(path).parent, Path(path).parents[1]):
        shutil.rmtree(removed) if removed.is_dir() else removed.unlink()
        await until_greeted(path)
        assert Path(path).parent.stat().st_mode & 0o777 == 0o700
    assert not stays.is_closing(), "who is connected stays so"
    assert f"the socket {path} was removed: recreating it" in caplog.text
    stays.close()
    server.close()
    assert not await is_greeted(path)
    assert repr(server) == f"<UnixServer at {path}>"


async def test_what_keeps_it_away_is_said_once_and_gone_on_against(path, caplog, monkeypatch):
    server = UnixServer(path, Greets)
    await server.start()
    tries = []

    def refuse(folder):
        tries.append(folder)
        raise OSError("no room")

    monkeypatch.setattr(unix_sockets, "make_private", refuse)
    os.unlink(path)  # noqa: PTH108
    await until(lambda: len(tries) > 3)
    assert caplog.text.count("cannot be recreated: no room") == 1
    monkeypatch.setattr(unix_sockets, "make_private", make_private)
    await until_greeted(path)
    server.close()


async def test_a_server_that_never_began_is_closed(path):
    UnixServer(path, Greets).close()


def test_the_folder_of_another_is_refused(tmp_path, monkeypatch):
    folder = str(tmp_path / "folder")
    assert make_private(folder)
    Path(folder).chmod(0o755)
    assert not make_private(folder)
    assert Path(folder).stat().st_mode & 0o777 == 0o700
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError):
        make_private(str(tmp_path / "file"))
    mine = os.getuid()
    monkeypatch.setattr(unix_sockets.os, "getuid", lambda: mine + 1)
    with pytest.raises(FileExistsError):
        make_private(folder)


def test_what_fits(monkeypatch):
    assert unix_sockets.fits("/short")
    assert unix_sockets.fits("x" * 300) == Path("/proc/self/fd").is_dir()
    monkeypatch.setattr(unix_sockets, "DESCRIPTORS", "/nowhere")
    assert not unix_sockets.fits("x" * 300)
