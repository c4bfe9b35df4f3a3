"""Why the cluster refuses something: one family of exceptions, each with its code on the wire."""

from __future__ import annotations

from horolog.protocol.errors import ErrorCode


class ClusterError(Exception):
    """A request that cannot be fulfilled, with Kafka's error code and a sentence for people."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message

    def __repr__(self) -> str:
        return f"ClusterError({self.code.name}, {self.message!r})"


def not_registered(node: int) -> ClusterError:
    """The error for a number that no broker of the cluster has; the message is Kafka's."""
    return ClusterError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker ID {node} is not currently registered")


def still_running(node: int) -> ClusterError:
    """The error for a broker that is to be unregistered while it runs."""
    return ClusterError(ErrorCode.INVALID_REQUEST, f"broker {node} is running: stop it, and it leaves the cluster")
