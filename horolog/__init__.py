"""A message broker that speaks Kafka's protocol and finds data by time, with a client library and a command line.

    from horolog import Admin, Consumer, Producer, TopicPartition

Names are loaded on first use, so that a program pays only for what it uses. Nothing is imported here: the command line
comes through here before it has taken Ctrl-C.

- `horolog.base`: what all packages use
- `horolog.protocol`: Kafka's messages and records as values and bytes; no socket, no clock
- `horolog.broker`: the partition log and the server in front of it
- `horolog.client`: the client library, and the command line in `horolog.client.cli`
- `horolog.commands`: what commands of several packages share
- `horolog.testing`: a broker inside a test
- `horolog.pipeline`: jobs and data sources for Spark (the extra `pipeline`)
"""

TYPE_CHECKING = False
"""As type checkers see it, this is true."""

if TYPE_CHECKING:
    from horolog.client.admin.admin import Admin
    from horolog.client.consuming.consumer import Consumer
    from horolog.client.producing.producer import Producer
    from horolog.client.security import Security
    from horolog.client.values import errors
    from horolog.client.values.types import ConsumerRecord, Found, Sent, TopicPartition
    from horolog.client.wire.client import Client
    from horolog.version import __version__

__all__ = [
    "Admin",
    "Client",
    "Consumer",
    "ConsumerRecord",
    "Found",
    "Producer",
    "Security",
    "Sent",
    "TopicPartition",
    "__version__",
    "errors",
]

_HOMES = {
    "Admin": "horolog.client.admin.admin",
    "Client": "horolog.client.wire.client",
    "Consumer": "horolog.client.consuming.consumer",
    "ConsumerRecord": "horolog.client.values.types",
    "Found": "horolog.client.values.types",
    "Producer": "horolog.client.producing.producer",
    "Security": "horolog.client.security",
    "Sent": "horolog.client.values.types",
    "TopicPartition": "horolog.client.values.types",
    "__version__": "horolog.version",
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name == "errors":
        return import_module("horolog.client.values.errors")
    if name not in _HOMES:
        raise AttributeError(f"module 'horolog' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
