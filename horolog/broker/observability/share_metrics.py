"""Share groups in the metrics: records in flight on this broker, sessions, and acknowledgements by their type."""

from __future__ import annotations

from collections.abc import Iterator

from horolog.broker.base.metrics import Described, Kind, Samples
from horolog.broker.share.leader import ShareLeader

IN_FLIGHT = Described(
    "share_in_flight_records",
    Kind.GAUGE,
    "Records that share groups have acquired, or that wait for another delivery.",
)
SESSIONS = Described("share_sessions", Kind.GAUGE, "Open share sessions.")
ACKNOWLEDGED = Described(
    "share_acknowledged_records_total",
    Kind.COUNTER,
    "Records that consumers of share groups have acknowledged.",
    ("type",),
)
FAMILIES = (IN_FLIGHT, SESSIONS, ACKNOWLEDGED)


def collect(leader: ShareLeader) -> Iterator[tuple[Described, Samples]]:
    yield IN_FLIGHT, [((), leader.in_flight)]
    yield SESSIONS, [((), len(leader.sessions))]
    yield ACKNOWLEDGED, [((kind.name.lower(),), count) for kind, count in leader.acknowledged.items()]
