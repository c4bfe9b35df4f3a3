"""Runs a real broker inside a test: in this process, on a free port, in memory or in a folder, with a clock that the test sets.

    from horolog.testing import horolog_broker

    async def test_something():
        async with horolog_broker() as broker:
            producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap)
            ...
            await broker.expect("orders", count=3)
            await broker.clock.advance("8 days")
            with broker.faults.refuse("NOT_ENOUGH_REPLICAS", "produce", times=1):
                ...

`broker_in_thread()` is the same for synchronous tests, and `horolog_cluster()` and `cluster_in_thread()` are several brokers
that are one cluster; `horolog_registry()` is a schema registry beside them; pytest finds the fixtures `horolog_broker`, `horolog_async`, `horolog_cluster` and `horolog` by itself (see `plugin`); `BrokerTestCase` and `AsyncBrokerTestCase` are for unittest; `horolog test-broker` (see
`command` and `control`) is for every other language.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from horolog.testing.cases import AsyncBrokerTestCase, BrokerTestCase
    from horolog.testing.clock import BrokerClock
    from horolog.testing.clustered import EmbeddedCluster, horolog_cluster
    from horolog.testing.embedded import EmbeddedBroker, horolog_broker
    from horolog.testing.fault import Fault
    from horolog.testing.matching import ExpectationFailed
    from horolog.testing.reading import Seen
    from horolog.testing.registry_server import (
        EmbeddedRegistry,
        ThreadedRegistry,
        horolog_registry,
        registry_in_thread,
    )
    from horolog.testing.threaded import ThreadedBroker, broker_in_thread
    from horolog.testing.threaded_cluster import ThreadedCluster, cluster_in_thread

__all__ = [
    "AsyncBrokerTestCase",
    "BrokerClock",
    "BrokerTestCase",
    "EmbeddedBroker",
    "EmbeddedCluster",
    "EmbeddedRegistry",
    "ExpectationFailed",
    "Fault",
    "Seen",
    "ThreadedBroker",
    "ThreadedCluster",
    "ThreadedRegistry",
    "broker_in_thread",
    "cluster_in_thread",
    "horolog_broker",
    "horolog_cluster",
    "horolog_registry",
    "registry_in_thread",
]

_HOMES = {
    "AsyncBrokerTestCase": "horolog.testing.cases",
    "BrokerClock": "horolog.testing.clock",
    "BrokerTestCase": "horolog.testing.cases",
    "EmbeddedBroker": "horolog.testing.embedded",
    "EmbeddedCluster": "horolog.testing.clustered",
    "EmbeddedRegistry": "horolog.testing.registry_server",
    "ExpectationFailed": "horolog.testing.matching",
    "Fault": "horolog.testing.fault",
    "Seen": "horolog.testing.reading",
    "ThreadedBroker": "horolog.testing.threaded",
    "ThreadedCluster": "horolog.testing.threaded_cluster",
    "ThreadedRegistry": "horolog.testing.registry_server",
    "broker_in_thread": "horolog.testing.threaded",
    "cluster_in_thread": "horolog.testing.threaded_cluster",
    "horolog_broker": "horolog.testing.embedded",
    "horolog_cluster": "horolog.testing.clustered",
    "horolog_registry": "horolog.testing.registry_server",
    "registry_in_thread": "horolog.testing.registry_server",
}


def __getattr__(name: str) -> Any:
    """Load on first use: every run of pytest imports the plugin, but only some use the broker."""
    if name not in _HOMES:
        raise AttributeError(f"module 'horolog.testing' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
