"""Limits the bytes of members' descriptions and assignments, for each group, for each principal, and for all groups together.

A group counts the bytes of its own members. The sums over all groups are estimates: they grow with each accepted request, and are
recalculated, at most once a second, when one of them exceeds its limit.
"""

from __future__ import annotations

from horolog.base.clock import Clock
from horolog.broker.base.principal import Principal
from horolog.broker.cluster.cluster import Cluster
from horolog.broker.groups.classic_events import Client
from horolog.broker.groups.member_bytes import OwnedBytes, Owner
from horolog.broker.groups.registry import Group, Registry
from horolog.protocol.messages.consumer_groups import ConsumerGroupHeartbeatRequest
from horolog.protocol.messages.groups import JoinGroupRequest, SyncGroupRequest
from horolog.protocol.messages.share_groups import ShareGroupHeartbeatRequest
from horolog.protocol.messages.streams_groups import StreamsGroupHeartbeatRequest

LOOK_AGAIN_S = 1.0


def bytes_of_join(request: JoinGroupRequest) -> int:
    named = len(request.group_instance_id or "")
    return named + sum(len(one.name) + len(one.metadata) for one in request.protocols)


def bytes_of_sync(request: SyncGroupRequest) -> int:
    return sum(len(one.assignment) for one in request.assignments)


def bytes_of_heartbeat(request: ConsumerGroupHeartbeatRequest) -> int:
    texts = (request.instance_id, request.rack_id, request.server_assignor, request.subscribed_topic_regex)
    return sum(len(one or "") for one in texts) + sum(map(len, request.subscribed_topic_names or ()))


def bytes_of_streams_heartbeat(request: StreamsGroupHeartbeatRequest) -> int:
    endpoint = request.user_endpoint
    texts = (request.rack_id, request.process_id, endpoint.host if endpoint is not None else None)
    return sum(len(one or "") for one in texts) + sum(
        len(one.key) + len(one.value) for one in request.client_tags or ()
    )


class HeldByGroups:
    """The bytes that all groups hold, against their limits."""

    def __init__(self, cluster: Cluster, clock: Clock, registry: Registry) -> None:
        self._cluster = cluster
        self._monotonic = clock.monotonic
        self._registry = registry
        self._estimate_bytes = 0
        self._of_owners: dict[Principal, int] = {}
        self._looked_at_s = float("-inf")

    def __repr__(self) -> str:
        return f"<HeldByGroups: about {self._estimate_bytes} bytes>"

    def takes_join(self, group: Group, request: JoinGroupRequest, client: Client) -> bool:
        """Whether a member's description may have this size, in place of the previous one."""
        share = OwnedBytes(bytes_of_join(request) + len(client.id), client.principal)
        return self._takes(group, share, _of(group, request.member_id, request.group_instance_id))

    def takes_heartbeat(self, group: Group, request: ConsumerGroupHeartbeatRequest, client: Client) -> bool:
        share = OwnedBytes(bytes_of_heartbeat(request) + len(client.id), client.principal)
        return self._takes(group, share, _of(group, request.member_id, request.instance_id))

    def takes_share_heartbeat(self, group: Group, request: ShareGroupHeartbeatRequest, client: Client) -> bool:
        told = len(request.rack_id or "") + sum(map(len, request.subscribed_topic_names or ()))
        return self._takes(
            group, OwnedBytes(told + len(client.id), client.principal), _of(group, request.member_id, None)
        )

    def takes_streams_heartbeat(self, group: Group, request: StreamsGroupHeartbeatRequest, client: Client) -> bool:
        size_bytes = bytes_of_streams_heartbeat(request) + len(client.id)
        return self._takes(group, OwnedBytes(size_bytes, client.principal), _of(group, request.member_id, None))

    def takes_sync(self, group: Group, request: SyncGroupRequest, owner: Owner) -> bool:
        """Whether a leader's assignments may have this size, in place of the previous ones."""
        return not request.assignments or self._takes(
            group, OwnedBytes(bytes_of_sync(request), owner), group.held.assigned
        )

    def _takes(self, group: Group, share: OwnedBytes, before: OwnedBytes) -> bool:
        more_bytes = share.size_bytes - before.size_bytes
        of_owner = more_bytes if share.owner == before.owner else share.size_bytes
        if more_bytes <= 0 and of_owner <= 0:
            return True
        more_bytes = max(more_bytes, 0)
        if more_bytes and group.held.total + more_bytes > self._cluster.settings.horolog_group_members_max_bytes:
            return False
        if not self._has_room(more_bytes, share.owner, of_owner):
            self._look()
            if not self._has_room(more_bytes, share.owner, of_owner):
                return False
        self._estimate_bytes += more_bytes
        if share.owner is not None:
            self._of_owners[share.owner] = self._of_owners.get(share.owner, 0) + of_owner
        return True

    def _has_room(self, more_bytes: int, owner: Owner, of_owner: int) -> bool:
        settings = self._cluster.settings
        if more_bytes and self._estimate_bytes + more_bytes > settings.horolog_groups_members_max_bytes:
            return False
        if owner is None:
            return True
        return self._of_owners.get(owner, 0) + of_owner <= settings.horolog_principal_members_max_bytes

    def _look(self) -> None:
        now_s = self._monotonic()
        if now_s - self._looked_at_s < LOOK_AGAIN_S:
            return
        self._looked_at_s = now_s
        self._estimate_bytes = 0
        of_owners: dict[Principal, int] = {}
        for group in self._registry.groups.values():
            held = group.held
            if held.total:
                self._estimate_bytes += held.total
                for owner, size_bytes in held.by_owner.items():
                    of_owners[owner] = of_owners.get(owner, 0) + size_bytes
        self._of_owners = of_owners


def _of(group: Group, member_id: str, instance_id: str | None) -> OwnedBytes:
    known_as = member_id if member_id in group.members else group.statics.get(instance_id or "", "")
    return group.held.of(known_as)
