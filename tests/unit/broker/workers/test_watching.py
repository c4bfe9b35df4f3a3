"""The supervisor answers for all workers: figures with their numbers, and why they are not ready."""

import asyncio
import json
from types import SimpleNamespace

import pytest

from horolog.broker.base.backup_figures import BackupFigures
from horolog.broker.observability.http_server import HttpResponse, HttpServer, HTTPStatus, json_answer
from horolog.broker.observability.phase import Phase
from horolog.broker.workers import watching
from horolog.broker.workers.watching import FAMILIES, WorkersServer, ask
from horolog.broker.workers.worker_process import Down, ProcessEnd
from tests.support.http_asking import get
from tests.support.waiting import until


class Worker(HttpServer):
    """What a worker answers, and what the supervisor knows of it."""

    def __init__(self, number, folder, *, reasons=(), why_not_ready=None):
        super().__init__(asyncio.get_running_loop())
        self.number = number
        self.starts = 1
        self.last_absence_s = 0.25
        self.down = None
        self.down_s = 0.0
        self.http_socket = f"{folder}/{number}.http"
        self.reasons = list(reasons)
        self.why_not_ready = why_not_ready
        self.queries = []
        self.log = json_answer(HTTPStatus.OK, {"topic": "t", "partitions": [{"partition": 2 - number}]})

    @property
    def state(self):
        return "ready" if self.why_not_ready is None else "starting"

    def respond(self, path, query, done):
        if path.startswith("/log/"):
            self.queries.append(query)
            done(self.log)
        elif path == "/metrics":
            text = f"# HELP horolog_stores Stores.\n# TYPE horolog_stores gauge\nhorolog_stores {self.number}\n"
            done(HttpResponse(HTTPStatus.OK, "text/plain", [text.encode()]))
        else:
            ready = {"ready": not self.reasons, "phase": "ready", "reasons": self.reasons, "warnings": ["open"]}
            done(json_answer(HTTPStatus.OK, ready))


@pytest.fixture
async def crew(tmp_path):
    workers = [Worker(1, tmp_path), Worker(2, tmp_path)]
    for worker in workers:
        await worker.start_unix(worker.http_socket)
    crew = SimpleNamespace(phase=Phase.READY, workers=workers, backup_figures=lambda: None)
    crew.server = WorkersServer(crew, asyncio.get_running_loop())
    await crew.server.start("127.0.0.1", 0)
    yield crew
    for one in (crew.server, *workers):
        one.stop()


async def asked(crew, path):
    status, _, body = await get(crew.server.port, path)
    return status, body


async def test_figures_of_all_and_of_the_supervisor(crew):
    status, body = await asked(crew, "/metrics")
    assert status == 200
    assert 'horolog_stores{worker="1"} 1\nhorolog_stores{worker="2"} 2\n' in body
    assert 'horolog_worker_info{worker="2",state="ready"} 1' in body
    assert 'horolog_worker_starts_total{worker="1"} 1' in body
    assert 'horolog_worker_last_absence_seconds{worker="1"} 0.25' in body
    assert all(f"# TYPE {family.shown} " in body for family in FAMILIES)


async def test_ready_if_all_are(crew):
    status, body = await asked(crew, "/ready")
    assert (status, json.loads(body)) == (200, {"ready": True, "phase": "ready", "reasons": [], "warnings": ["open"]})


async def test_reasons_of_a_worker_and_of_the_supervisor(crew):
    crew.workers[0].reasons.append("no disk")
    crew.workers[1].why_not_ready = "it is starting"
    status, body = await asked(crew, "/ready")
    assert (status, json.loads(body)["reasons"]) == (503, ["worker 1: no disk", "worker 2: it is starting"])
    status, body = await asked(crew, "/metrics")
    assert 'worker="1"} 1' in body
    assert 'horolog_stores{worker="2"}' not in body
    assert 'horolog_worker_info{worker="2",state="starting"} 1' in body


async def test_a_worker_that_does_not_answer_is_not_ready(crew, monkeypatch, caplog):
    monkeypatch.setattr(watching, "ANSWERS_WITHIN_S", 0.05)
    crew.workers[1].respond = lambda path, query, done: None
    status, body = await asked(crew, "/ready")
    assert (status, json.loads(body)["reasons"]) == (503, ["worker 2: it does not answer"])
    assert "does not respond to /ready" in caplog.text


async def test_a_worker_without_a_socket_says_nothing(tmp_path):
    assert await ask(f"{tmp_path}/none", "/ready") == b""


async def test_health_asks_nobody(crew):
    for worker in crew.workers:
        worker.stop()
    status, body = await asked(crew, "/health")
    told = json.loads(body)
    assert (status, told["alive"], told["phase"]) == (200, True, "ready")
    assert told["workers"] == {"1": "ready", "2": "ready"}


async def test_health_tells_who_is_down(crew):
    crew.workers[1].down = Down(1_700_000_000_000, 1_700_000_004_000, ProcessEnd(-9))
    crew.workers[1].down_s = 2.5
    status, body = await asked(crew, "/health")
    told = json.loads(body)
    assert (status, told["alive"]) == (503, True)
    assert told["down"] == {
        "2": {
            "since": "2023-11-14T22:13:20Z",
            "next_try": "2023-11-14T22:13:24Z",
            "reason": "it was ended by SIGKILL",
        }
    }
    assert 'horolog_worker_down_seconds{worker="2"} 2.5' in (await asked(crew, "/metrics"))[1]


async def test_index_and_strangers(crew):
    status, body = await asked(crew, "/")
    assert (status, {"/metrics", "/health", "/ready"} <= set(body.split())) == (200, True)
    assert (await asked(crew, "/nothing"))[0] == 404


async def test_the_page_of_a_topic_has_the_partitions_of_all_workers(crew):
    status, body = await asked(crew, "/log/t?at=1,2")
    parts = [{"partition": 0}, {"partition": 1}]
    assert (status, json.loads(body)) == (200, {"topic": "t", "partitions": parts, "unanswered": []})
    assert crew.workers[0].queries == crew.workers[1].queries == ["at=1,2"]
    crew.workers[0].stop()
    status, body = await asked(crew, "/log/t")
    assert (status, json.loads(body)["partitions"], json.loads(body)["unanswered"]) == (200, [{"partition": 0}], [1])
    crew.workers[1].log = json_answer(HTTPStatus.NOT_FOUND, {"error": "no"})
    assert await asked(crew, "/log/t") == (404, '{"error": "no"}\n')
    crew.workers[1].stop()
    assert (await asked(crew, "/log/t"))[0] == 503


async def test_a_stop_waits_for_no_worker(crew):
    crew.workers[1].respond = lambda path, query, done: None
    asking = asyncio.create_task(asked(crew, "/ready"))
    await until(lambda: crew.server._asking)
    crew.server.stop()
    await asyncio.gather(asking, return_exceptions=True)
    await until(lambda: not crew.server._asking)


async def test_the_backup_of_all_workers_is_shown_once(crew):
    crew.backup_figures = lambda: BackupFigures(1.5, 3, 400, 2)
    _, _, shown = await get(crew.server.port, "/metrics")
    assert "\nhorolog_backup_age_seconds 1.5\n" in shown
    assert shown.count("# TYPE horolog_backup_bytes_total") == 1


async def test_a_backup_that_fails_is_a_warning_of_all_workers(crew):
    crew.backup_figures = lambda: BackupFigures(70.0, 3, 400, 2, "the store is away")
    _, _, shown = await get(crew.server.port, "/ready")
    assert json.loads(shown)["warnings"][-1] == "the backup fails: the store is away; its newest moment is 70 s old"
