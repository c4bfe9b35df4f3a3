"""A console without a socket: a test requests pages as a browser does, about a broker in memory."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx

from horolog import Admin, Client, Producer
from horolog.console.app import Application
from horolog.console.options import Options, clusters_of
from horolog.testing import horolog_broker

HOST = "127.0.0.1:8080"
ORIGIN = {"origin": f"http://{HOST}"}


@asynccontextmanager
async def browser(*clusters: str, clock: Any = None, **options: Any) -> AsyncIterator[httpx.AsyncClient]:
    """A client; `browser.application` is the console behind it."""
    from horolog.base.clock import SystemClock

    application = Application(Options(clusters_of(list(clusters), None), **options), clock or SystemClock())
    transport = httpx.ASGITransport(application)
    async with httpx.AsyncClient(transport=transport, base_url=f"http://{HOST}") as client:
        client.application = application
        yield client
    await application.close()


@asynccontextmanager
async def shown(
    *, broker_settings: dict[str, Any] | None = None, **options: Any
) -> AsyncIterator[tuple[httpx.AsyncClient, Client, Any]]:
    """A broker in memory, a client of it, and a console that shows it."""
    async with (
        horolog_broker(**broker_settings or {}) as broker,
        Client(broker.bootstrap) as client,
        browser(broker.bootstrap, **options) as page,
    ):
        yield page, client, broker


async def topic_with(
    client: Client, name: str, records: list[tuple[int, Any]], partitions: int = 1, **configs: str
) -> None:
    """Create a topic with records at these times; their numbers are their keys."""
    async with Admin(client) as admin:
        await admin.create_topic(
            name, partitions, configs={key.replace("_", "."): value for key, value in configs.items()}
        )
    async with Producer(client) as producer:
        for number, (time_ms, value) in enumerate(records):
            await producer.send(
                name, value, key=str(number).encode(), timestamp_ms=time_ms, partition=number % partitions
            )
        await producer.flush()
