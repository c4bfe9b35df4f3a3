"""Listens for browsers until it is told to stop."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable, Iterator

import uvicorn

from horolog.console.app import Application

CONNECTIONS_AT_ONCE = 200
KEEP_ALIVE_S = 30
LAST_WORDS_S = 1


class Server(uvicorn.Server):
    """Signals are the command's to take."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def serve(
    application: Application,
    host: str,
    port: int,
    said: Callable[[int], None],
    *,
    certificate: str | None = None,
    key: str | None = None,
) -> None:
    """Serve until cancelled; `said` is told the port. Raises OSError where it cannot listen, ssl.SSLError for a certificate that is none."""
    config = uvicorn.Config(
        application,
        host=host,
        port=port,
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=CONNECTIONS_AT_ONCE,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=LAST_WORDS_S,
        h11_max_incomplete_event_size=64 << 10,
        ssl_certfile=certificate,
        ssl_keyfile=key,
        ssl_version=ssl.PROTOCOL_TLS_SERVER,
    )
    server = Server(config)
    # An own socket: one that cannot listen would end the process from inside of uvicorn.
    with contextlib.closing(_listening(host, port)) as listener:
        said(listener.getsockname()[1])
        running = asyncio.ensure_future(server.serve(sockets=[listener]))
        try:
            await asyncio.shield(running)
        except asyncio.CancelledError:
            server.should_exit = True
            await running
            raise
        finally:
            await application.close()


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((host, port))
        found.listen(128)
        found.setblocking(False)
    except OSError:
        found.close()
        raise
    return found
