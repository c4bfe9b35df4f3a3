"""Listens at one port on every address of a host.

If the system chooses the port of several addresses, as all interfaces are, it may choose another for each.
"""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

PORT_TRIES = 20
LISTEN = "--listen HOST:PORT, or the setting listeners,"
HTTP_LISTEN = "the setting horolog.http.listen"


class Bound(Protocol):
    """What listens at some addresses."""

    @property
    def sockets(self) -> Sequence[socket.socket]: ...
    def close(self) -> None: ...


Server = TypeVar("Server", bound=Bound)


async def at_one_port(listen: Callable[[int], Awaitable[Server]], port: int) -> Server:
    """What `listen` opens at a port, 0 for any, once all addresses of it have the same. Raises OSError."""
    server = await listen(port)
    for _ in range(PORT_TRIES):
        chosen = port_of(server)
        if all(one.getsockname()[1] == chosen for one in server.sockets):
            break
        server.close()
        try:
            server = await listen(chosen)
        except OSError:  # it is in use at the other address
            server = await listen(port)
    return server


class CannotListen(OSError):
    """Nothing can listen there: `fault` is the address and the reason, `names` is what names another address."""

    def __init__(self, fault: str, names: str) -> None:
        super().__init__(f"{fault}; {names} names another address")
        self.fault = fault
        self.names = names


def cannot_listen(error: OSError, host: str, port: int, names: str) -> CannotListen:
    """The error with its address, the reason, and what `names` another one."""
    reason = os.strerror(error.errno).lower() if error.errno and error.errno > 0 else str(error)
    shown = f"[{host}]" if ":" in host else host or "*"
    found = CannotListen(f"cannot listen on {shown}:{port}: {reason}", names)
    found.errno = error.errno
    return found


def free(host: str) -> int:
    """A port that nothing listens on at a host; an empty one is every interface. Raises OSError."""
    family, kind, _, _, address = socket.getaddrinfo(host or None, 0, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[
        0
    ]
    with socket.socket(family, kind) as probe:
        probe.bind(address)
        return int(probe.getsockname()[1])


def port_of(server: Bound) -> int:
    return int(server.sockets[0].getsockname()[1])
