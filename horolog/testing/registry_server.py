"""A schema registry beside the broker of a test: `async with horolog_registry() as registry`, at `registry.url`.

It serves the REST interface of Confluent's registry on loopback, and keeps everything in memory.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from http import HTTPStatus
from typing import Any

from horolog.testing.control import LOOPBACK, MAX_HEAD_BYTES, REQUEST_TIMEOUT_S, Text, encoded, read_request
from horolog.testing.in_thread import InThread, called, in_thread
from horolog.testing.registry_routes import answer
from horolog.testing.schema_registry import AVRO, SchemaRegistry


class EmbeddedRegistry:
    """A running registry; `registry` is what it knows."""

    def __init__(self) -> None:
        self.registry = SchemaRegistry()
        self._server: asyncio.Server | None = None
        self.port = 0

    def __repr__(self) -> str:
        return f"<EmbeddedRegistry at {self.url}>"

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"

    def register(
        self,
        subject: str,
        schema: str | Mapping[str, Any],
        kind: str = AVRO,
        references: tuple[Mapping[str, Any], ...] = (),
    ) -> int:
        """Register a schema without a client, and return its id; a mapping is JSON.

        Raises `horolog.testing.schema_registry.RegistryError`.
        """
        text = schema if isinstance(schema, str) else json.dumps(schema)
        body = {"schema": text, "schemaType": kind, "references": list(references)}
        return self.registry.register(subject, self.registry.parsed(body))

    def subjects(self) -> dict[str, list[int]]:
        """The ids of each subject's versions."""
        return {name: [one.id for one in each.present] for name, each in self.registry.subjects.items() if each.present}

    async def start(self, port: int = 0) -> None:
        self._server = await asyncio.start_server(self._serve, LOOPBACK, port, limit=MAX_HEAD_BYTES)
        self.port = self._server.sockets[0].getsockname()[1]

    def stop(self) -> None:
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT_S):
                status, found = await self._answer(reader)
            writer.write(encoded(status, Text(found) if isinstance(found, str) else found))
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError, TimeoutError):
            pass  # the client is gone
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader) -> tuple[HTTPStatus, Any]:
        try:
            asked = await read_request(reader)
            body = json.loads(asked.body) if asked.body.strip() else {}
        except (ValueError, asyncio.LimitOverrunError) as error:
            return HTTPStatus.BAD_REQUEST, {"error_code": int(HTTPStatus.BAD_REQUEST), "message": str(error)}
        return answer(self.registry, asked.method, asked.path, asked.query, body)


class ThreadedRegistry(InThread[EmbeddedRegistry]):
    """A registry in another thread: an `EmbeddedRegistry` whose methods may be called from any other thread."""

    register = called(EmbeddedRegistry.register)
    subjects = called(EmbeddedRegistry.subjects)

    def __init__(self, embedded: EmbeddedRegistry, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(embedded, loop)
        self.url = embedded.url

    def __repr__(self) -> str:
        return f"<ThreadedRegistry at {self.url}>"


@asynccontextmanager
async def horolog_registry(port: int = 0) -> AsyncIterator[EmbeddedRegistry]:
    """Run a registry for the duration of the block, on a free port unless one is given."""
    registry = EmbeddedRegistry()
    await registry.start(port)
    try:
        yield registry
    finally:
        registry.stop()


@contextmanager
def registry_in_thread(port: int = 0) -> Iterator[ThreadedRegistry]:
    """Like `horolog_registry`, with its own event loop and thread."""
    with in_thread(horolog_registry(port), ThreadedRegistry) as registry:
        yield registry
