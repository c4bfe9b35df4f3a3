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
