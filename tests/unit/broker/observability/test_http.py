"""What a broker tells those who watch it, and that it says when it is not ready."""

import asyncio
import json
from contextlib import asynccontextmanager

from horolog.broker.cluster.new_topics import NewTopic
from horolog.broker.log.partition import SERVING
from horolog.broker.observability import http
from horolog.broker.observability.phase import Phase
from tests.support.at_once import at_once
from tests.support.http_asking import get
from tests.support.memory_broker import MemoryBroker


@asynccontextmanager
async def running(**settings):
    async with MemoryBroker(horolog_http_listen="127.0.0.1:0", **settings) as machine:
        yield machine.broker


async def test_health_ready_and_index():
    async with running() as broker:
        status, head, body = await get(broker.metrics_server.port, "/health")
        assert status == 200
        assert "application/json" in head
        assert json.loads(body)["alive"] is True
        status, _, body = await get(broker.metrics_server.port, "/ready?verbose=1")
        assert status == 200
        assert json.loads(body) == {"ready": True, "phase": "ready", "reasons": [], "warnings": []}
        status, _, body = await get(broker.metrics_server.port, "/")
        assert status == 200
        assert {"/metrics", "/health", "/ready"} <= set(body.split())


async def test_there_is_nothing_else():
    async with running() as broker:
        assert (await get(broker.metrics_server.port, "/nothing"))[0] == 404


async def test_not_ready_says_why():
    async with running() as broker:
        broker.phase = Phase.STOPPING
        status, _, body = await get(broker.metrics_server.port, "/ready")
        assert status == 503
        assert json.loads(body)["reasons"] == ["the broker is stopping"]
        assert (await get(broker.metrics_server.port, "/health"))[0] == 200


async def test_an_offline_internal_partition_keeps_clients_away_and_another_warns():
    async with running() as broker:
        at_once(broker.cluster.create_topics, [NewTopic("t", 1, 1, {})])
        broker.cluster.topics["t"].find(0).condition.go_offline("no disk")
        status, _, body = await get(broker.metrics_server.port, "/ready")
        assert status == 200
        assert json.loads(body)["warnings"] == ["t-0 is offline: no disk"]
        topic = broker.cluster.topics["t"]
        topic.internal = True
        status, _, body = await get(broker.metrics_server.port, "/ready")
        assert status == 503
        assert json.loads(body)["reasons"] == ["t-0 is offline: no disk"]
        topic.find(0).condition.state = SERVING


async def test_a_stopped_partition_is_told_too():
    async with running() as broker:
        at_once(broker.cluster.create_topics, [NewTopic("t", 1, 1, {})])
        partition = broker.cluster.topics["t"].find(0)
        partition.condition.stop("a sync has failed")
        status, _, body = await get(broker.metrics_server.port, "/ready")
        partition.condition.state = SERVING
        assert status == 200
        assert json.loads(body)["warnings"] == ["t-0 accepts no appends: a sync has failed"]


async def test_without_an_address_there_is_no_server():
    async with MemoryBroker() as machine:
        assert machine.broker.metrics_server is None


async def test_a_long_answer_is_written_in_pieces(monkeypatch):
    monkeypatch.setattr("horolog.broker.observability.exposition.SAMPLES_PER_PIECE", 10)
    async with running() as broker:
        at_once(broker.cluster.create_topics, [NewTopic("t", 50, 1, {})])
        status, _, body = await get(broker.metrics_server.port, "/metrics")
        assert status == 200
        assert 'horolog_partition_end_offset{topic="t",partition="49"} 0' in body
        assert body.endswith("\n")


async def test_a_server_that_never_began_is_stopped_without_harm():
    async with MemoryBroker() as machine:
        http.MetricsServer(machine.broker, asyncio.get_running_loop()).stop()


async def test_a_worker_answers_on_a_unix_socket(tmp_path):
    async with running() as broker:
        server = http.MetricsServer(broker, asyncio.get_running_loop())
        await server.start_unix(f"{tmp_path}/1.http")
        reader, writer = await asyncio.open_unix_connection(f"{tmp_path}/1.http")
        writer.write(b"GET /health HTTP/1.0\r\n\r\n")
        async with asyncio.timeout(60):
            assert b'"alive": true' in await reader.read()
        writer.close()
        server.stop()
