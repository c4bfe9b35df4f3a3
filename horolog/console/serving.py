"""Listens for browsers until it is told to stop."""

import asyncio
import contextlib
import socket
import ssl
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec, module_from_spec
from types import ModuleType

from horolog.broker.security.cipher_suites import WITH_FORWARD_SECRECY
from horolog.console.app import Application


@contextlib.contextmanager
def _bare(name: str) -> Iterator[ModuleType]:
    """While it lasts parts of a package can be imported without the package itself."""
    spec = None if name in sys.modules else find_spec(name)
    if spec is not None:
        sys.modules[name] = module_from_spec(spec)
    try:
        yield sys.modules[name]
    finally:
        if spec is not None:
            del sys.modules[name]


# The package uvicorn is its command line, with click and multiprocessing: a tenth of a cold start, and 3 MiB.
with _bare("uvicorn") as package:
    from uvicorn.config import Config

    package.Config = Config  # type: ignore[attr-defined]  # which a part of it asks the package for
    import uvicorn.lifespan.off  # noqa: F401 - uvicorn finds it by its name
    from uvicorn.protocols.http.h11_impl import H11Protocol
    from uvicorn.server import Server as UvicornServer


CONNECTIONS_AT_ONCE = 200
KEEP_ALIVE_S = 30
LAST_WORDS_S = 1


class Server(UvicornServer):
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
    config = Config(
        application,
        host=host,
        port=port,
        http=H11Protocol,
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
        ssl_ciphers=WITH_FORWARD_SECRECY,  # else uvicorn asks for those of TLS 1.0
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
