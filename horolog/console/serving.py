"""Serves browsers over HTTP until cancelled."""

import asyncio
import contextlib
import socket
import ssl
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any

from horolog.base.cipher_suites import WITH_FORWARD_SECRECY
from horolog.console.app import Application
from horolog.console.entrance import FIRST_REQUEST_S, Entrance, Greeting, address_of


@contextlib.contextmanager
def _bare(name: str) -> Iterator[ModuleType]:
    """Within the block, parts of a package can be imported without the package itself."""
    spec = None if name in sys.modules else find_spec(name)
    if spec is not None:
        sys.modules[name] = module_from_spec(spec)
    try:
        yield sys.modules[name]
    finally:
        if spec is not None:
            del sys.modules[name]


# Importing the package uvicorn imports its command line, with click and multiprocessing: a tenth of a cold start, and 3 MiB.
with _bare("uvicorn") as package:
    from uvicorn.config import Config

    package.Config = Config  # type: ignore[attr-defined]  # one of its modules imports it from the package
    import uvicorn.lifespan.off  # noqa: F401 - uvicorn looks it up by name
    from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle
    from uvicorn.server import Server as UvicornServer

# Importing the package crc32c reads the version of it, with importlib.metadata and zipfile: 10 ms, and a MiB.
with _bare("crc32c") as package:
    from crc32c._crc32c import crc32c

    package.crc32c = crc32c  # type: ignore[attr-defined]
    import horolog.protocol.records.batch  # noqa: F401 - all pages read records; it takes the function from the package


KEEP_ALIVE_S = 30
LAST_WORDS_S = 1


class Browser(H11Protocol):
    """uvicorn's connection as one of the `Entrance`'s visitors."""

    def __init__(self, entrance: Entrance, **given: Any) -> None:
        super().__init__(**given)
        self._entrance = entrance
        self._deadline: asyncio.TimerHandle | None = None
        self.address = ""

    @property
    def is_idle(self) -> bool:
        """Whether no request of this connection is being answered."""
        cycle: RequestResponseCycle | None = self.cycle  # None before the first request, whatever uvicorn declares
        return cycle is None or cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.address = address_of(transport)
        self._await_request()
        self._entrance.enter(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        self._entrance.leave(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.is_idle and self._deadline is None:
            self._await_request()
        super().data_received(data)
        if not self.is_idle:
            self._stop_waiting()

    def _await_request(self) -> None:
        self._deadline = self.loop.call_later(FIRST_REQUEST_S, self.end)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def end(self) -> None:
        self.transport.abort()


class Server(UvicornServer):
    """A uvicorn server that leaves signals to the command, and connections to the entrance."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.entrance = Entrance()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """As in uvicorn, except that the TLS handshake is within our limits."""
        await self.lifespan.startup()
        loop, context = asyncio.get_running_loop(), self.config.ssl

        def browser() -> asyncio.Protocol:
            return Browser(
                self.entrance, config=self.config, server_state=self.server_state, app_state=self.lifespan.state
            )

        def greeting() -> asyncio.Protocol:
            assert context is not None, "only where there is TLS"
            return Greeting(self.entrance, context, browser)

        made = browser if context is None else greeting
        self.servers = [await loop.create_server(made, sock=one, backlog=self.config.backlog) for one in sockets or ()]
        self.started = True


async def serve(
    application: Application,
    host: str,
    port: int,
    said: Callable[[int], None],
    *,
    certificate: str | None = None,
    key: str | None = None,
) -> None:
    """Serve until cancelled; `said` gets the port. Raises OSError if it cannot listen, ssl.SSLError for an invalid certificate."""
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
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=LAST_WORDS_S,
        h11_max_incomplete_event_size=64 << 10,
        ssl_certfile=certificate,
        ssl_keyfile=key,
        ssl_version=ssl.PROTOCOL_TLS_SERVER,
        ssl_ciphers=WITH_FORWARD_SECRECY,  # uvicorn's default is those of TLS 1.0
    )
    server = Server(config)
    # A socket of our own: if uvicorn cannot listen, it ends the process.
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
    except OSError as error:
        found.close()
        reason = (error.strerror or str(error)).lower()
        text = f"cannot listen on {host}:{port}: {reason}; --listen HOST:PORT names another address"
        raise OSError(text) from error
    return found
