"""SaslHandshake 0-1 and SaslAuthenticate 0-2, on listeners without authentication: ILLEGAL_SASL_STATE, and no mechanism to choose.

The connection goes on as before, as on real brokers.
Not done: authentication.
"""

from __future__ import annotations

from horolog.broker.handlers.context import BrokerView, RequestContext
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

NOT_HERE = "this listener asks nobody to authenticate"


def handshake(broker: BrokerView, request: SaslHandshakeRequest, context: RequestContext) -> SaslHandshakeResponse:  # noqa: ARG001
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, mechanisms=[])


def authenticate(
    broker: BrokerView,  # noqa: ARG001
    request: SaslAuthenticateRequest,  # noqa: ARG001
    context: RequestContext,  # noqa: ARG001
) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message=NOT_HERE, auth_bytes=b"")
