"""SaslHandshake 0-1 and SaslAuthenticate 0-2: login on SASL listeners.

- `security.sasl.login` decides beforehand which of them is allowed; this module answers them.
- A login that fails is answered after `connection.failed.authentication.delay.ms`, and its connection closed.
- On a listener without SASL, or once the peer is known: ILLEGAL_SASL_STATE, no mechanism to choose; the connection stays open, as on
  real brokers.
Not done: GSSAPI.
"""

from __future__ import annotations

from horolog.broker.handlers.context import BrokerView, RequestContext
from horolog.broker.security.sasl.login import Login, LoginRefused, Stage
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

NOT_HERE = "this listener does not use authentication"
KNOWN = "SaslAuthenticate request received after successful authentication"


def handshake(
    broker: BrokerView,  # noqa: ARG001
    request: SaslHandshakeRequest,
    context: RequestContext,
) -> SaslHandshakeResponse | None:
    login = context.connection.login
    if login is None or login.stage is Stage.KNOWN:
        return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, mechanisms=[])
    login.client_id = context.client_id
    mechanisms = list(login.door.mechanisms)
    if login.choose(request.mechanism, context.version):
        return SaslHandshakeResponse(error_code=ErrorCode.NONE, mechanisms=mechanisms)
    _refuse_late(
        login,
        SaslHandshakeResponse(error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=mechanisms),
        context,
    )
    return None


def authenticate(
    broker: BrokerView,  # noqa: ARG001
    request: SaslAuthenticateRequest,
    context: RequestContext,
) -> SaslAuthenticateResponse | None:
    login = context.connection.login
    if login is None or login.stage is not Stage.CHOSEN:
        told = NOT_HERE if login is None else KNOWN
        return SaslAuthenticateResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message=told, auth_bytes=b"")
    outcome = login.prove(bytes(request.auth_bytes))
    if isinstance(outcome, LoginRefused):
        code = ErrorCode.SASL_AUTHENTICATION_FAILED
        refusal = SaslAuthenticateResponse(error_code=code, error_message=outcome.told, auth_bytes=b"")
        _refuse_late(login, refusal if outcome.told else None, context)
        return None
    return SaslAuthenticateResponse(
        error_code=ErrorCode.NONE,
        error_message="",
        auth_bytes=outcome.token,
        session_lifetime_ms=outcome.lifetime_ms,
    )


def _refuse_late(
    login: Login, response: SaslHandshakeResponse | SaslAuthenticateResponse | None, context: RequestContext
) -> None:
    """A client that guesses passwords has to wait for each answer, and to connect again."""

    def tell() -> None:
        if response is not None:
            context.reply(response)
        context.connection.close("")

    context.on_abandoned = login.door.later(login.door.delay_s(login.peer_host), tell).cancel
