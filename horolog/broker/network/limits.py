"""The named settings that bound what peers may hold open; all listeners of a broker share one `ConnectionLimits`."""

from __future__ import annotations

import math
from dataclasses import dataclass

from horolog.broker.base.metrics import Histogram
from horolog.broker.config.settings import Settings
from horolog.broker.network.admission import Admission
from horolog.broker.network.memory import PeerMemory
from horolog.broker.security.quotas import ClientQuotas


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Bounds, and the counts over all connections that they bound."""

    max_idle_ms: int
    max_read_ms: int
    max_request_bytes: int
    max_unanswered_requests: int
    max_unanswered_bytes: int
    backlog: int
    send_buffer_bytes: int
    receive_buffer_bytes: int
    admission: Admission
    memory: PeerMemory
    pauses: Histogram
    """For how long connections were not read from."""
    quotas: ClientQuotas | None = None

    @classmethod
    def of(cls, settings: Settings, quotas: ClientQuotas | None = None) -> ConnectionLimits:
        return cls(
            settings.connections_max_idle_ms,
            settings.horolog_request_read_max_ms,
            settings.socket_request_max_bytes,
            settings.queued_max_requests,
            settings.horolog_connection_queued_max_bytes,
            settings.socket_listen_backlog_size,
            settings.socket_send_buffer_bytes,
            settings.socket_receive_buffer_bytes,
            Admission(settings),
            PeerMemory(
                settings.queued_max_request_bytes if settings.queued_max_request_bytes >= 0 else math.inf,
                settings.horolog_unfinished_requests_max_bytes,
                settings.horolog_fetch_memory_max_bytes,
            ),
            Histogram(),
            quotas,
        )
