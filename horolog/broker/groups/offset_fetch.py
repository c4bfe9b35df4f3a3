"""OffsetFetch: the committed offsets of groups, one group per request up to v7, many from v8 on, topics by id from v10 on."""

from __future__ import annotations

from collections.abc import Callable

from horolog.broker.cluster.cluster import Cluster
from horolog.broker.groups.commits import Commits
from horolog.broker.groups.journal import GroupJournal
from horolog.broker.groups.offsets import Committed, GroupOffsets
from horolog.broker.groups.registry import Registry
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.offsets import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from horolog.protocol.records.head import NO_EPOCH, NO_OFFSET
from horolog.protocol.topic_partition import TopicPartition, by_topic, each_topic_once
from horolog.protocol.wire import NO_UUID

FIRST_WITH_GROUP_ERROR = 2
FIRST_WITH_MANY_GROUPS = 8
FIRST_BY_TOPIC_ID = 10


class OffsetFetch:
    """Answers OffsetFetch."""

    def __init__(self, cluster: Cluster, journal: GroupJournal, registry: Registry, commits: Commits) -> None:
        self._cluster = cluster
        self._journal = journal
        self._registry = registry
        self._commits = commits

    def fetch(self, request: OffsetFetchRequest, version: int, done: Callable[[OffsetFetchResponse], None]) -> None:
        """Answer once all earlier commits are written."""
        group_ids = (
            [one.group_id for one in request.groups] if version >= FIRST_WITH_MANY_GROUPS else [request.group_id]
        )
        shards = {self._journal.shard_of(group_id) for group_id in group_ids}
        self._journal.when_written(shards, lambda: done(self._answer(request, version)))

    def _answer(self, request: OffsetFetchRequest, version: int) -> OffsetFetchResponse:
        if version >= FIRST_WITH_MANY_GROUPS:
            groups = [self._fetch_group(one, version, stable=request.require_stable) for one in request.groups]
            return OffsetFetchResponse(groups=groups)
        if version == 0:
            return self._fetch_old(request)
        topics = None
        if request.topics is not None:
            topics = [
                OffsetFetchRequestTopics(name=one.name, partition_indexes=one.partition_indexes)
                for one in request.topics
            ]
        asked = OffsetFetchRequestGroup(group_id=request.group_id, topics=topics)
        group = self._fetch_group(asked, version, stable=request.require_stable)
        answered = [
            OffsetFetchResponseTopic(name=topic.name, partitions=[_plain(one) for one in topic.partitions])
            for topic in group.topics
        ]
        if group.error_code and version < FIRST_WITH_GROUP_ERROR:
            for topic in answered:
                for each in topic.partitions:
                    each.error_code = group.error_code
        return OffsetFetchResponse(topics=answered, error_code=group.error_code)

    def _fetch_group(self, asked: OffsetFetchRequestGroup, version: int, *, stable: bool) -> OffsetFetchResponseGroup:
        group = self._registry.groups.get(asked.group_id)
        code = self._registry.load_error(self._journal.shard_of(asked.group_id))
        if not code and group is not None:
            code = group.check_fetch(asked.member_id, asked.member_epoch)
        if code:
            # v0 and v1 have no place for an error but the partitions
            topics = [self._nothing(one) for one in asked.topics or ()] if version < FIRST_WITH_GROUP_ERROR else []
            return OffsetFetchResponseGroup(group_id=asked.group_id, topics=topics, error_code=code)
        offsets = group.offsets if group is not None else None
        if asked.topics is None:
            topics = self._everything(offsets, stable=stable)
        else:
            topics = [self._fetch_topic(offsets, one, version, stable=stable) for one in asked.topics]
        return OffsetFetchResponseGroup(group_id=asked.group_id, topics=topics)

    def _everything(self, offsets: GroupOffsets | None, *, stable: bool) -> list[OffsetFetchResponseTopics]:
        by_name = by_topic(
            (partition[0], _partition(offsets, partition, committed, stable=stable))
            for partition, committed in (() if offsets is None else self._commits.current(offsets))
        )
        return [
            OffsetFetchResponseTopics(name=name, topic_id=self._cluster.topics[name].id, partitions=partitions)
            for name, partitions in by_name.items()
        ]

    def _fetch_topic(
        self, offsets: GroupOffsets | None, asked: OffsetFetchRequestTopics, version: int, *, stable: bool
    ) -> OffsetFetchResponseTopics:
        name, topic_id = asked.name, NO_UUID
        if version >= FIRST_BY_TOPIC_ID:
            topic = self._cluster.by_id.get(asked.topic_id)
            topic_id = asked.topic_id
            if topic is None:
                return self._nothing(asked, ErrorCode.UNKNOWN_TOPIC_ID)
            name = topic.name
        partitions = []
        for index in asked.partition_indexes:
            committed = self._commits.find(offsets, (name, index))
            partitions.append(_partition(offsets, (name, index), committed, stable=stable))
        return OffsetFetchResponseTopics(name=name, topic_id=topic_id, partitions=partitions)

    @staticmethod
    def _nothing(asked: OffsetFetchRequestTopics, code: ErrorCode = ErrorCode.NONE) -> OffsetFetchResponseTopics:
        partitions = [_none(index, code) for index in asked.partition_indexes]
        return OffsetFetchResponseTopics(name=asked.name, topic_id=asked.topic_id, partitions=partitions)

    def _fetch_old(self, request: OffsetFetchRequest) -> OffsetFetchResponse:
        """v0: a partition without an offset is an error, each is answered once, and only offsets were kept."""
        offsets = self._registry.old_offsets.get(request.group_id)
        code = self._registry.load_error(self._journal.shard_of(request.group_id))
        missing = code or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        asked = each_topic_once(
            (topic.name, topic.partition_indexes) for topic in request.topics or () if topic.partition_indexes
        )
        topics = []
        for name, mentioned in asked.items():
            indexes = dict.fromkeys(mentioned)
            found = [self._commits.find(offsets, (name, index)) for index in indexes]
            partitions = [
                OffsetFetchResponsePartition(
                    partition_index=index,
                    committed_offset=NO_OFFSET if one is None else one.offset,
                    metadata="",
                    error_code=missing if one is None else ErrorCode.NONE,
                )
                for index, one in zip(indexes, found, strict=True)
            ]
            topics.append(OffsetFetchResponseTopic(name=name, partitions=partitions))
        return OffsetFetchResponse(topics=topics)


def _partition(
    offsets: GroupOffsets | None, partition: TopicPartition, committed: Committed | None, *, stable: bool
) -> OffsetFetchResponsePartitions:
    if stable and offsets is not None and offsets.is_pending(partition):
        return _none(partition[1], ErrorCode.UNSTABLE_OFFSET_COMMIT)
    if committed is None:
        return _none(partition[1])
    return OffsetFetchResponsePartitions(
        partition_index=partition[1],
        committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
    )


def _none(index: int, code: ErrorCode = ErrorCode.NONE) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=NO_OFFSET,
        committed_leader_epoch=NO_EPOCH,
        metadata="",
        error_code=code,
    )


def _plain(one: OffsetFetchResponsePartitions) -> OffsetFetchResponsePartition:
    return OffsetFetchResponsePartition(
        partition_index=one.partition_index,
        committed_offset=one.committed_offset,
        committed_leader_epoch=one.committed_leader_epoch,
        metadata=one.metadata,
        error_code=one.error_code,
    )
