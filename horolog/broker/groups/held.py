"""Limits the bytes of members' descriptions and assignments, for each group and for all groups together.

A group counts the bytes of its own members. The sum over all groups is an estimate: it grows with each accepted request, and is
recalculated, at most once a second, when it exceeds the limit.
"""

from __future__ import annotations

from horolog.base.clock import Clock
from horolog.broker.cluster.cluster import Cluster
from horolog.broker.groups.registry import Group, Registry
from horolog.protocol.messages.consumer_groups import ConsumerGroupHeartbeatRequest
from horolog.protocol.messages.groups import JoinGroupRequest, SyncGroupRequest

LOOK_AGAIN_S = 1.0


def bytes_of_join(request: JoinGroupRequest) -> int:
    named = len(request.group_instance_id or "")
    return named + sum(len(one.name) + len(one.metadata) for one in request.protocols)


def bytes_of_sync(request: SyncGroupRequest) -> int:
    return sum(len(one.assignment) for one in request.assignments)


def bytes_of_heartbeat(request: ConsumerGroupHeartbeatRequest) -> int:
    texts = (request.instance_id, request.rack_id, request.server_assignor, request.subscribed_topic_regex)
    return sum(len(one or "") for one in texts) + sum(map(len, request.subscribed_topic_names or ()))


class HeldByGroups:
    """The bytes that all groups hold, against their limits."""

    def __init__(self, cluster: Cluster, clock: Clock, registry: Registry) -> None:
        self._cluster = cluster
        self._monotonic = clock.monotonic
        self._registry = registry
        self._estimate_bytes = 0
        self._looked_at_s = float("-inf")

    def __repr__(self) -> str:
        return f"<HeldByGroups: about {self._estimate_bytes} bytes>"

    def takes_member(self, group: Group, member_id: str, size_bytes: int, instance_id: str | None = None) -> bool:
        """Whether a member's description may have this size, in place of its previous one."""
        known_as = member_id if member_id in group.members else group.statics.get(instance_id or "", "")
        return self._takes(group, size_bytes, group.held.of(known_as))

    def takes_assignments(self, group: Group, size_bytes: int) -> bool:
        """Whether a leader's assignments may have this size, in place of the previous ones."""
        return self._takes(group, size_bytes, group.held.assigned)

    def _takes(self, group: Group, size_bytes: int, before_bytes: int) -> bool:
        settings = self._cluster.settings
        more_bytes = size_bytes - before_bytes
        if more_bytes <= 0:
            return True
        if group.held.total + more_bytes > settings.horolog_group_members_max_bytes:
            return False
        most_bytes = settings.horolog_groups_members_max_bytes
        if self._estimate_bytes + more_bytes > most_bytes:
            self._look()
        if self._estimate_bytes + more_bytes > most_bytes:
            return False
        self._estimate_bytes += more_bytes
        return True

    def _look(self) -> None:
        now_s = self._monotonic()
        if now_s - self._looked_at_s >= LOOK_AGAIN_S:
            self._looked_at_s = now_s
            self._estimate_bytes = sum(group.held.total for group in self._registry.groups.values())
