"""Names the leader of a partition in a refusal (KIP-951), so that a client asks it at once, without Metadata in between."""

from __future__ import annotations

from typing import Final

from horolog.broker.cluster.placement import Endpoint, endpoint_of
from horolog.broker.handlers.context import BrokerView
from horolog.protocol.errors import ErrorCode

MISPLACED: Final = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})
"""The errors with which a response names the leader; Produce has only the first."""
Leader = tuple[int, int]
"""Its node id and its epoch."""


def leader_to_name(
    broker: BrokerView,
    topic: str | bytes,
    index: int,
    listener: str,
    endpoints: list[Endpoint],
    *,
    is_here: bool = False,
) -> Leader | None:
    """The leader of a partition of a topic, by its name or id; where clients of this listener find it is added to `endpoints`.

    None if that helps no client: the topic is gone, the leader is not live, or it is this broker, which does not serve the partition yet.
    """
    cluster, placement = broker.cluster, broker.placement
    known = cluster.by_id.get(topic) if isinstance(topic, bytes) else cluster.topics.get(topic)
    if known is None:
        return None
    node, epoch = placement.lead(known.id, index)
    found = None if node == placement.me and not is_here else endpoint_of(placement, node, listener)
    if found is None:
        return None
    if found not in endpoints:
        endpoints.append(found)
    return node, epoch
