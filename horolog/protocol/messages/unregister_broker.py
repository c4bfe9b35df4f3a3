"""UnregisterBroker: a cluster forgets a broker that does not come back."""

from horolog.protocol.wire import Message, field, int16, int32, string


class UnregisterBrokerRequest(Message, versions="0", flexible="0+"):
    broker_id: int = field(int32)


class UnregisterBrokerResponse(Message, versions="0", flexible="0+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")
