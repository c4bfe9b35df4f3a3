"""A real broker inside a test: in this process, on a free port, in memory or in a folder, with a clock that the test sets.

    from horolog.testing import horolog_broker

    async def test_something():
        async with horolog_broker() as broker:
            producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap)
            ...
            broker.clock.advance(days=8)

`broker_in_thread()` is the same for tests that are not asynchronous; pytest finds the fixtures `horolog_broker` and
`horolog` by itself (see `plugin`).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from horolog.testing.clock import BrokerClock
    from horolog.testing.embedded import EmbeddedBroker, horolog_broker
    from horolog.testing.threaded import ThreadedBroker, broker_in_thread

__all__ = ["BrokerClock", "EmbeddedBroker", "ThreadedBroker", "broker_in_thread", "horolog_broker"]

_HOMES = {
    "BrokerClock": "horolog.testing.clock",
    "EmbeddedBroker": "horolog.testing.embedded",
    "ThreadedBroker": "horolog.testing.threaded",
    "broker_in_thread": "horolog.testing.threaded",
    "horolog_broker": "horolog.testing.embedded",
}


def __getattr__(name: str) -> Any:
    """Loaded on first use: the plugin is imported by every run of pytest, the broker only where it is asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module 'horolog.testing' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
