"""Rebuilds share groups from the records of one partition of `__consumer_offsets`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from horolog.broker.groups.consumer_group import assignment_of
from horolog.broker.groups.share.share_group import ShareGroup, ShareGroupMember
from horolog.broker.groups.share.tracked_topics import tracked_of
from horolog.protocol.messages.coordinator_records import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
)
from horolog.protocol.wire import Message

Entries = Mapping[type[Message], Iterable[tuple[int, Message, Message]]]
"""Offset, key and value of the last record of every key, by the class of the key."""

MemberKey = tuple[str, str]
V = TypeVar("V", bound=Message)


def share_groups_of(entries: Entries, shard: int, now_ms: int) -> dict[str, ShareGroup]:
    """The groups by id. A group whose offsets were set before it had members has no record but that of its topics."""
    groups: dict[str, ShareGroup] = {}

    def group_of(group_id: str) -> ShareGroup:
        return groups.setdefault(group_id, ShareGroup(group_id, shard, now_ms))

    for (group_id, _), epoch in _values(entries, ShareGroupMetadataKey, ShareGroupMetadataValue):
        group = group_of(group_id)
        group.epoch, group.metadata_hash = epoch.epoch, epoch.metadata_hash
    for (group_id, _), topics in _values(
        entries, ShareGroupStatePartitionMetadataKey, ShareGroupStatePartitionMetadataValue
    ):
        group_of(group_id).tracked = tracked_of(topics)
    for (group_id, _), made in _values(
        entries, ShareGroupTargetAssignmentMetadataKey, ShareGroupTargetAssignmentMetadataValue
    ):
        if group_id in groups:
            group = groups[group_id]
            group.assignment_epoch, group.assigned_ms = made.assignment_epoch, made.assignment_timestamp
    for (group_id, _), member in _members(entries).items():
        if group_id in groups:
            groups[group_id].add(member)
    return groups


def _members(entries: Entries) -> dict[MemberKey, ShareGroupMember]:
    members: dict[MemberKey, ShareGroupMember] = {}
    for key, told in _values(entries, ShareGroupMemberMetadataKey, ShareGroupMemberMetadataValue):
        members[key] = _member(key[1], told)
    for key, target in _values(entries, ShareGroupTargetAssignmentMemberKey, ShareGroupTargetAssignmentMemberValue):
        if key in members:
            members[key].target = assignment_of(target.topic_partitions)
    for key, current in _values(entries, ShareGroupCurrentMemberAssignmentKey, ShareGroupCurrentMemberAssignmentValue):
        if key in members:
            member = members[key]
            member.epoch, member.previous_epoch = current.member_epoch, current.previous_member_epoch
            member.assigned = assignment_of(current.assigned_partitions)
    return members


def _member(member_id: str, told: ShareGroupMemberMetadataValue) -> ShareGroupMember:
    member = ShareGroupMember(member_id)
    member.is_new = False
    member.rack_id = told.rack_id
    member.client_id, member.client_host = told.client_id, told.client_host
    member.topics = tuple(told.subscribed_topic_names)
    return member


def _values(entries: Entries, key: type[Message], value: type[V]) -> Iterable[tuple[MemberKey, V]]:
    """The values of one kind, by group and, where the key has one, by member."""
    for _, one, read in entries.get(key, ()):
        assert isinstance(read, value)
        yield (one.group_id, getattr(one, "member_id", "")), read  # type: ignore[attr-defined]
