"""Streams groups at the coordinator: finds the group of a heartbeat, and creates the internal topics that its topology lacks."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from horolog.broker.cluster.cluster import Cluster, Created
from horolog.broker.cluster.new_topics import NewTopic
from horolog.broker.groups.classic_events import Client
from horolog.broker.groups.classic_group import ClassicGroup
from horolog.broker.groups.decision import Decision
from horolog.broker.groups.held import HeldByGroups
from horolog.broker.groups.journal import GroupJournal
from horolog.broker.groups.known import Known
from horolog.broker.groups.offsets import GroupOffsets
from horolog.broker.groups.registry import Registry
from horolog.broker.groups.runner import Runner
from horolog.broker.groups.streams.streams_events import (
    InternalTopics,
    InternalTopicsMade,
    StreamsHeartbeat,
    StreamsLeave,
    StreamsRespond,
)
from horolog.broker.groups.streams.streams_group import StreamsGroup
from horolog.broker.groups.streams.streams_requests import (
    JOIN_EPOCH,
    StreamsRefusal,
    check_streams_heartbeat,
    streams_refusal,
)
from horolog.broker.on_record.cluster_errors import ClusterError
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.streams_groups import StreamsGroupHeartbeatRequest, StreamsTopicInfo

log = logging.getLogger(__name__)

DEFAULT_REPLICATION = -1


class StreamsCoordinator:
    """The streams groups of this broker."""

    def __init__(
        self,
        cluster: Cluster,
        known: Known,
        journal: GroupJournal,
        registry: Registry,
        runner: Runner,
        held: HeldByGroups,
    ) -> None:
        self._cluster = cluster
        self._known = known
        self._journal = journal
        self._registry = registry
        self._runner = runner
        self._held = held

    def __repr__(self) -> str:
        return f"<StreamsCoordinator of {self._registry!r}>"

    def find(self, group_id: str) -> StreamsGroup | StreamsRefusal:
        """A streams group, or why there is none."""
        code = self._registry.load_error(self._journal.shard_of(group_id))
        group = self._registry.groups.get(group_id)
        if code:
            return StreamsRefusal(code, code.message)
        if group is None:
            return StreamsRefusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        if not isinstance(group, StreamsGroup):
            return StreamsRefusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a streams group.")
        return group

    def heartbeat(
        self,
        request: StreamsGroupHeartbeatRequest,
        client: Client,
        answer: StreamsRespond,
        may_create: Callable[[str], bool] | None = None,
    ) -> None:
        group = check_streams_heartbeat(request) or self._group_of(request)
        if isinstance(group, StreamsGroup) and not self._held.takes_streams_heartbeat(group, request, client):
            group = StreamsRefusal(
                ErrorCode.GROUP_MAX_SIZE_REACHED, "The limit for the data of group members is reached."
            )
        if isinstance(group, StreamsRefusal):
            answer(streams_refusal(group))
        elif request.member_epoch < JOIN_EPOCH:
            self._runner.run(group, StreamsLeave(request, answer))
        else:
            event = StreamsHeartbeat(request, client, answer, partial(self._create, group), may_create)
            self._run(group, event)

    # -- the group of a heartbeat

    def _group_of(self, request: StreamsGroupHeartbeatRequest) -> StreamsGroup | StreamsRefusal:
        found = self.find(request.group_id)
        before = self._registry.groups.get(request.group_id)
        shard = self._journal.shard_of(request.group_id)
        if isinstance(found, StreamsGroup) or request.member_epoch != JOIN_EPOCH or self._registry.load_error(shard):
            return found
        if before is None:
            if len(self._registry.groups) >= self._known.settings.horolog_groups_max:
                return StreamsRefusal(ErrorCode.GROUP_MAX_SIZE_REACHED, "The maximum number of groups is reached.")
            return StreamsGroup(request.group_id, shard, GroupOffsets(), self._known.now_ms())
        if isinstance(before, ClassicGroup) and before.is_empty and not before.pending:
            return StreamsGroup(request.group_id, shard, before.offsets, self._known.now_ms())
        return found

    def _run(self, group: StreamsGroup, event: StreamsHeartbeat) -> None:
        """Apply a heartbeat. A group made for a member is kept, in place of an empty classic one, only if the member is accepted."""
        before = self._registry.replaced_by(group, event.request.member_id, partial(self._runner.run, group, event))
        if isinstance(before, ClassicGroup) and not before.is_simple:
            decision = Decision(before)
            decision.write([before.tombstone()])
            self._runner.act(decision)

    # -- internal topics

    def _create(self, group: StreamsGroup, missing: InternalTopics) -> None:
        if not missing:
            return
        wanted = [_new_topic(info, count) for info, count in missing.values()]

        def made(results: Created) -> None:
            errors = {
                new.name: result.message
                for new, result in zip(wanted, results, strict=True)
                if isinstance(result, ClusterError) and result.code != ErrorCode.TOPIC_ALREADY_EXISTS
            }
            if errors:
                log.warning("group %s: internal topics could not be created: %s", group.id, errors)
            if self._registry.groups.get(group.id) is group:
                self._runner.run(group, InternalTopicsMade(errors))

        self._cluster.create_topics(wanted, made)


def _new_topic(info: StreamsTopicInfo, count: int) -> NewTopic:
    return NewTopic(
        info.name,
        count,
        info.replication_factor or DEFAULT_REPLICATION,
        overrides={one.key: one.value for one in info.topic_configs},
    )
