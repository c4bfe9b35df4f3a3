"""Rebuilds streams groups from the records of one partition of `__consumer_offsets`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from horolog.broker.groups.offsets import GroupOffsets
from horolog.broker.groups.reconcile import MemberState
from horolog.broker.groups.stored_entries import MemberKey, StoredEntries
from horolog.broker.groups.streams.streams_group import QueryEndpoint, StreamsGroup, StreamsMember
from horolog.broker.groups.streams.streams_reconcile import CurrentTasks
from horolog.broker.groups.streams.tasks import Task, Tasks, TaskSet, read_tasks, tasks_of
from horolog.protocol.messages.streams_group_records import (
    StreamsCurrentTasks,
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMemberMetadataValue,
    StreamsGroupMetadataKey,
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTargetAssignmentMetadataValue,
    StreamsGroupTopologyKey,
    StreamsGroupTopologyValue,
)


def streams_groups_of(entries: StoredEntries, shard: int, now_ms: int) -> dict[str, StreamsGroup]:
    """The groups by id."""
    groups: dict[str, StreamsGroup] = {}
    for group_id, stored in entries.by_group(StreamsGroupMetadataKey, StreamsGroupMetadataValue):
        group = groups[group_id] = StreamsGroup(group_id, shard, GroupOffsets(), now_ms)
        group.epoch, group.metadata_hash = stored.epoch, stored.metadata_hash
        group.validated_epoch = stored.validated_topology_epoch
        group.assignment_settings = {one.key: one.value for one in stored.last_assignment_configs or ()}
    for group_id, topology in entries.by_group(StreamsGroupTopologyKey, StreamsGroupTopologyValue):
        if group_id in groups:
            groups[group_id].topology = topology
    for group_id, made in entries.by_group(
        StreamsGroupTargetAssignmentMetadataKey, StreamsGroupTargetAssignmentMetadataValue
    ):
        if group_id in groups:
            group = groups[group_id]
            group.assignment_epoch, group.assigned_ms = made.assignment_epoch, made.assignment_timestamp or 0
    for (group_id, _), member in _members(entries).items():
        if group_id in groups:
            groups[group_id].add(member)
    return groups


def _members(entries: StoredEntries) -> dict[MemberKey, StreamsMember]:
    members: dict[MemberKey, StreamsMember] = {}
    for key, stored in entries.by_member(StreamsGroupMemberMetadataKey, StreamsGroupMemberMetadataValue):
        members[key] = _member(key[1], stored)
    for key, target in entries.by_member(
        StreamsGroupTargetAssignmentMemberKey, StreamsGroupTargetAssignmentMemberValue
    ):
        if key in members:
            members[key].target = TaskSet(
                *map(read_tasks, (target.active_tasks, target.standby_tasks, target.warmup_tasks))
            )
    for key, current in entries.by_member(
        StreamsGroupCurrentMemberAssignmentKey, StreamsGroupCurrentMemberAssignmentValue
    ):
        if key in members:
            members[key].current = _current(current)
    return members


def _member(member_id: str, stored: StreamsGroupMemberMetadataValue) -> StreamsMember:
    member = StreamsMember(member_id)
    member.is_new = False
    member.rack_id = stored.rack_id
    member.client_id, member.client_host = stored.client_id, stored.client_host
    member.rebalance_timeout_ms = stored.rebalance_timeout_ms
    member.topology_epoch, member.process_id = stored.topology_epoch, stored.process_id
    endpoint = stored.user_endpoint
    member.endpoint = None if endpoint is None else QueryEndpoint(endpoint.host, endpoint.port)
    member.tags = tuple((one.key, one.value) for one in stored.client_tags)
    return member


def _current(stored: StreamsGroupCurrentMemberAssignmentValue) -> CurrentTasks:
    known = stored.state in set(MemberState)
    active = (*stored.active_tasks, *stored.active_tasks_pending_revocation)
    return CurrentTasks(
        stored.member_epoch,
        stored.previous_member_epoch,
        MemberState(stored.state) if known else MemberState.UNREVOKED,
        TaskSet(*map(_tasks, (stored.active_tasks, stored.standby_tasks, stored.warmup_tasks))),
        TaskSet(
            *map(
                _tasks,
                (
                    stored.active_tasks_pending_revocation,
                    stored.standby_tasks_pending_revocation,
                    stored.warmup_tasks_pending_revocation,
                ),
            )
        ),
        dict(_epochs(active, stored.member_epoch)),
    )


def _tasks(stored: Sequence[StreamsCurrentTasks]) -> Tasks:
    return tasks_of((one.subtopology_id, index) for one in stored for index in one.partitions)


def _epochs(stored: Iterable[StreamsCurrentTasks], member_epoch: int) -> Iterable[tuple[Task, int]]:
    """Tasks written without epochs, as by Kafka 4.1, count from the member's epoch."""
    for one in stored:
        epochs = one.assignment_epochs or [member_epoch] * len(one.partitions)
        for index, epoch in zip(one.partitions, epochs, strict=True):
            yield (one.subtopology_id, index), epoch
