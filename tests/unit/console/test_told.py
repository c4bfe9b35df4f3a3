"""Segments come with a page where the broker tells them; elsewhere a sentence says why not, and nobody waits twice."""

import asyncio

from horolog import Client
from horolog.client.segments.segments_look import HttpAccess
from horolog.console import told
from horolog.console.options import Cluster
from horolog.console.told import segments_of
from horolog.testing import horolog_broker, horolog_cluster
from tests.support.console_browser import topic_with

NOW_MS = 1_700_000_000_000


async def asked(client, http=None, partitions=(0, 1)):
    topic = (await client.metadata(["t"])).topics["t"]
    return await segments_of(client, Cluster("c", "", None, http), topic, partitions, [NOW_MS])


async def test_a_horolog_tells():
    async with horolog_broker(horolog_http_listen="127.0.0.1:0") as broker, Client(broker.bootstrap) as client:
        await topic_with(client, "t", [(NOW_MS, b"x")], 2)
        found, why = await asked(client)
        assert (sorted(found.partitions), why) == ([0, 1], "")
        partition = broker.broker.cluster.topics["t"].find(1)
        broker.broker.cluster.topics["t"].put(1, None)
        assert await asked(client) == (None, "some partitions do not report their segments now")
        broker.broker.cluster.topics["t"].put(1, partition)
        assert (await asked(client, partitions=(0, 5)))[1].endswith(
            "does not know this topic, or is older than this page"
        )


async def test_each_broker_of_a_cluster_is_asked_for_what_it_leads():
    async with horolog_cluster(horolog_http_listen="127.0.0.1:0") as cluster, Client(cluster.bootstrap) as client:
        await topic_with(client, "t", [(NOW_MS, b"x")], 3)
        found, why = await asked(client, partitions=range(3))
        assert (sorted(found.partitions), why) == ([0, 1, 2], "")


async def test_one_that_does_not():
    async with horolog_broker() as broker, Client(broker.bootstrap) as client:
        await topic_with(client, "t", [(NOW_MS, b"x")], 2)
        found, why = await asked(client)
        assert (found, "no HTTP port" in why) == (None, True)


async def test_a_port_that_is_silent_costs_one_page_its_wait(monkeypatch):
    monkeypatch.setattr(told, "REACHED_WITHIN_MS", 50)
    connections = []

    async def silent(reader, writer):
        connections.append(writer)
        await reader.read()
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with horolog_broker() as broker, Client(broker.bootstrap) as client:
        await topic_with(client, "t", [(NOW_MS, b"x")], 2)
        for _ in range(3):
            found, why = await asked(client, HttpAccess(f"http://127.0.0.1:{port}"))
            assert (found, "did not answer" in why) == (None, True)
    assert len(connections) == 1
    server.close()
