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

from horolog.testing.in_thread import InThread, called, in_thread
from horolog.testing.json_server import HttpRequest, JsonServer, Text
from horolog.testing.registry_routes import answer
from horolog.testing.schema_registry import AVRO, SchemaRegistry


class EmbeddedRegistry:
    """A running registry; `registry` is what it knows."""

    def __init__(self) -> None:
        self.registry = SchemaRegistry()
        self._server = JsonServer(self._answer, _refusal)

    def __repr__(self) -> str:
        return f"<EmbeddedRegistry at {self.url}>"

    @property
    def url(self) -> str:
        return self._server.url

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
        await self._server.start(port)

    def stop(self) -> None:
        self._server.stop()

    async def _answer(self, asked: HttpRequest) -> tuple[HTTPStatus, Any]:
        try:
            body = json.loads(asked.body) if asked.body.strip() else {}
        except ValueError as error:
            return HTTPStatus.BAD_REQUEST, _refusal(HTTPStatus.BAD_REQUEST, str(error))
        status, found = answer(self.registry, asked.method, asked.path, asked.query, body)
        return status, Text(found) if isinstance(found, str) else found


def _refusal(status: HTTPStatus, why: str) -> dict[str, Any]:
    return {"error_code": int(status), "message": why}


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
