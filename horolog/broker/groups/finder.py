"""Finds the group of a request: an existing one, a new one, or one that changes its protocol for the request."""

from __future__ import annotations

from functools import partial

from horolog.broker.groups.classic_events import Killed
from horolog.broker.groups.classic_group import ClassicGroup
from horolog.broker.groups.consumer_group import ConsumerGroup
from horolog.broker.groups.decision import Decision
from horolog.broker.groups.journal import GroupJournal
from horolog.broker.groups.kip848 import HeartbeatRefusal
from horolog.broker.groups.kip848_events import Heartbeat, Upgraded
from horolog.broker.groups.known import Known
from horolog.broker.groups.migration import to_consumer
from horolog.broker.groups.offsets import GroupOffsets
from horolog.broker.groups.registry import Group, Registry
from horolog.broker.groups.runner import Runner
from horolog.broker.groups.share.share_group import ShareGroup
from horolog.broker.groups.streams.streams_group import StreamsGroup
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.consumer_groups import ConsumerGroupHeartbeatRequest
from horolog.protocol.messages.groups import JoinGroupRequest
from horolog.protocol.records.batch import Entry


class Finder:
    """A new group is kept once it has a member."""

    def __init__(self, known: Known, journal: GroupJournal, registry: Registry, runner: Runner) -> None:
        self._known = known
        self._journal = journal
        self._registry = registry
        self._runner = runner

    def __repr__(self) -> str:
        return f"<Finder in {self._registry!r}>"

    @property
    def _is_full(self) -> bool:
        return len(self._registry.groups) >= self._known.settings.horolog_groups_max

    # -- for members of the classic protocol

    def to_join(self, request: JoinGroupRequest) -> Group | ErrorCode:
        """The group that a member joins."""
        group = self._registry.groups.get(request.group_id)
        if isinstance(group, (ConsumerGroup, StreamsGroup)) and group.is_empty:
            return self._to_classic(group)
        if isinstance(group, (ShareGroup, StreamsGroup)):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if group is not None:
            return group
        if request.member_id:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if self._is_full:
            return ErrorCode.GROUP_MAX_SIZE_REACHED
        shard = self._journal.shard_of(request.group_id)
        return ClassicGroup(request.group_id, shard, GroupOffsets(), self._known.now_ms())

    def _to_classic(self, group: ConsumerGroup | StreamsGroup) -> ClassicGroup:
        """An empty group may change its protocol; its offsets stay."""
        made = ClassicGroup(group.id, group.shard, group.offsets, self._known.now_ms())
        made.generation = group.epoch
        made.protocol_type = group.protocol_type if isinstance(group, ConsumerGroup) else None
        self._registry.groups[group.id] = made
        decision = Decision(group)
        decision.write([*group.tombstones(), made.entry()])
        self._runner.act(decision)
        return made

    # -- for members of the newer protocol

    def for_heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, entries: list[Entry]
    ) -> ConsumerGroup | HeartbeatRefusal:
        """The group of a heartbeat; if it is converted from a classic one, `entries` gets the records of the conversion."""
        group = self._registry.groups.get(request.group_id)
        if isinstance(group, ConsumerGroup):
            return group
        if request.member_epoch == 0 and not isinstance(group, (ShareGroup, StreamsGroup)):
            if group is None and self._is_full:
                return HeartbeatRefusal(ErrorCode.GROUP_MAX_SIZE_REACHED, "The maximum number of groups is reached.")
            if group is None or (group.is_empty and not group.pending):
                return self._new(request.group_id, group, entries)
            upgraded = to_consumer(group, self._known, self._known.now_ms())
            if upgraded is not None:
                entries += upgraded[1]
                return upgraded[0]
        message = (
            f"Group {request.group_id} is not a consumer group." if group else f"Group {request.group_id} not found."
        )
        return HeartbeatRefusal(ErrorCode.GROUP_ID_NOT_FOUND, message)

    def _new(self, group_id: str, before: ClassicGroup | None, entries: list[Entry]) -> ConsumerGroup:
        """A group that begins empty, with the offsets of the empty classic group before it."""
        shard = self._journal.shard_of(group_id)
        if before is None:
            return ConsumerGroup(group_id, shard, GroupOffsets(), self._known.now_ms())
        if not before.is_simple:
            entries.append(before.tombstone())
        made = ConsumerGroup(group_id, shard, before.offsets, self._known.now_ms())
        made.epoch = made.assignment_epoch = before.generation  # used numbers are not used again
        return made

    def heartbeat(self, group: ConsumerGroup, event: Heartbeat) -> None:
        """Apply a heartbeat to the group found for it. A group made for a member is kept only if the member is accepted."""
        before = self._registry.replaced_by(group, event.request.member_id, partial(self._runner.run, group, event))
        if isinstance(before, ClassicGroup):
            self._runner.run(before, Killed(ErrorCode.REBALANCE_IN_PROGRESS))
            self._runner.run(group, Upgraded())
