"""SaslHandshake and SaslAuthenticate: the choice of a mechanism, and its tokens."""

from horolog.protocol.wire import Message, array, binary, field, int16, int64, string


class SaslHandshakeRequest(Message, versions="0-1"):
    """After v0 the tokens follow raw, as frames without header; after v1 inside of SaslAuthenticate."""

    mechanism: str = field(string)


class SaslHandshakeResponse(Message, versions="0-1"):
    error_code: int = field(int16)
    mechanisms: list[str] = field(array(string))


class SaslAuthenticateRequest(Message, versions="0-2", flexible="2+"):
    auth_bytes: bytes = field(binary)


class SaslAuthenticateResponse(Message, versions="0-2", flexible="2+"):
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")
    auth_bytes: bytes = field(binary)
    session_lifetime_ms: int = field(int64, "1+", ignorable=True)
