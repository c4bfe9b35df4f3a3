"""The connections of a client: one to each broker, and one more for each lane."""

import asyncio
from collections.abc import Awaitable
from typing import TYPE_CHECKING, NamedTuple

from horolog.client.values.errors import Closed
from horolog.client.wire.connection import Connection, connect
from horolog.client.wire.handshake import open_connection
from horolog.client.wire.versions import BrokerVersions
from horolog.version import __version__

if TYPE_CHECKING:
    from horolog.client.wire.login import Login


class Channel(NamedTuple):
    """A connection, and the API versions of its broker."""

    connection: Connection
    versions: BrokerVersions


class Channels:
    """Open channels by lane and address. A broker answers a connection's requests one after the other: hence lanes."""

    def __init__(
        self,
        client_id: str,
        connect_timeout_ms: int,
        request_timeout_ms: int,
        max_answer_bytes: int,
        login: "Login | None" = None,
    ) -> None:
        self._client_id = client_id
        self._login = login
        self._connect_timeout_ms = connect_timeout_ms
        self._request_timeout_ms = request_timeout_ms
        self._max_answer_bytes = max_answer_bytes
        self._tasks: dict[tuple[str, str, int], asyncio.Task[Channel]] = {}
        self._lanes = 0

    def __repr__(self) -> str:
        return f"<Channels: {len(self._tasks)}>"

    def new_lane(self, purpose: str) -> str:
        """A name for connections that one user does not share."""
        self._lanes += 1
        return f"{purpose}-{self._lanes}"

    def close_lane(self, lane: str) -> None:
        """Close the connections of one lane."""
        for key in [key for key in self._tasks if key[0] == lane]:
            task = self._tasks.pop(key)
            if task.done() and _is_usable(task):
                task.result().connection.close(Closed("connection"))
            task.cancel()

    async def close(self) -> None:
        """Close all connections; requests in flight fail."""
        tasks, self._tasks = self._tasks, {}
        for task in tasks.values():
            task.cancel()
        for result in await asyncio.gather(*tasks.values(), return_exceptions=True):
            if isinstance(result, Channel):
                result.connection.close(Closed("client"))
        for task in tasks.values():
            if not task.cancelled() and task.exception() is None:
                task.result().connection.close(Closed("client"))

    def is_open(self, lane: str, host: str, port: int) -> bool:
        task = self._tasks.get((lane, host, port))
        return task is not None and task.done() and _is_usable(task)

    def certificates(self) -> dict[str, bytes]:
        """The certificates of the brokers connected over TLS, as DER, by HOST:PORT."""
        open_ones = [task.result().connection for task in self._tasks.values() if task.done() and _is_usable(task)]
        return {each.name: found for each in open_ones if (found := each.certificate) is not None}

    async def to(self, lane: str, host: str, port: int) -> Channel:
        """The channel of that lane, opened now if there is none; concurrent callers wait for the same one."""
        key = (lane, host, port)
        task = self._tasks.get(key)
        if task is None or (task.done() and not _is_usable(task)):
            task = asyncio.create_task(self._open(host, port))
            self._tasks[key] = task
        if task.done():
            return task.result()
        return await asyncio.shield(task)

    async def _open(self, host: str, port: int) -> Channel:
        login = self._login
        tls = None if login is None else await login.context()

        def dial() -> Awaitable[Connection]:
            return connect(host, port, self._client_id, self._connect_timeout_ms, self._max_answer_bytes, tls)

        # A process that stands still accepts connections: to find it out takes no longer than for a machine that is away.
        answers_within_ms = min(self._connect_timeout_ms, self._request_timeout_ms)
        channel = Channel(*await open_connection(dial, __version__, answers_within_ms))
        if login is not None:
            await login.enter(*channel, self._request_timeout_ms)
        return channel


def _is_usable(task: "asyncio.Task[Channel]") -> bool:
    return not task.cancelled() and task.exception() is None and task.result().connection.is_open
