"""The broker's monitoring over HTTP: `/metrics`, `/health`, `/ready`, `/log/TOPIC` and an index."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import asdict
from http import HTTPStatus

from horolog.broker.observability import log_page
from horolog.broker.observability.exposition import Exposition
from horolog.broker.observability.health import readiness
from horolog.broker.observability.http_server import (
    INDEX,
    LOG_PREFIX,
    METRICS_TYPE,
    TEXT_TYPE,
    HttpResponse,
    HttpServer,
    failure,
    json_answer,
)
from horolog.broker.observability.loop_lag import LoopLag
from horolog.broker.observability.watched import Watched
from horolog.version import __version__


class MetricsServer(HttpServer):
    """Serves monitoring, at an address or on the Unix socket of a worker."""

    def __init__(self, broker: Watched, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._broker = broker
        self._exposition = Exposition(broker)
        self._lag = LoopLag(loop, broker.metrics)

    def stop(self) -> None:
        super().stop()
        self._lag.stop()

    def respond(self, path: str, query: str, done: Callable[[HttpResponse], None]) -> None:
        done(log_page.answer(self._broker, path, query) if path.startswith(LOG_PREFIX) else self.answer(path))

    def answer(self, path: str) -> HttpResponse:
        if path == "/metrics":
            return HttpResponse(HTTPStatus.OK, METRICS_TYPE, self._exposition.pieces())
        if path == "/health":
            return json_answer(
                HTTPStatus.OK, {"alive": True, "phase": self._broker.phase.value, "version": __version__}
            )
        if path == "/ready":
            found = readiness(self._broker)
            return json_answer(HTTPStatus.OK if found.ready else HTTPStatus.SERVICE_UNAVAILABLE, asdict(found))
        if path == "/":
            return HttpResponse(HTTPStatus.OK, TEXT_TYPE, [INDEX])
        return failure(HTTPStatus.NOT_FOUND)
