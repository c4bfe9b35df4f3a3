"""The base of all admin calls: a client, requests with retries, and failures by name."""

import asyncio
from collections.abc import Callable, Hashable, Iterable, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

from horolog.client.values.errors import KafkaError, PartialFailure, error_of, named_error
from horolog.client.wire.client import Client
from horolog.client.wire.versions import Request

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class AdminBase:
    def __init__(self, bootstrap: str | Sequence[str] | Client, **client_options: Any) -> None:
        self._owns_client = not isinstance(bootstrap, Client)
        self.client = bootstrap if isinstance(bootstrap, Client) else Client(bootstrap, **client_options)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        if self._owns_client:
            await self.client.close()

    async def _ask(self, message: Request, *, code_of: Callable[[Any], int] | None = None, **where: Any) -> Any:
        """The response; retried after retriable errors, including those that `code_of` finds in the response.

        The caller checks the codes of the response: one that lasts is in it.
        """
        refused: list[Any] = []

        async def once() -> Any:
            refused.clear()
            response = await self.client.attempt(message, **where)
            code = 0 if code_of is None else code_of(response)
            if code and error_of(code).retriable:
                refused.append(response)
                raise error_of(code)
            return response

        try:
            return await self.client.retry(once)
        except KafkaError:
            if not refused:
                raise
            return refused[0]

    async def _ask_every_broker(self, message: Request) -> list[Any]:
        """The responses of all brokers of the cluster."""
        view = await self.client.metadata([])
        return list(await asyncio.gather(*(self._ask(message, node_id=node) for node in view.nodes)))


def collect(results: Iterable[tuple[K, int, str | None, V]]) -> dict[K, V]:
    """(name, error code, message, result): the results by name. A lone failure is raised unwrapped, several as PartialFailure."""
    done: dict[K, V] = {}
    failed: dict[K, KafkaError] = {}
    for name, code, message, result in results:
        if code:
            failed[name] = named_error(name, code, message)
        else:
            done[name] = result
    if failed and not done and len(failed) == 1:
        raise next(iter(failed.values()))
    if failed:
        raise PartialFailure(failed, done)
    return done
