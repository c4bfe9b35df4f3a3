"""A small schema registry on a loopback port with scripted responses: by a table of paths, or raw bytes, slowly or never."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from horolog.client.decoding import RegistryAccess


class RegistryServer:
    """`answers` maps a path to a document, a status, or raw bytes; `asked` has the requests received."""

    def __init__(self, answers=None):
        self.answers = answers or {}
        self.asked = []
        self.port = 0
        self.delay = 0.0
        self.serving = set()

    async def serve(self, reader, writer):
        self.serving.add(asyncio.current_task())
        try:
            await self.answer(reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.transport.abort()
            self.serving.discard(asyncio.current_task())

    async def answer(self, reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        self.asked.append(head.decode())
        path = head.split()[1].decode()
        answer = self.answers.get(path, 404)
        await asyncio.sleep(self.delay)
        if isinstance(answer, bytes):
            writer.write(answer)
        else:
            status, body = (answer, b"{}") if isinstance(answer, int) else (200, json.dumps(answer).encode())
            writer.write(b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n" % (status, len(body)) + body)
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    def access(self, timeout_ms=5000, **given):
        return RegistryAccess(f"http://127.0.0.1:{self.port}", timeout_ms=timeout_ms, **given)


@asynccontextmanager
async def registry_server(answers=None, tls=None) -> AsyncIterator[RegistryServer]:
    server = RegistryServer(answers)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0, ssl=tls)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
        for task in list(server.serving):
            task.cancel()
        await asyncio.gather(*server.serving, return_exceptions=True)


class RegistryThread:
    """The same in its own thread, for commands that run a loop themselves."""

    def __init__(self, answers):
        self.answers = answers
        self.server = None

    def __enter__(self):
        ready = threading.Event()

        async def serve():
            self.ended = asyncio.Event()
            self.loop = asyncio.get_running_loop()
            async with registry_server(self.answers) as self.server:
                ready.set()
                await self.ended.wait()

        self.thread = threading.Thread(target=lambda: asyncio.run(serve()))
        self.thread.start()
        assert ready.wait(60)
        return self

    def __exit__(self, *_):
        self.loop.call_soon_threadsafe(self.ended.set)
        self.thread.join(60)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.port}"
