"""What talks to a broker from outside: the client library (Client, Producer, Consumer, Admin) and the command line.

    import asyncio
    from client import Consumer, Producer, TopicPartition

Names are loaded on first use, so that a program pays only for what it uses. Nothing is imported here: the command line
comes through here before it has taken Ctrl-C.
"""

TYPE_CHECKING = False
"""As type checkers see it, this is true."""

if TYPE_CHECKING:
    from client import errors
    from client.admin import Admin
    from client.client import Client
    from client.consumer import Consumer
    from client.producer import Producer
    from client.types import ConsumerRecord, Found, Sent, TopicPartition

__all__ = [
    "Admin",
    "Client",
    "Consumer",
    "ConsumerRecord",
    "Found",
    "Producer",
    "Sent",
    "TopicPartition",
    "errors",
]

_HOMES = {
    "Admin": "client.admin",
    "Client": "client.client",
    "Consumer": "client.consumer",
    "ConsumerRecord": "client.types",
    "Found": "client.types",
    "Producer": "client.producer",
    "Sent": "client.types",
    "TopicPartition": "client.types",
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name == "errors":
        return import_module("client.errors")
    if name not in _HOMES:
        raise AttributeError(f"module 'client' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
