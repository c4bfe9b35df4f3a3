"""A conversation with a service that answers, waits or fails as the first letter of a request says; no socket, no event loop."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from horolog.broker.config.settings import load
from horolog.broker.handlers.context import RequestContext
from horolog.broker.network.conversation import Conversation, Handshake, Onlooker
from horolog.broker.network.limits import ConnectionLimits
from horolog.protocol.errors import ProtocolError
from tests.support.memory_broker import still
from tests.support.request_contexts import request_context


def context_of(frame: memoryview, conversation: Any) -> RequestContext:
    """A request that waits."""
    return request_context(
        connection=conversation, client_id=None, size_bytes=len(frame), holds_frame=frame[:2] == PRODUCE
    )


class Service:
    """Answers every request with its own bytes; those that begin with 'w' or with Produce's key wait, 'x' is not a request, 'e' fails
    and 'n' gets no response.
    """

    def __init__(self) -> None:
        self.waiting: list[RequestContext] = []
        self.seen: list[bytes] = []
        self.principals: list[str] = []

    def serve(self, frame: memoryview, conversation: Any) -> RequestContext:
        body = bytes(frame)
        self.seen.append(body)
        context = context_of(frame, conversation)
        self.principals.append(str(context.principal))
        if body[:1] == b"x":
            raise ProtocolError("unknown api key 120")
        if body[:1] == b"e":
            raise ZeroDivisionError("a bug")
        if body[:1] == b"w" or body[:2] == PRODUCE:
            self.waiting.append(context)
        else:
            context.parts = [] if body[:1] == b"n" else [body]
        return context


PRODUCE = b"\0\0"
"""How a Produce request begins."""


class Peer(Onlooker):
    """Accepts responses at once, or leaves them: `unsent_bytes` are left in its socket."""

    unsent_bytes = 0

    def __init__(self, conversation: Conversation) -> None:
        self.conversation = conversation
        self.answers: list[bytes] = []
        self.changes: list[tuple[bool, bool, bool]] = []
        conversation.carrier = self

    def output_ready(self) -> None:
        self.answers += map(bytes, self.conversation.take_output())

    def state_changed(self) -> None:
        """The calls so far about reading, turns and the end."""
        told = self.conversation
        self.changes.append((told.wants_to_read, told.wants_turn, told.closing))


def framed(*bodies: bytes) -> bytes:
    return b"".join(struct.pack(">i", len(body)) + body for body in bodies)


def limits(**chosen: int) -> ConnectionLimits:
    settings, _ = load(None, {}, {key.replace("_", "."): str(value) for key, value in chosen.items()})
    return ConnectionLimits.of(settings)


def talk(
    shared: ConnectionLimits | None = None,
    monotonic: Callable[[], float] = still,
    handshake: Handshake | None = None,
    **chosen: int,
) -> tuple[Conversation, Service]:
    """A conversation without a carrier yet."""
    service = Service()
    shared = shared or limits(**chosen)
    return Conversation(service.serve, shared, monotonic, listener="PLAINTEXT", handshake=handshake), service


def finish(context: RequestContext, body: bytes) -> None:
    """Answer a request that waited."""
    context.parts = [body]
    context.connection.answered()
