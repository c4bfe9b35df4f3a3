"""The handshake of a SASL listener: passes on the requests that are allowed before login, and ends any other conversation.

Requests take the usual way, to `handlers.sasl`, which asks the conversation's login. Bare tokens without a request around them, as
clients of the first versions send them, are answered here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from horolog.broker.handlers import HANDLERS
from horolog.broker.handlers.context import RequestContext
from horolog.broker.security.sasl.login import Login, LoginRefused, Stage
from horolog.protocol.apis import API, ApiKey
from horolog.protocol.errors import ProtocolError
from horolog.protocol.framing import read_request_header

if TYPE_CHECKING:
    from collections.abc import Callable

    from horolog.broker.handlers.throttling import Throttle
    from horolog.broker.network.conversation import Conversation, Serve
    from horolog.broker.security.sasl.door import SaslDoor
    from horolog.protocol.primitives import Part

SIZE_BYTES: Final = 4
_API_VERSIONS: Final = HANDLERS[ApiKey.API_VERSIONS]


class SaslHandshake:
    """The `conversation.Handshake` of one connection."""

    __slots__ = ("_dispatch", "_login")

    def __init__(self, door: SaslDoor, dispatch: Serve) -> None:
        self._login = Login(door)
        self._dispatch = dispatch

    @property
    def max_unfinished_bytes(self) -> int:
        return self._login.door.max_receive_bytes + SIZE_BYTES

    def serve(self, frame: memoryview, conversation: Conversation) -> RequestContext:
        login = self._login
        conversation.login = login
        login.peer_host = conversation.peer_host
        if len(frame) > login.door.max_receive_bytes:
            raise ProtocolError(
                f"a request of {len(frame)} bytes before the login, more than sasl.server.max.receive.size"
            )
        if login.takes_raw_tokens:
            context = self._take_token(frame, conversation)
        else:
            key, version = read_request_header(frame)[:2]
            if not login.may_come(key):
                raise ProtocolError(f"{_name(key)} is not allowed before the login is complete ({login.stage.value})")
            context = self._dispatch(frame, conversation)
            if key == ApiKey.API_VERSIONS and _API_VERSIONS.min_version <= version <= _API_VERSIONS.max_version:
                login.versions_told()
        if login.stage is Stage.KNOWN and login.principal is not None:
            conversation.serve_as(login.principal, self._serve_while_it_lasts if login.ends else None)
        return context

    def _serve_while_it_lasts(self, frame: memoryview, conversation: Conversation) -> RequestContext:
        """Serve a request of a peer whose login ends at some time."""
        login = self._login
        if login.stage is not Stage.KNOWN:
            return self.serve(frame, conversation)  # it authenticates again
        if read_request_header(frame)[0] == ApiKey.SASL_HANDSHAKE and login.begins_anew():
            return self.serve(frame, conversation)
        if login.has_ended():
            raise ProtocolError(f"the login of {login.principal} has expired")
        return self._dispatch(frame, conversation)

    def _take_token(self, frame: memoryview, conversation: Conversation) -> RequestContext:
        login = self._login
        context = RequestContext(conversation, _TOKENS, 0, None, len(frame), 0.0)
        outcome = login.prove(bytes(frame))
        if isinstance(outcome, LoginRefused):
            context.on_abandoned = login.door.later(
                login.door.delay_s(login.peer_host), lambda: _end(conversation)
            ).cancel
        else:
            context.parts = [len(outcome.token).to_bytes(SIZE_BYTES, "big") + outcome.token]
        return context


def _end(conversation: Conversation) -> None:
    """Bare tokens have no form for an error, so the reason cannot be sent."""
    conversation.close("the login failed")


def _name(api_key: int) -> str:
    try:
        return API[ApiKey(api_key)].name
    except (KeyError, ValueError):
        return f"api key {api_key}"


class _Tokens:
    """Stands in for a route where there is no request."""

    name = "SaslToken"
    version = 0
    response_header_version = 0
    holds_frame = False
    throttle: Throttle | None = None

    @property
    def encode(self) -> Callable[[object, list[Part]], None]:
        raise NotImplementedError("a token is its own answer")

    @property
    def meter(self) -> _Tokens:
        return self

    def answered(self, response: object, size_bytes: int, began: float) -> None:
        """Tokens are not counted as requests."""

    def not_answered(self, began: float) -> None:
        """A token always gets an answer, or the connection is closed."""


_TOKENS: Final = _Tokens()
