"""BrokerHeartbeat: in Kafka from a broker to its controller, here from one broker over a store to another."""

from horolog.protocol.wire import Message, array, boolean, field, int16, int32, int64, uuid


class BrokerHeartbeatRequest(Message, versions="0-2", flexible="0+"):
    broker_id: int = field(int32)
    broker_epoch: int = field(int64, default=-1)
    current_metadata_offset: int = field(int64)
    want_fence: bool = field(boolean)
    want_shut_down: bool = field(boolean)
    offline_log_dirs: list[bytes] = field(array(uuid), "1+", tag=0)
    cordoned_log_dirs: list[bytes] | None = field(array(uuid), "2+", tag=1, nullable="2+", default=None)


class BrokerHeartbeatResponse(Message, versions="0-2", flexible="0+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    is_caught_up: bool = field(boolean)
    is_fenced: bool = field(boolean, default=True)
    should_shut_down: bool = field(boolean)
