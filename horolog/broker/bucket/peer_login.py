"""The login of a broker at another one: an asyncio protocol that speaks SASL first, and then passes the connection on.

The other broker may end a login after a while (connections.max.reauth.ms). The connection is closed shortly before, and the next request
opens another one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

from horolog.base.scram_client import ServerFault
from horolog.broker.cluster.questions import Questions
from horolog.broker.security.peer_access import LoginSteps, PeerUser
from horolog.protocol.errors import ErrorCode, ProtocolError
from horolog.protocol.messages.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from horolog.protocol.wire import Message

HANDSHAKE_VERSION = 1
AUTHENTICATE_VERSION = 1
RENEWED_AFTER = 0.85


class LoginFailed(OSError):
    """Another broker refuses the login of this one, or is not the one that it should be."""


class PeerLogin(asyncio.Protocol):
    """`inner` gets the connection once the login has succeeded; `outcome` says whether it has."""

    def __init__(self, user: PeerUser, inner: asyncio.Protocol, loop: asyncio.AbstractEventLoop) -> None:
        self.outcome: asyncio.Future[None] = loop.create_future()
        self._user = user
        self._inner = inner
        self._loop = loop
        self._questions = Questions()
        self._steps: LoginSteps = user.login()
        self._wire: asyncio.Transport
        self._is_in = False
        self._end: asyncio.TimerHandle | None = None

    def __repr__(self) -> str:
        return f"<PeerLogin of {self._user}, {'in' if self._is_in else 'not yet in'}>"

    # -- events of asyncio's transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._wire = cast("asyncio.Transport", transport)
        self._ask(SaslHandshakeRequest(mechanism=self._user.mechanism), HANDSHAKE_VERSION, self._agreed)

    def data_received(self, data: bytes) -> None:
        if self._is_in:
            self._inner.data_received(data)
            return
        try:
            self._questions.receive(data)
        except ProtocolError as error:
            self._fail(str(error))

    def connection_lost(self, error: Exception | None) -> None:
        if self._end is not None:
            self._end.cancel()
        if self._is_in:
            self._inner.connection_lost(error)
        else:
            self._fail("it has closed the connection")

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()

    # -- the login

    def _ask(self, request: Message, version: int, done: Callable[[Message | None], None]) -> None:
        self._wire.write(self._questions.put(request, version, done)[1])

    def _agreed(self, answer: Message | None) -> None:
        if not isinstance(answer, SaslHandshakeResponse):
            return
        if answer.error_code != ErrorCode.NONE:
            self._fail(f"it does not offer {self._user.mechanism}, but {', '.join(answer.mechanisms) or 'nothing'}")
            return
        self._say(next(self._steps))

    def _say(self, token: bytes) -> None:
        self._ask(SaslAuthenticateRequest(auth_bytes=token), AUTHENTICATE_VERSION, self._answered)

    def _answered(self, answer: Message | None) -> None:
        if not isinstance(answer, SaslAuthenticateResponse):
            return
        if answer.error_code != ErrorCode.NONE:
            self._fail(f"it refuses the login of {self._user.name}: {answer.error_message}")
            return
        try:
            token = self._steps.send(bytes(answer.auth_bytes))
        except StopIteration:
            self._enter(answer.session_lifetime_ms)
        except ServerFault as fault:
            self._fail(str(fault))
        else:
            self._say(token)

    def _enter(self, lifetime_ms: int) -> None:
        self._is_in = True
        if lifetime_ms > 0:
            self._end = self._loop.call_later(lifetime_ms / 1000 * RENEWED_AFTER, self._wire.close)
        if not self.outcome.done():
            self.outcome.set_result(None)
            self._inner.connection_made(self._wire)

    def _fail(self, reason: str) -> None:
        self._wire.abort()
        if not self.outcome.done():
            self.outcome.set_exception(LoginFailed(reason))
