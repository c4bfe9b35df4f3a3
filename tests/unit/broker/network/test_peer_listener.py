"""The socket for peers: bounds of its own, a path instead of a port, and leaving like any listener."""

from __future__ import annotations

import asyncio
import math
import tempfile
from types import SimpleNamespace
from typing import Any

from horolog.base.clock import ManualClock
from horolog.broker.network.peer_listener import NEVER, PEERS, PeerListener, limits_of_peers
from tests.support.conversations import Service, framed, limits


def test_peers_share_no_bound_with_clients() -> None:
    clients = limits(queued_max_request_bytes=1)
    own = limits_of_peers(clients)
    assert own.memory is not clients.memory
    assert (own.memory.requests.limit_bytes, own.max_idle_ms) == (math.inf, NEVER)
    assert own.max_request_bytes == clients.max_request_bytes


async def test_peers_are_served_on_a_path_and_never_refused() -> None:
    service, shared = Service(), limits(max_connections=0)
    dispatcher: Any = SimpleNamespace(dispatch=service.serve)
    with tempfile.TemporaryDirectory(prefix="h") as folder:
        listener = PeerListener(f"{folder}/1", dispatcher, ManualClock(), shared)
        await listener.start()
        reader, writer = await asyncio.open_unix_connection(f"{folder}/1")
        writer.write(framed(b"hello"))
        async with asyncio.timeout(60):
            assert await reader.readexactly(5) == b"hello"
        assert (listener.name, listener.connection_count, shared.admission.count) == (PEERS, 1, 0)
        await listener.stop_accepting()
        listener.stop_serving()
        parting = asyncio.create_task(listener.part())
        async with asyncio.timeout(60):
            assert await reader.read() == b""
        writer.close()
        await parting
        assert listener.connection_count == 0
