"""GetTelemetrySubscriptions and PushTelemetry: metrics that clients send (KIP-714)."""

from horolog.protocol.wire import Message, array, binary, boolean, field, int8, int16, int32, string, uuid


class GetTelemetrySubscriptionsRequest(Message, versions="0", flexible="0+"):
    client_instance_id: bytes = field(uuid)


class GetTelemetrySubscriptionsResponse(Message, versions="0", flexible="0+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    client_instance_id: bytes = field(uuid)
    subscription_id: int = field(int32)
    accepted_compression_types: list[int] = field(array(int8))
    push_interval_ms: int = field(int32)
    telemetry_max_bytes: int = field(int32)
    delta_temporality: bool = field(boolean)
    requested_metrics: list[str] = field(array(string))


class PushTelemetryRequest(Message, versions="0", flexible="0+"):
    client_instance_id: bytes = field(uuid)
    subscription_id: int = field(int32)
    terminating: bool = field(boolean)
    compression_type: int = field(int8)
    metrics: bytes = field(binary)


class PushTelemetryResponse(Message, versions="0", flexible="0+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
