"""Caches answers for some seconds, so that many browsers cost a broker as much as one."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import TYPE_CHECKING, Any, TypeVar, cast
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from horolog.client.wire.client import Client
    from horolog.client.wire.cluster_view import ClusterView

T = TypeVar("T")

KEPT_AT_MOST = 64
VIEW_SECONDS = 5.0


class Recent:
    """The cache of one client: users do not share what they may see."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._kept: dict[Hashable, tuple[float, asyncio.Future[Any]]] = {}

    async def get(self, key: Hashable, seconds: float, ask: Callable[[], Awaitable[T]]) -> T:
        """The answer under this key, requested again if it is older; failures are not cached."""
        now = self._monotonic()
        known = self._kept.get(key)
        if known is None or now - known[0] > seconds or known[1].cancelled():
            while len(self._kept) >= KEPT_AT_MOST:
                self._kept.pop(next(iter(self._kept)))
            known = now, asyncio.ensure_future(ask())
            self._kept[key] = known
        try:
            return cast("T", await asyncio.shield(known[1]))
        except BaseException:
            if self._kept.get(key) is known and known[1].done():
                del self._kept[key]
            raise

    def forget(self) -> None:
        """Request everything again: a change was made."""
        self._kept.clear()


_OF: "WeakKeyDictionary[Client, Recent]" = WeakKeyDictionary()


def recent(client: "Client") -> Recent:
    return _OF.setdefault(client, Recent(client.clock.monotonic))


async def view_of(client: "Client") -> "ClusterView":
    """All topics, at most some seconds old."""
    return await recent(client).get("view", VIEW_SECONDS, client.metadata)
