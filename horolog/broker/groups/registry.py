"""Registers all groups, and the shards of the log that are still being loaded."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from horolog.broker.groups.classic_group import ClassicGroup
from horolog.broker.groups.consumer_group import ConsumerGroup
from horolog.broker.groups.offsets import GroupOffsets
from horolog.broker.groups.share.share_group import ShareGroup
from horolog.broker.groups.streams.streams_group import StreamsGroup
from horolog.protocol.errors import ErrorCode

Group = ClassicGroup | ConsumerGroup | ShareGroup | StreamsGroup


class Registry:
    """Groups by id; `old_offsets` are those committed with OffsetCommit v0.

    `pending` has the groups for which a producer's open transaction has offsets.
    """

    def __init__(self, absence: Callable[[int], ErrorCode] = lambda _: ErrorCode.NOT_COORDINATOR) -> None:
        """`absence` says why groups of a shard are not known that is not served here."""
        self.groups: dict[str, Group] = {}
        self.old_offsets: dict[str, GroupOffsets] = {}
        self.pending: dict[int, set[str]] = {}
        self.loading: set[int] = set()
        self.elsewhere: set[int] = set()
        """Shards that are not served here: another broker coordinates them, or this one still opens them."""
        self._absence = absence

    def __repr__(self) -> str:
        return f"<Registry of {len(self.groups)} groups, {len(self.loading)} shards still loading>"

    def of_shard(self, shard: int) -> Iterator[Group]:
        return (group for group in list(self.groups.values()) if group.shard == shard)

    @property
    def is_loading(self) -> bool:
        """Whether a list of the groups that this broker coordinates would be incomplete."""
        return bool(self.loading) or any(map(self._is_loading, self.elsewhere))

    def _is_loading(self, shard: int) -> bool:
        return self.load_error(shard) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    def load_error(self, shard: int) -> ErrorCode:
        if shard in self.elsewhere:
            return self._absence(shard)
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if shard in self.loading else ErrorCode.NONE

    def replaced_by(self, group: Group, member_id: str, join: Callable[[], object]) -> Group | None:
        """Keep a group while a member asks to join it, and then only if it was accepted. Returns what the group replaced."""
        before = self.groups.get(group.id)
        self.groups[group.id] = group
        join()
        if before is group:
            return None
        if member_id in group.members or self.groups.get(group.id) is not group:
            return before
        del self.groups[group.id]
        if before is not None:
            self.groups[group.id] = before
        return None

    def drop(self, shard: int, shard_of: Callable[[str], int]) -> None:
        """Forget all groups and offsets of a shard: the log has them."""
        for group in self.of_shard(shard):
            del self.groups[group.id]
        for group_id in [one for one in self.old_offsets if shard_of(one) == shard]:
            del self.old_offsets[group_id]
        for producer_id, groups in list(self.pending.items()):
            groups -= {one for one in groups if shard_of(one) == shard}
            if not groups:
                del self.pending[producer_id]
