"""Brokers of one process that send each other requests: real frames, no sockets, delivered by the receiver's loop.

A connection keeps the order of frames, as a socket does. When a broker leaves, frames in flight to it or from it are lost,
and requests that wait for its response get None.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from horolog.broker.cluster.questions import Done, Questions
from horolog.broker.network.conversation import Conversation, Onlooker
from horolog.broker.network.dispatch import Dispatcher
from horolog.broker.network.limits import ConnectionLimits
from horolog.protocol.wire import Message


class Loop(Protocol):
    def call_soon(self, callback: Callable[..., object], *arguments: Any) -> Any: ...
    def call_later(self, delay_s: float, callback: Callable[..., object], *arguments: Any) -> Any: ...


class _Line(Onlooker):
    """A connection from one broker to another, and its conversation there."""

    def __init__(self, network: PeerNetwork, asker: Loop, target: _Member) -> None:
        self.questions = Questions()
        self.is_open = True
        self._network = network
        self._asker = asker
        self._target = target
        self._conversation = Conversation(
            target.dispatcher.dispatch, target.limits, target.limits_clock, listener="peers"
        )
        self._conversation.carrier = self

    def send(self, data: bytes) -> None:
        self._network.deliver(self._target.loop, self._arrived, data)

    def _arrived(self, data: bytes) -> None:
        if self.is_open:
            self._conversation.receive(data)

    def output_ready(self) -> None:
        self._network.deliver(self._asker, self._answered, b"".join(self._conversation.take_output()))

    def _answered(self, data: bytes) -> None:
        if self.is_open:
            self.questions.receive(data)

    def cut(self, *, by_asker: bool) -> None:
        """Drop one end: the other notices."""
        self.is_open = False
        if by_asker:
            self._conversation.lost()
        else:
            self.questions.lose()


class _Member:
    """A broker of the network."""

    def __init__(self, dispatcher: Dispatcher, limits: ConnectionLimits, loop: Loop) -> None:
        self.dispatcher = dispatcher
        self.limits = limits
        self.loop = loop

    @staticmethod
    def limits_clock() -> float:
        return 0.0


class PeerNetwork:
    """The members, and the connections between them. `deliver` may be replaced by a slower one."""

    def __init__(self) -> None:
        self._members: dict[int, _Member] = {}
        self._lines: dict[tuple[int, int], _Line] = {}
        self.deliver: Callable[[Loop, Callable[[bytes], None], bytes], object] = _at_once

    def join(self, node: int, dispatcher: Dispatcher, limits: ConnectionLimits, loop: Loop) -> None:
        self._members[node] = _Member(dispatcher, limits, loop)

    def leave(self, node: int) -> None:
        """Remove a broker that has ended."""
        self._members.pop(node, None)
        for ends in [ends for ends in self._lines if node in ends]:
            self._lines.pop(ends).cut(by_asker=ends[0] == node)

    def cut(self, asker: int, target: int) -> None:
        """Break a connection; both ends notice."""
        line = self._lines.pop((asker, target), None)
        if line is not None:
            line.cut(by_asker=True)
            line.cut(by_asker=False)

    def line(self, asker: int, target: int, loop: Loop) -> _Line | None:
        member = self._members.get(target)
        if member is None:
            return None
        if (asker, target) not in self._lines:
            self._lines[asker, target] = _Line(self, loop, member)
        return self._lines[asker, target]


def _at_once(loop: Loop, receive: Callable[[bytes], None], data: bytes) -> None:
    loop.call_soon(receive, data)


class MemoryPeers:
    """One broker's view of the others; a number that is not a broker's sends requests as a client would."""

    def __init__(self, network: PeerNetwork, me: int, loop: Loop) -> None:
        self._network = network
        self._me = me
        self._loop = loop
        self.asked: list[tuple[int, Message]] = []
        """All requests sent, for tests that count them."""

    def ask(self, node: int, request: Message, version: int, done: Done, timeout_ms: int) -> None:
        self.asked.append((node, request))
        line = self._network.line(self._me, node, self._loop)
        if line is None:
            done(None)
            return
        number, frame = line.questions.put(request, version, done)
        self._loop.call_later(timeout_ms / 1000, line.questions.give_up, number)
        line.send(frame)

    def close(self) -> None:
        self._network.leave(self._me)
