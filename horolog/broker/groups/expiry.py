"""Removes offsets that have outlived `offsets.retention.minutes` or their topic, and groups with nothing left.

The retention of an offset starts with its commit, or when the last member left its group, whichever is later. In a live group, only
offsets of topics that no member reads expire. A commit may set its own retention (v2 to v4). Offsets in an open transaction
stay.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from horolog.base.clock import Clock
from horolog.base.readable import counted
from horolog.broker.cluster.cluster import Cluster
from horolog.broker.groups.classic_group import ClassicGroup
from horolog.broker.groups.commits import Commits
from horolog.broker.groups.journal import GroupJournal
from horolog.broker.groups.offsets import tombstone
from horolog.broker.groups.records import OLD_OFFSET
from horolog.broker.groups.registry import Group, Registry
from horolog.broker.groups.share.share_group import ShareGroup
from horolog.protocol.errors import ErrorCode
from horolog.protocol.records.batch import Entry
from horolog.protocol.topic_partition import TopicPartition
from horolog.protocol.wire import NO_UUID

log = logging.getLogger(__name__)

MINUTE_MS = 60_000
MAX_TOMBSTONES = 1_000
"""In one batch; the rest follows with the next run."""


class GroupExpiry:
    """Removes offsets and groups, with tombstones in the log."""

    def __init__(
        self, cluster: Cluster, clock: Clock, journal: GroupJournal, registry: Registry, commits: Commits
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self._journal = journal
        self._registry = registry
        self._commits = commits

    def run(self) -> None:
        """Expire offsets of every loaded group."""
        now_ms = self._clock.wall_ms()
        for group in list(self._registry.groups.values()):
            self._expire(group, now_ms)
        retention_ms = self._cluster.settings.offsets_retention_minutes * MINUTE_MS
        for group_id, offsets in list(self._registry.old_offsets.items()):
            expired = offsets.expired(now_ms, retention_ms, lambda _, committed: committed.commit_ms)
            if expired:
                shard = self._journal.shard_of(group_id)
                self._commits.remove(group_id, shard, offsets, expired[:MAX_TOMBSTONES], _report, kind=OLD_OFFSET)
            elif not len(offsets):
                del self._registry.old_offsets[group_id]

    def _expire(self, group: Group, now_ms: int) -> None:
        if isinstance(group, ShareGroup):
            return  # such groups stay until they are deleted
        retention_ms = self._cluster.settings.offsets_retention_minutes * MINUTE_MS
        outlived = group.offsets.expired(now_ms, retention_ms, group.expiry_starts)
        expired = list(dict.fromkeys((*outlived, *self._without_topic(group))))
        if expired:
            log.info("group %s: removed %s", group.id, counted(len(expired), "expired offset"))
        nothing_left = len(expired) == len(group.offsets) and not group.offsets.has_pending
        if nothing_left and group.is_empty and len(expired) <= MAX_TOMBSTONES and not group.check_delete():
            self.delete(group, _report)
        elif expired:
            self._commits.remove(group.id, group.shard, group.offsets, expired[:MAX_TOMBSTONES], _report)

    def _without_topic(self, group: Group) -> list[TopicPartition]:
        """Offsets of topics that were deleted, or deleted and created again."""
        topics = self._cluster.topics
        return [
            partition
            for partition, committed in group.offsets.items()
            if (topic := topics.get(partition[0])) is None or committed.topic_id not in {NO_UUID, topic.id}
        ]

    def delete(self, group: Group, done: Callable[[ErrorCode], None]) -> None:
        """Remove a group and its offsets; it is gone once its tombstones are written."""
        entries: list[Entry] = [tombstone(group.id, partition) for partition in group.offsets]
        if not isinstance(group, ClassicGroup):
            entries += group.tombstones()
        elif not group.is_simple:
            entries.append(group.tombstone())
        if not entries:
            self._forget(group)
            done(ErrorCode.NONE)
            return

        def written(code: ErrorCode, _: int) -> None:
            if not code:
                self._forget(group)
            done(code)

        self._journal.append(group.shard, entries, written, is_state=True)

    def _forget(self, group: Group) -> None:
        """Drop the group from memory. If a member joined while the tombstones were written, it stays, without offsets."""
        if group.check_delete():
            for partition in list(group.offsets):
                group.offsets.remove(partition)
        elif self._registry.groups.get(group.id) is group:
            del self._registry.groups[group.id]


def _report(code: ErrorCode) -> None:
    if code:
        log.warning("expired offsets could not be removed (%s); trying again", code.name)
