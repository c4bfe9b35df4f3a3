"""The headers in front of every request's and every response's body."""

from horolog.protocol.wire import Message, field, int16, int32, string


class RequestHeader(Message, versions="0-2", flexible="2+"):
    """v1 for requests of fixed lengths, v2 for flexible ones; v0 belonged to a request between brokers that is gone."""

    request_api_key: int = field(int16)
    request_api_version: int = field(int16)
    correlation_id: int = field(int32)
    # stays in the old form in v2: a broker must be able to read the header of an ApiVersions it does not know
    client_id: str | None = field(string, "1+", nullable="0+", ignorable=True, flexible=False)


class ResponseHeader(Message, versions="0-1", flexible="1+"):
    """v1 for flexible requests, with the exception of ApiVersions."""

    correlation_id: int = field(int32)
