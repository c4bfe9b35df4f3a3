"""It listens, answers, and ends when it is told to, with its connections closed."""

import asyncio
import importlib
import subprocess
import sys

import httpx
import pytest

from horolog.broker.clock import SystemClock
from horolog.console.app import Application
from horolog.console.options import Options, clusters_of
from horolog.console.serving import _bare, serve


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
