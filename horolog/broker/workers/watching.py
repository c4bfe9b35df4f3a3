"""Health, readiness and metrics of all workers over HTTP: the supervisor asks each of them and answers for all."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator, Sequence
from http import HTTPStatus
from typing import Protocol

from horolog.broker.base import backup_figures
from horolog.broker.base.backup_figures import BackupFigures
from horolog.broker.base.metrics import Described, Kind, Samples, lines
from horolog.broker.base.unix_sockets import reachable
from horolog.broker.observability.http_server import (
    INDEX,
    JSON_TYPE,
    LOG_PREFIX,
    METRICS_TYPE,
    TEXT_TYPE,
    HttpResponse,
    HttpServer,
    failure,
    json_answer,
)
from horolog.broker.observability.phase import Phase
from horolog.broker.workers import merged
from horolog.broker.workers.worker_process import Down, shown
from horolog.version import __version__

log = logging.getLogger(__name__)

ANSWERS_WITHIN_S = 5.0

WORKER = ("worker",)
WORKER_INFO = Described("worker_info", Kind.GAUGE, "1 for the current state of each worker.", ("worker", "state"))
STARTS = Described("worker_starts_total", Kind.COUNTER, "Number of starts of each worker.", WORKER)
ABSENCE = Described(
    "worker_last_absence_seconds", Kind.GAUGE, "Time without the worker when it was last replaced.", WORKER
)
DOWN_FOR = Described(
    "worker_down_seconds",
    Kind.GAUGE,
    "Time for which a worker that keeps ending has been down. 0 while it is not.",
    WORKER,
)
FAMILIES = (WORKER_INFO, STARTS, ABSENCE, DOWN_FOR)


class WatchedWorker(Protocol):
    """A worker's process, seen from here."""

    number: int
    starts: int
    last_absence_s: float
    down: Down | None

    @property
    def down_s(self) -> float: ...

    @property
    def state(self) -> str:
        """Its phase, in a word."""
        ...

    @property
    def why_not_ready(self) -> str | None:
        """As far as the supervisor knows: None where the worker itself is to be asked."""
        ...

    @property
    def http_socket(self) -> str: ...


class WatchedCrew(Protocol):
    """The supervisor, seen from here."""

    phase: Phase

    @property
    def workers(self) -> Sequence[WatchedWorker]: ...

    def backup_figures(self) -> BackupFigures | None:
        """What the backup of all workers shows; None without one."""
        ...


class WorkersServer(HttpServer):
    """`/metrics`, `/health`, `/ready`, `/log/TOPIC` and an index, as one process has them."""

    def __init__(self, crew: WatchedCrew, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._crew = crew
        self._asking: set[asyncio.Task[None]] = set()

    def stop(self) -> None:
        super().stop()
        for task in self._asking:
            task.cancel()

    def respond(self, path: str, query: str, done: Callable[[HttpResponse], None]) -> None:
        if path in {"/metrics", "/ready"}:
            self._begin(self._ask_all(path, done))
        elif path.startswith(LOG_PREFIX):
            self._begin(self._ask_for_logs(f"{path}?{query}" if query else path, done))
        elif path == "/health":
            done(self._health())
        elif path == "/":
            done(HttpResponse(HTTPStatus.OK, TEXT_TYPE, [INDEX]))
        else:
            done(failure(HTTPStatus.NOT_FOUND))

    def _health(self) -> HttpResponse:
        """Healthy unless a worker is down; a worker that is being replaced is not down."""
        workers = self._crew.workers
        down = {str(one.number): _told(one.down) for one in workers if one.down is not None}
        alive = {
            "alive": True,
            "phase": self._crew.phase.value,
            "version": __version__,
            "workers": {str(one.number): one.state for one in workers},
            "down": down,
        }
        return json_answer(HTTPStatus.SERVICE_UNAVAILABLE if down else HTTPStatus.OK, alive)

    def _begin(self, asking: Coroutine[None, None, None]) -> None:
        task = self._loop.create_task(asking)
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    async def _ask_for_logs(self, target: str, done: Callable[[HttpResponse], None]) -> None:
        """The page of a topic. It lacks the partitions of workers that do not answer, and names these."""
        workers = list(self._crew.workers)
        answers = await asyncio.gather(*(ask_whole(one.http_socket, target) for one in workers))
        by_number = {one.number: answer for one, answer in zip(workers, answers, strict=True)}
        status, body = await asyncio.to_thread(merged.logs, by_number)
        done(HttpResponse(HTTPStatus(status), JSON_TYPE, [body]))

    async def _ask_all(self, path: str, done: Callable[[HttpResponse], None]) -> None:
        asked = [one for one in self._crew.workers if one.why_not_ready is None]
        answers = await asyncio.gather(*(ask(one.http_socket, path) for one in asked))
        by_number = {one.number: answer for one, answer in zip(asked, answers, strict=True)}
        done(self._metrics(by_number) if path == "/metrics" else self._ready(by_number))

    def _metrics(self, answers: dict[int, bytes]) -> HttpResponse:
        texts = {number: answer.decode("utf-8", "replace") for number, answer in answers.items()}
        return HttpResponse(HTTPStatus.OK, METRICS_TYPE, (piece.encode() for piece in self._pieces(texts)))

    def _pieces(self, texts: dict[int, str]) -> Iterator[str]:
        yield from merged.expositions(texts)
        for family, samples in self._own():
            yield "".join(lines(family, samples))

    def _own(self) -> Iterator[tuple[Described, Samples]]:
        """The supervisor's own metrics of the workers."""
        workers = self._crew.workers
        yield WORKER_INFO, [((str(one.number), one.state), 1) for one in workers]
        yield STARTS, [((str(one.number),), one.starts) for one in workers]
        yield ABSENCE, [((str(one.number),), one.last_absence_s) for one in workers]
        yield DOWN_FOR, [((str(one.number),), one.down_s) for one in workers]
        yield from backup_figures.collect(self._crew.backup_figures())

    def _ready(self, answers: dict[int, bytes]) -> HttpResponse:
        workers: dict[int, merged.WorkerReadiness] = {}
        for one in self._crew.workers:
            reason = one.why_not_ready
            unready = merged.WorkerReadiness(ready=False, reasons=[reason or "it does not answer"])
            workers[one.number] = merged.said(answers[one.number]) if one.number in answers else unready
        backup = self._crew.backup_figures()
        of_all = () if backup is None else backup.warnings()
        found = merged.readiness(self._crew.phase.value, workers, of_all)
        return json_answer(HTTPStatus.OK if found["ready"] else HTTPStatus.SERVICE_UNAVAILABLE, found)


def _told(down: Down) -> dict[str, str]:
    """Why a worker is down and since when, for JSON."""
    return {
        "since": shown(down.since_ms),
        "next_try": shown(down.next_try_ms),
        "reason": f"it {down.ending}",
    }


async def ask(path_of_socket: str, path: str) -> bytes:
    """The body of a worker's response; empty if there is none."""
    return (await ask_whole(path_of_socket, path))[1]


async def ask_whole(path_of_socket: str, path: str) -> tuple[int, bytes]:
    """The status and the body of a worker's response; 0 and empty if there is none."""
    try:
        async with asyncio.timeout(ANSWERS_WITHIN_S):
            with reachable(path_of_socket) as at:
                reader, writer = await asyncio.open_unix_connection(at)
            try:
                writer.write(f"GET {path} HTTP/1.0\r\n\r\n".encode("ascii"))
                answer = await reader.read()
            finally:
                writer.close()
    except (OSError, TimeoutError) as error:
        log.warning("a worker does not respond to %s at %s: %s", path, path_of_socket, error)
        return 0, b""
    head, _, body = answer.partition(b"\r\n\r\n")
    status = head.split(b" ", 2)[1:2]
    return (int(status[0]) if status and status[0].isdigit() else 0), body
