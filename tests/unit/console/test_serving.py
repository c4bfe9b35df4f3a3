"""It listens, answers, and ends when it is told to, with its connections closed."""

import asyncio
import contextlib
import importlib
import re
import ssl
import subprocess
import sys

import httpx
import pytest

from horolog.base.clock import SystemClock
from horolog.console import serving
from horolog.console.app import Application
from horolog.console.options import Options, clusters_of
from horolog.console.serving import _bare, serve
from tests.support.authority import Authority


def application():
    return Application(Options(clusters_of(["127.0.0.1:1"], None), timeout_ms=100), SystemClock())


async def test_it_serves_until_it_is_cancelled():
    bound: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    running = asyncio.ensure_future(serve(application(), "127.0.0.1", 0, bound.set_result))
    port = await bound
    async with httpx.AsyncClient() as browser:
        answer = await browser.get(f"http://127.0.0.1:{port}/static/console.css")
        assert (answer.status_code, "server" in answer.headers) == (200, False)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    with pytest.raises(OSError, match=r"refused|Connect"):
        await asyncio.open_connection("127.0.0.1", port)


@contextlib.asynccontextmanager
async def running(**files):
    """A console; its port."""
    bound: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    task = asyncio.ensure_future(serve(application(), "127.0.0.1", 0, bound.set_result, **files))
    try:
        yield await bound
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def test_it_serves_over_tls(tmp_path):
    authority = Authority(tmp_path)
    issued = authority.issue("127.0.0.1")
    context = ssl.create_default_context(cafile=str(authority.trusted))
    async with (
        running(certificate=str(issued.chain_file), key=str(issued.key_file)) as port,
        httpx.AsyncClient(verify=context) as browser,
    ):
        assert (await browser.get(f"https://127.0.0.1:{port}/static/console.css")).status_code == 200
        with pytest.raises(httpx.TransportError):
            await browser.get(f"http://127.0.0.1:{port}/static/console.css")


async def test_a_connection_has_a_deadline_for_each_request_it_begins(monkeypatch):
    """Also for those behind an answer, however many parts they come in."""
    page = b"GET /static/console.css HTTP/1.1\r\nHost: localhost\r\n\r\n"
    async with running() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)

        async def answered():
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 20)
            (length,) = re.findall(rb"content-length: (\d+)", head)
            return await reader.readexactly(int(length))

        writer.write(page)
        css = await answered()
        for part in (page[:9], page[9:]):
            writer.write(part)
            await writer.drain()
        assert await answered() == css
        monkeypatch.setattr(serving, "FIRST_REQUEST_S", 0.1)
        writer.write(page[:9])
        with contextlib.suppress(ConnectionError):
            assert await asyncio.wait_for(reader.read(), 20) == b""
        writer.close()


async def test_a_silent_connection_is_ended(monkeypatch):
    monkeypatch.setattr(serving, "FIRST_REQUEST_S", 0.1)
    async with running() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        with contextlib.suppress(ConnectionError):
            assert await asyncio.wait_for(reader.read(), 20) == b""
        writer.close()


async def test_a_port_that_is_taken_is_an_error_of_the_system():
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(OSError, match="in use"):
            await serve(application(), "127.0.0.1", port, print)


def test_what_a_first_page_has_no_use_for_is_not_imported():
    code = (
        "import sys, horolog.console.serving; others = ('click', 'multiprocessing', 'horolog.console.moment', 'crc32c');"
        " print([one for one in others if one in sys.modules]); import uvicorn; print(uvicorn.Server)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.splitlines() == ["[]", "<class 'uvicorn.server.Server'>"]


def test_a_part_is_imported_without_its_package(tmp_path, monkeypatch):
    (tmp_path / "costly").mkdir()
    (tmp_path / "costly" / "__init__.py").write_text("import costly.part\nWHOLE = True\n")
    (tmp_path / "costly" / "part.py").write_text("VALUE = 7\n")
    monkeypatch.syspath_prepend(tmp_path)
    with _bare("costly") as bare:
        assert importlib.import_module("costly.part").VALUE == 7
        assert not hasattr(bare, "WHOLE")
    whole = importlib.import_module("costly")
    assert whole.WHOLE
    with _bare("costly") as known:
        assert known is whole
    assert sys.modules.pop("costly") is whole
    del sys.modules["costly.part"]


def test_a_port_that_another_program_has_is_named():
    with serving._listening("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=rf"cannot listen on 127\.0\.0\.1:{port}: address already in use; --listen"):
            serving._listening("127.0.0.1", port)
