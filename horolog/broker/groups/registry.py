"""The groups that there are, and which parts of the log they are still being loaded from."""

from __future__ import annotations

from collections.abc import Iterator

from horolog.broker.groups.classic_group import ClassicGroup
from horolog.broker.groups.consumer_group import ConsumerGroup
from horolog.broker.groups.offsets import GroupOffsets
from horolog.protocol.errors import ErrorCode

Group = ClassicGroup | ConsumerGroup


class Registry:
    """Groups by id; `old_offsets` are those that were committed with OffsetCommit v0.

    `pending` says which groups a producer's open transaction has offsets for.
    """

    def __init__(self) -> None:
        self.groups: dict[str, Group] = {}
        self.old_offsets: dict[str, GroupOffsets] = {}
        self.pending: dict[int, set[str]] = {}
        self.loading: set[int] = set()

    def __repr__(self) -> str:
        return f"<Registry of {len(self.groups)} groups, {len(self.loading)} shards still loading>"

    def of_shard(self, shard: int) -> Iterator[Group]:
        return (group for group in list(self.groups.values()) if group.shard == shard)

    def load_error(self, shard: int) -> ErrorCode:
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if shard in self.loading else ErrorCode.NONE
