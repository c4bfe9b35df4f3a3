"""Reaches a broker, or fails within the client's timeout, before Spark begins to retry by itself."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

from horolog.client.security import Security
from horolog.client.values.errors import KafkaError
from horolog.client.values.times import format_duration
from horolog.client.wire.client import Client
from horolog.client.wire.retry import RetryPolicy
from horolog.protocol.messages.metadata import MetadataRequest

_PAUSE_SECONDS = 0.2
_LONGEST_CONNECT_MS = 10_000


class Unreachable(Exception):
    """No broker answered in time."""


class Reached(Protocol):
    """What the options of reads and of writes say about the broker."""

    @property
    def security(self) -> Security | None: ...
    @property
    def client_id(self) -> str: ...
    @property
    def request_timeout_ms(self) -> int: ...
    @property
    def reach_ms(self) -> int: ...
    @property
    def reach_option(self) -> str: ...


def client_of(bootstrap: str, options: Reached) -> Client:
    return Client(
        bootstrap,
        security=options.security,
        client_id=options.client_id,
        request_timeout_ms=options.request_timeout_ms,
        connect_timeout_ms=min(options.reach_ms, _LONGEST_CONNECT_MS),
        retry=RetryPolicy(timeout_ms=options.reach_ms),
    )


async def reach(client: Client, options: Reached) -> None:
    """Return once some broker has answered; Unreachable after the client's own timeout."""
    reasons = ["no answer"]
    try:
        async with asyncio.timeout(options.reach_ms / 1000):
            await _until_answered(client, reasons)
    except TimeoutError:
        places = ",".join(f"{host}:{port}" for host, port in client.addresses)
        limit = format_duration(options.reach_ms)
        raise Unreachable(f"no broker at {places} within {limit} ({options.reach_option}): {reasons[-1]}") from None


async def _until_answered(client: Client, reasons: list[str]) -> None:
    """Ask until a broker answers; failures are added to `reasons`."""
    while True:
        try:
            await client.attempt(MetadataRequest(topics=[]))
        except KafkaError as error:
            if not error.retriable:
                raise
            reasons.append(error.message)
        else:
            return
        await asyncio.sleep(_PAUSE_SECONDS)


def require_broker(
    bootstrap: str, options: Reached, further: Callable[[Client], Awaitable[None]] | None = None
) -> None:
    """The same from code that is not asynchronous; `further` uses the same client."""

    async def ask() -> None:
        async with client_of(bootstrap, options) as client:
            await reach(client, options)
            if further is not None:
                await further(client)

    asyncio.run(ask())
