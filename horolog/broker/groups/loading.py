"""Rebuilds groups from one partition of `__consumer_offsets`.

First the log is folded: only the last value of every key counts, and offsets in transactions only if the transaction was committed. Then
the values are read. An unreadable value is logged and skipped; the rest of its group is kept.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TypeVar

from horolog.base.clock import Clock
from horolog.broker.groups.classic_events import Client, Timeouts
from horolog.broker.groups.classic_group import ClassicGroup, GroupState, Member, subscribed_by
from horolog.broker.groups.consumer_group import ClassicPart, ConsumerGroup, ConsumerMember, assignment_of
from horolog.broker.groups.journal import Marked, Stored
from horolog.broker.groups.offsets import Committed, GroupOffsets
from horolog.broker.groups.reconcile import Current, MemberState, Place
from horolog.broker.groups.records import OFFSET, OLD_OFFSET, read_entry
from horolog.broker.groups.registry import Registry
from horolog.broker.groups.share.share_loading import share_groups_of
from horolog.broker.groups.stored_entries import MemberKey, StoredEntries
from horolog.broker.groups.streams.streams_loading import streams_groups_of
from horolog.protocol.errors import DecodeError
from horolog.protocol.messages.coordinator_records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    OwnedPartitions,
)
from horolog.protocol.topic_partition import TopicPartition
from horolog.protocol.wire import Message

log = logging.getLogger(__name__)

M = TypeVar("M", bound=Message)


class Folded:
    """The last value of every key with its offset, and the writes of open transactions."""

    def __init__(self) -> None:
        self.values: dict[bytes, tuple[int, bytes]] = {}
        self.pending: dict[int, dict[bytes, tuple[int, bytes]]] = {}

    def __repr__(self) -> str:
        return f"<Folded: {len(self.values)} keys, {len(self.pending)} open transactions>"

    def take(self, piece: Iterable[Stored | Marked]) -> None:
        values = self.values
        for one in piece:
            if isinstance(one, Marked):
                self._complete(one)
            elif one.producer_id >= 0:
                if one.value is not None:
                    self.pending.setdefault(one.producer_id, {})[one.key] = (one.offset, one.value)
            elif one.value is not None:
                values[one.key] = (one.offset, one.value)
            else:
                values.pop(one.key, None)
                for pending in self.pending.values():
                    pending.pop(one.key, None)

    def _complete(self, marked: Marked) -> None:
        pending = self.pending.pop(marked.producer_id, {})
        if marked.committed:
            for key, (offset, value) in pending.items():
                if self.values.get(key, (-1, b""))[0] < offset:
                    self.values[key] = (offset, value)


class Loader:
    """Puts the groups of one shard into the registry."""

    def __init__(self, registry: Registry, clock: Clock) -> None:
        self._registry = registry
        self._clock = clock

    def load(self, shard: int, folded: Folded) -> None:
        entries = StoredEntries()
        offsets: list[tuple[OffsetCommitKey, Committed]] = []
        old_offsets: list[tuple[OffsetCommitKey, Committed]] = []
        for key, (place, value) in folded.values.items():
            read = _read(key, value)
            if read is None:
                continue
            kind, key_message, value_message = read
            if isinstance(key_message, OffsetCommitKey) and isinstance(value_message, OffsetCommitValue):
                to = old_offsets if kind == OLD_OFFSET else offsets
                to.append((key_message, Committed.read(value_message, place)))
            else:
                entries.add(key_message, value_message)
        self._load_classic(shard, entries)
        self._load_consumer(shard, entries)
        self._registry.groups.update(share_groups_of(entries, shard, self._clock.wall_ms()))
        self._registry.groups.update(streams_groups_of(entries, shard, self._clock.wall_ms()))
        for offset_key, committed in offsets:
            self._offsets_of(offset_key.group, shard).put(_partition(offset_key), committed)
        for offset_key, committed in old_offsets:
            store = self._registry.old_offsets.setdefault(offset_key.group, GroupOffsets())
            store.put(_partition(offset_key), committed)
        self._load_pending(shard, folded)

    def _offsets_of(self, group_id: str, shard: int) -> GroupOffsets:
        group = self._registry.groups.get(group_id)
        if group is None:
            group = self._registry.groups[group_id] = ClassicGroup(
                group_id, shard, GroupOffsets(), self._clock.wall_ms()
            )
        return group.offsets

    def _load_pending(self, shard: int, folded: Folded) -> None:
        for producer_id, values in folded.pending.items():
            for key, (place, value) in values.items():
                read = _read(key, value)
                if read is None or read[0] != OFFSET:
                    continue
                _, key_message, value_message = read
                assert isinstance(key_message, OffsetCommitKey)
                assert isinstance(value_message, OffsetCommitValue)
                committed = Committed.read(value_message, place)
                self._registry.pending.setdefault(producer_id, set()).add(key_message.group)
                self._offsets_of(key_message.group, shard).put_pending(producer_id, _partition(key_message), committed)

    # -- classic groups

    def _load_classic(self, shard: int, entries: StoredEntries) -> None:
        for key, value in entries.of(GroupMetadataKey, GroupMetadataValue):
            since_ms = value.current_state_timestamp
            group = ClassicGroup(key.group, shard, GroupOffsets(), since_ms if since_ms >= 0 else self._clock.wall_ms())
            group.generation = value.generation
            group.protocol_type = value.protocol_type or None
            if value.members:
                group.protocol_name = value.protocol
                group.state = GroupState.STABLE
                for each in value.members:
                    group.add(_classic_member(each, value.protocol or ""))
                group.leader_id = value.leader
                group.subscribed = subscribed_by(group)
                group.stored = value
            self._registry.groups[key.group] = group

    # -- groups of the newer protocol

    def _load_consumer(self, shard: int, entries: StoredEntries) -> None:
        groups: dict[str, ConsumerGroup] = {}
        for group_id, known in entries.by_group(ConsumerGroupMetadataKey, ConsumerGroupMetadataValue):
            group = ConsumerGroup(group_id, shard, GroupOffsets(), self._clock.wall_ms())
            group.epoch, group.metadata_hash = known.epoch, known.metadata_hash
            groups[group_id] = self._registry.groups[group_id] = group
        for group_id, made in entries.by_group(
            ConsumerGroupTargetAssignmentMetadataKey, ConsumerGroupTargetAssignmentMetadataValue
        ):
            if group_id in groups:
                groups[group_id].assignment_epoch = made.assignment_epoch
        for (group_id, _), member in _consumer_members(entries).items():
            if group_id in groups:
                groups[group_id].add(member)


def _consumer_members(entries: StoredEntries) -> dict[MemberKey, ConsumerMember]:
    members: dict[MemberKey, ConsumerMember] = {}
    for key, known in entries.by_member(ConsumerGroupMemberMetadataKey, ConsumerGroupMemberMetadataValue):
        members[key] = ConsumerMember(key[1], known.instance_id)
        _describe(members[key], known)
    for key, target in entries.by_member(
        ConsumerGroupTargetAssignmentMemberKey, ConsumerGroupTargetAssignmentMemberValue
    ):
        if key in members:
            members[key].target = assignment_of(target.topic_partitions)
    for key, current in entries.by_member(
        ConsumerGroupCurrentMemberAssignmentKey, ConsumerGroupCurrentMemberAssignmentValue
    ):
        if key in members:
            members[key].current = _current(current)
    return members


def _classic_member(stored: MemberMetadata, protocol: str) -> Member:
    session_ms, rebalance_ms = stored.session_timeout, stored.rebalance_timeout
    member = Member(
        stored.member_id,
        stored.group_instance_id,
        Client(stored.client_id, stored.client_host),
        Timeouts(session_ms, rebalance_ms if rebalance_ms >= 0 else session_ms),
        ((protocol, bytes(stored.subscription)),),
    )
    member.assignment = bytes(stored.assignment)
    return member


def _describe(member: ConsumerMember, value: ConsumerGroupMemberMetadataValue) -> None:
    member.rack_id = value.rack_id
    member.client_id = value.client_id
    member.client_host = value.client_host
    member.topics = tuple(value.subscribed_topic_names)
    member.regex = value.subscribed_topic_regex
    member.rebalance_timeout_ms = value.rebalance_timeout_ms
    member.assignor = value.server_assignor
    classic = value.classic_member_metadata
    if classic is not None:
        protocols = tuple((one.name, bytes(one.metadata)) for one in classic.supported_protocols)
        member.classic = ClassicPart(classic.session_timeout_ms, protocols)


def _current(value: ConsumerGroupCurrentMemberAssignmentValue) -> Current:
    known = value.state in set(MemberState)
    partitions = (*value.assigned_partitions, *value.partitions_pending_revocation)
    return Current(
        value.member_epoch,
        value.previous_member_epoch,
        MemberState(value.state) if known else MemberState.UNREVOKED,
        assignment_of(value.assigned_partitions),
        assignment_of(value.partitions_pending_revocation),
        {place: epoch for place, epoch in _epochs(partitions) if epoch != value.member_epoch},
    )


def _epochs(stored: Iterable[OwnedPartitions]) -> Iterable[tuple[Place, int]]:
    """Partitions written without epochs, as before Kafka 4.3, count from the member's epoch."""
    for one in stored:
        for index, epoch in zip(one.partitions, one.assignment_epochs or (), strict=False):
            yield (one.topic_id, index), epoch


def _partition(key: OffsetCommitKey) -> TopicPartition:
    return key.topic, key.partition


def _read(key: bytes, value: bytes) -> tuple[int, Message, Message] | None:
    try:
        return read_entry(key, value)
    except DecodeError as error:
        log.error("a record of a group cannot be read: %s (key %r)", error, key[:100])
        return None
