"""Rebuilds share groups from the records of one partition of `__consumer_offsets`."""

from __future__ import annotations

from horolog.broker.groups.consumer_group import assignment_of
from horolog.broker.groups.share.share_group import ShareGroup, ShareGroupMember
from horolog.broker.groups.share.tracked_topics import tracked_of
from horolog.broker.groups.stored_entries import MemberKey, StoredEntries
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


def share_groups_of(entries: StoredEntries, shard: int, now_ms: int) -> dict[str, ShareGroup]:
    """The groups by id. A group whose offsets were set before it had members has no record but that of its topics."""
    groups: dict[str, ShareGroup] = {}

    def group_of(group_id: str) -> ShareGroup:
        return groups.setdefault(group_id, ShareGroup(group_id, shard, now_ms))

    for group_id, epoch in entries.by_group(ShareGroupMetadataKey, ShareGroupMetadataValue):
        group = group_of(group_id)
        group.epoch, group.metadata_hash = epoch.epoch, epoch.metadata_hash
    for group_id, topics in entries.by_group(
        ShareGroupStatePartitionMetadataKey, ShareGroupStatePartitionMetadataValue
    ):
        group_of(group_id).tracked = tracked_of(topics)
    for group_id, made in entries.by_group(
        ShareGroupTargetAssignmentMetadataKey, ShareGroupTargetAssignmentMetadataValue
    ):
        if group_id in groups:
            group = groups[group_id]
            group.assignment_epoch, group.assigned_ms = made.assignment_epoch, made.assignment_timestamp
    for (group_id, _), member in _members(entries).items():
        if group_id in groups:
            groups[group_id].add(member)
    return groups


def _members(entries: StoredEntries) -> dict[MemberKey, ShareGroupMember]:
    members: dict[MemberKey, ShareGroupMember] = {}
    for key, told in entries.by_member(ShareGroupMemberMetadataKey, ShareGroupMemberMetadataValue):
        members[key] = _member(key[1], told)
    for key, target in entries.by_member(ShareGroupTargetAssignmentMemberKey, ShareGroupTargetAssignmentMemberValue):
        if key in members:
            members[key].target = assignment_of(target.topic_partitions)
    for key, current in entries.by_member(ShareGroupCurrentMemberAssignmentKey, ShareGroupCurrentMemberAssignmentValue):
        member = members.get(key)
        if member is not None:
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
