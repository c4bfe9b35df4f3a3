"""Committing, fetching and deleting offsets, inside of transactions and outside.

An offset counts once it is written: a commit is answered then, and a fetch that comes while something is on its way waits for it.
OffsetCommit v0 and OffsetFetch v0 have a store of their own and no groups, as ZooKeeper was for brokers of their time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from horolog.broker.clock import Clock
from horolog.broker.cluster import Cluster
from horolog.broker.groups.classic_group import ClassicGroup
from horolog.broker.groups.journal import Journal, Producer
from horolog.broker.groups.offsets import NEVER, Committed, GroupOffsets, TopicPartition, tombstone
from horolog.broker.groups.records import OFFSET, OLD_OFFSET, Entry
from horolog.broker.groups.registry import Registry
from horolog.broker.topic import Topic
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from horolog.protocol.messages.transactions import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from horolog.protocol.wire import NO_UUID

log = logging.getLogger(__name__)

FIRST_COMMIT_BY_TOPIC_ID = 10
NOW = -1
NO_VERSION = -1
NO_RETENTION = -1
TOO_LARGE = {ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE}

Answered = OffsetCommitResponsePartition | TxnOffsetCommitResponsePartition
Accepted = list[tuple[TopicPartition, Committed, Answered]]


class Commits:
    """The offsets of all groups."""

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock,
        journal: Journal,
        registry: Registry,
        on_commit: Callable[[str, str], None],
    ) -> None:
        """`on_commit(group_id, member_id)` is told that a member is alive."""
        self._cluster = cluster
        self._clock = clock
        self._journal = journal
        self._registry = registry
        self._on_commit = on_commit

    # -- OffsetCommit

    def commit(self, request: OffsetCommitRequest, version: int, done: Callable[[OffsetCommitResponse], None]) -> None:
        shard = self._journal.shard_of(request.group_id)
        code = self._registry.load_error(shard) or (self._check(request, version) if version else ErrorCode.NONE)
        if not code and request.member_id:
            self._on_commit(request.group_id, request.member_id)
        accepted: Accepted = []
        topics = [self._take_topic(request, topic, version, code, accepted) for topic in request.topics]
        response = OffsetCommitResponse(topics=topics)
        if not accepted:
            done(response)
            return
        kind = OFFSET if version else OLD_OFFSET
        entries = [committed.entry(request.group_id, partition, kind) for partition, committed, _ in accepted]

        def written(failure: ErrorCode, base_offset: int) -> None:
            if failure:
                _refuse(accepted, failure)
            else:
                offsets = self._offsets_for_writing(request.group_id, shard, old=not version)
                for place, (partition, committed, _) in enumerate(accepted):
                    committed.log_offset = base_offset + place
                    offsets.put(partition, committed)
            done(response)

        durable = self._cluster.settings.horolog_offsets_commit_sync
        self._journal.append(shard, entries, written, durable=durable)

    def _check(self, request: OffsetCommitRequest, version: int) -> ErrorCode:
        return self._check_member(
            request.group_id,
            request.member_id,
            request.group_instance_id,
            request.generation_id_or_member_epoch,
            version,
            transactional=False,
        )

    def _check_member(
        self,
        group_id: str,
        member_id: str,
        instance_id: str | None,
        generation: int,
        version: int,
        *,
        transactional: bool,
    ) -> ErrorCode:
        group = self._registry.groups.get(group_id)
        if group is not None:
            return group.check_commit(member_id, instance_id, generation, version, transactional=transactional)
        if generation >= 0:
            return ErrorCode.ILLEGAL_GENERATION
        if len(self._registry.groups) >= self._cluster.settings.horolog_groups_max:
            return ErrorCode.GROUP_MAX_SIZE_REACHED
        return ErrorCode.NONE

    def _take_topic(
        self, request: OffsetCommitRequest, asked: OffsetCommitRequestTopic, version: int, code: ErrorCode, to: Accepted
    ) -> OffsetCommitResponseTopic:
        topic: Topic | None
        missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if version >= FIRST_COMMIT_BY_TOPIC_ID:
            topic = self._cluster.by_id.get(asked.topic_id)
            missing = ErrorCode.UNKNOWN_TOPIC_ID if topic is None else missing
        else:
            topic = self._cluster.topics.get(asked.name)
        now_ms = self._clock.wall_ms()
        retention_ms = request.retention_time_ms
        expire_ms = NEVER if retention_ms == NO_RETENTION else now_ms + retention_ms
        answers = []
        for each in asked.partitions:
            answer = OffsetCommitResponsePartition(partition_index=each.partition_index, error_code=code)
            answers.append(answer)
            if not code and (topic is None or not topic.has(each.partition_index)):
                answer.error_code = missing
            elif not code and topic is not None:
                commit_ms = now_ms if each.commit_timestamp == NOW else each.commit_timestamp
                self._take(topic, each, answer, commit_ms, expire_ms, to)
        return OffsetCommitResponseTopic(name=asked.name, topic_id=asked.topic_id, partitions=answers)

    def _take(
        self,
        topic: Topic,
        asked: OffsetCommitRequestPartition | TxnOffsetCommitRequestPartition,
        answer: Answered,
        commit_ms: int,
        expire_ms: int,
        to: Accepted,
    ) -> None:
        metadata = asked.committed_metadata or ""
        if len(metadata) > self._cluster.settings.offset_metadata_max_bytes:
            answer.error_code = ErrorCode.OFFSET_METADATA_TOO_LARGE
            return
        committed = Committed(
            asked.committed_offset, asked.committed_leader_epoch, metadata, commit_ms, expire_ms, topic.id
        )
        to.append(((topic.name, asked.partition_index), committed, answer))

    def _offsets_for_writing(self, group_id: str, shard: int, *, old: bool = False) -> GroupOffsets:
        """The offsets of a group, which begins with its first commit if nobody has joined it."""
        if old:
            return self._registry.old_offsets.setdefault(group_id, GroupOffsets())
        group = self._registry.groups.get(group_id)
        if group is None:
            group = ClassicGroup(group_id, shard, GroupOffsets(), self._clock.wall_ms())
            self._registry.groups[group_id] = group
        return group.offsets

    # -- transactions

    def txn_commit(self, request: TxnOffsetCommitRequest, done: Callable[[TxnOffsetCommitResponse], None]) -> None:
        """Append offsets in a producer's transaction; they count once `complete_txn` says that it is committed."""
        shard = self._journal.shard_of(request.group_id)
        code = self._registry.load_error(shard) or self._check_member(
            request.group_id,
            request.member_id,
            request.group_instance_id,
            request.generation_id,
            NO_VERSION,
            transactional=True,
        )
        accepted: Accepted = []
        topics = []
        for asked in request.topics:
            answers = []
            topic = self._cluster.topics.get(asked.name)
            for each in asked.partitions:
                answer = TxnOffsetCommitResponsePartition(partition_index=each.partition_index, error_code=code)
                answers.append(answer)
                if not code and (topic is None or not topic.has(each.partition_index)):
                    answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                elif not code and topic is not None:
                    self._take(topic, each, answer, self._clock.wall_ms(), NEVER, accepted)
            topics.append(TxnOffsetCommitResponseTopic(name=asked.name, partitions=answers))
        response = TxnOffsetCommitResponse(topics=topics)
        if not accepted:
            done(response)
            return
        entries = [committed.entry(request.group_id, partition) for partition, committed, _ in accepted]

        def written(failure: ErrorCode, base_offset: int) -> None:
            if failure:
                _refuse(accepted, failure)
            else:
                offsets = self._offsets_for_writing(request.group_id, shard)
                self._registry.pending.setdefault(request.producer_id, set()).add(request.group_id)
                for place, (partition, committed, _) in enumerate(accepted):
                    committed.log_offset = base_offset + place
                    offsets.put_pending(request.producer_id, partition, committed)
            done(response)

        producer = Producer(request.producer_id, request.producer_epoch)
        # As durable as the transaction's records: else a power cut before its end leaves records without their offsets.
        durable = self._cluster.settings.horolog_acks_all_sync
        self._journal.append(shard, entries, written, producer=producer, durable=durable)

    def complete_txn(self, producer_id: int, *, committed: bool) -> None:
        """The markers of a producer's transaction are written."""
        for group_id in self._registry.pending.pop(producer_id, ()):
            group = self._registry.groups.get(group_id)
            if group is not None:
                group.offsets.complete(producer_id, committed=committed)

    # -- reading

    def find(self, offsets: GroupOffsets | None, partition: TopicPartition) -> Committed | None:
        """The committed offset of a partition, unless it was for another topic of the same name."""
        committed = offsets.get(partition) if offsets is not None else None
        if committed is None or not self._is_current(partition, committed):
            return None
        return committed

    def current(self, offsets: GroupOffsets) -> list[tuple[TopicPartition, Committed]]:
        return [(partition, one) for partition, one in offsets.items() if self._is_current(partition, one)]

    def _is_current(self, partition: TopicPartition, committed: Committed) -> bool:
        topic = self._cluster.topics.get(partition[0])
        return topic is not None and committed.topic_id in {NO_UUID, topic.id}

    # -- deleting

    def delete(self, request: OffsetDeleteRequest, done: Callable[[OffsetDeleteResponse], None]) -> None:
        """OffsetDelete: what a live group reads is kept."""
        shard = self._journal.shard_of(request.group_id)
        group = self._registry.groups.get(request.group_id)
        code = self._registry.load_error(shard) or ErrorCode.NONE
        if not code:
            code = ErrorCode.GROUP_ID_NOT_FOUND if group is None else group.check_offset_delete()
        if code or group is None:
            done(OffsetDeleteResponse(error_code=code, topics=[]))
            return
        doomed: list[TopicPartition] = []
        topics = []
        for asked in request.topics:
            answers = []
            reads = group.reads(asked.name)
            for each in asked.partitions:
                partition = (asked.name, each.partition_index)
                answer = OffsetDeleteResponsePartition(partition_index=each.partition_index)
                answers.append(answer)
                if not self._exists(partition):
                    answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                elif reads:
                    answer.error_code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
                elif group.offsets.get(partition) is not None or group.offsets.is_pending(partition):
                    doomed.append(partition)
            topics.append(OffsetDeleteResponseTopic(name=asked.name, partitions=answers))
        response = OffsetDeleteResponse(topics=topics)
        if doomed:
            self.remove(
                request.group_id, shard, group.offsets, doomed, lambda failure: done(_failed(response, failure))
            )
        else:
            done(response)

    def _exists(self, partition: TopicPartition) -> bool:
        topic = self._cluster.topics.get(partition[0])
        return topic is not None and topic.has(partition[1])

    def remove(
        self,
        group_id: str,
        shard: int,
        offsets: GroupOffsets,
        doomed: Iterable[TopicPartition],
        done: Callable[[ErrorCode], None],
        *,
        kind: int = OFFSET,
        also: Iterable[Entry] = (),
    ) -> None:
        """Write tombstones, and forget the offsets once they are written."""
        partitions = list(doomed)

        def written(code: ErrorCode, _: int) -> None:
            if not code:
                for partition in partitions:
                    offsets.remove(partition)
            done(code)

        entries = [*(tombstone(group_id, partition, kind) for partition in partitions), *also]
        self._journal.append(shard, entries, written)


def _failed(response: OffsetDeleteResponse, code: ErrorCode) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(error_code=code, topics=[]) if code else response


def _refuse(accepted: Accepted, code: ErrorCode) -> None:
    told = ErrorCode.INVALID_COMMIT_OFFSET_SIZE if code in TOO_LARGE else ErrorCode.COORDINATOR_NOT_AVAILABLE
    if code == ErrorCode.NOT_COORDINATOR:
        told = code
    for _, _, answer in accepted:
        answer.error_code = told
