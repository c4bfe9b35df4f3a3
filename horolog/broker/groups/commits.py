"""Commits, fetches and deletes offsets, inside and outside of transactions.

An offset counts once it is written: the commit is answered then, and a fetch waits for writes in progress. OffsetCommit v0 and
OffsetFetch v0 have their own store without groups, as ZooKeeper was for brokers of their time.

Commit requests and responses are flat tuples of the fields that `protocol.messages` declares, in their order. The type aliases
below name them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

from horolog.base.clock import Clock
from horolog.broker.cluster.cluster import Cluster
from horolog.broker.cluster.topic import Topic
from horolog.broker.groups.classic_group import ClassicGroup
from horolog.broker.groups.epoch_commits import GroupWithEpochs
from horolog.broker.groups.journal import GroupJournal, TransactionalProducer
from horolog.broker.groups.offsets import NEVER, Committed, GroupOffsets, tombstone
from horolog.broker.groups.records import OFFSET, OLD_OFFSET
from horolog.broker.groups.registry import Registry
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.offsets import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from horolog.protocol.records.batch import Entry
from horolog.protocol.topic_partition import TopicPartition, each_topic_once
from horolog.protocol.wire import NO_THROTTLING_MS, NO_UUID

log = logging.getLogger(__name__)

LAST_MENTION_COUNTS_IN = 1
"""The version of OffsetCommit that answers a partition once, however often it is named."""
EVERYWHERE = -1
FIRST_COMMIT_BY_TOPIC_ID = 10
NOW = -1
NO_VERSION = -1
NO_RETENTION = -1
NOT_CURRENT = frozenset({ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.ILLEGAL_GENERATION})
"""The member is in another epoch, and may be in a newer one."""
TOO_LARGE = {ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE}

OffsetAsked = tuple[int, int, int, int, str | None]
"""Partition, offset, leader epoch, time of the commit, and a note."""
TopicAsked = tuple[str, bytes, list[OffsetAsked]]
CommitRequest = tuple[str, int, str, str | None, int, list[TopicAsked]]
"""Group, generation, member, instance, retention, topics."""
TxnTopicAsked = tuple[str, list[tuple[int, int, int, str | None]]]
TxnCommitRequest = tuple[str, str, int, int, int, str, str | None, list[TxnTopicAsked]]
"""Transactional id, group, producer id and epoch, generation, member, instance, topics, whose offsets have no time."""

PartitionAnswer = tuple[int, int]
"""Number and error code."""
CommitAnswer = tuple[int, list[tuple[str, bytes, list[PartitionAnswer]]]]
TxnCommitAnswer = tuple[int, list[tuple[str, list[PartitionAnswer]]]]

Named = TypeVar("Named", bound=Hashable)

Accepted = list[tuple[TopicPartition, Committed]]


class Commits:
    """The offsets of all groups."""

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock,
        journal: GroupJournal,
        registry: Registry,
        on_commit: Callable[[str, str], None],
    ) -> None:
        """`on_commit(group_id, member_id)` is called for each commit of a member, which proves it alive."""
        self._cluster = cluster
        self._clock = clock
        self._journal = journal
        self._registry = registry
        self._on_commit = on_commit

    # -- OffsetCommit

    def commit(self, request: CommitRequest, version: int, done: Callable[[CommitAnswer], None]) -> None:
        group_id, generation, member_id, instance_id, retention_ms, topics = request
        shard = self._journal.shard_of(group_id)
        code = self._registry.load_error(shard)
        if not code and version:
            code = self._check_member(group_id, member_id, instance_id, generation, version)
            if code in NOT_CURRENT:
                found = [(self._topic_of(name, topic_id, version), sets) for name, topic_id, sets in topics]
                code = self._check_kept(group_id, member_id, generation, code, found)
        if not code and member_id:
            self._on_commit(group_id, member_id)
        if version == LAST_MENTION_COUNTS_IN:
            topics = self._last_mentions(topics)
        accepted: Accepted = []
        answers = []
        for name, topic_id, sets in topics:
            topic = self._topic_of(name, topic_id, version)
            if sets or isinstance(topic, ErrorCode):
                answers.append((name, topic_id, self._take_topic(topic, sets, code, retention_ms, accepted)))
        if len(answers) > 1:
            answers = [
                (name, topic_id, each)
                for (name, topic_id), each in merged_where_refused(((a, b), c) for a, b, c in answers)
            ]
        if not accepted:
            done((NO_THROTTLING_MS, answers))
            return
        accepted = _each_once(accepted)
        kind = OFFSET if version else OLD_OFFSET
        entries = [committed.entry(group_id, partition, kind) for partition, committed in accepted]

        def written(failure: ErrorCode, base_offset: int) -> None:
            if failure:
                refused = [(name, topic_id, _refused(each, failure)) for name, topic_id, each in answers]
                done((NO_THROTTLING_MS, refused))
                return
            offsets = self._offsets_for_writing(group_id, shard, old=not version)
            for place, (partition, committed) in enumerate(accepted):
                committed.log_offset = base_offset + place
                offsets.put(partition, committed)
            done((NO_THROTTLING_MS, answers))

        durable = self._cluster.settings.horolog_offsets_commit_sync
        self._journal.append(shard, entries, written, durable=durable)

    def _check_member(
        self,
        group_id: str,
        member_id: str,
        instance_id: str | None,
        generation: int,
        version: int,
        *,
        transactional: bool = False,
    ) -> ErrorCode:
        group = self._registry.groups.get(group_id)
        if group is not None:
            return group.check_commit(member_id, instance_id, generation, version, transactional=transactional)
        if generation >= 0:
            return ErrorCode.ILLEGAL_GENERATION
        if len(self._registry.groups) >= self._cluster.settings.horolog_groups_max:
            return ErrorCode.GROUP_MAX_SIZE_REACHED
        return ErrorCode.NONE

    def _check_kept(
        self,
        group_id: str,
        member_id: str,
        epoch: int,
        code: ErrorCode,
        asked: Iterable[tuple[Topic | ErrorCode, Sequence[tuple[int, *tuple[object, ...]]]]],
    ) -> ErrorCode:
        """A member may commit with an earlier epoch what it has had since then; `code` refuses it else."""
        group = self._registry.groups.get(group_id)
        if not isinstance(group, GroupWithEpochs):
            return code
        partitions = (
            (topic.name, topic.id, each[0])
            for topic, sets in asked
            if isinstance(topic, Topic)
            for each in sets
            if topic.has(each[0])
        )
        return ErrorCode.NONE if group.has_kept(member_id, epoch, partitions) else code

    def _last_mentions(self, topics: list[TopicAsked]) -> list[TopicAsked]:
        """Each topic once. Of a partition that exists the last mention is answered, of another one each mention."""
        once: dict[str, dict[tuple[int, int], OffsetAsked]] = {}
        for number, (name, _, sets) in enumerate(topics):
            topic = self._cluster.topics.get(name) or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            mentions = once.setdefault(name, {})
            for place, each in enumerate(sets):
                mentions[(number, place) if missing(topic, each[0]) else (EVERYWHERE, each[0])] = each
        return [(name, NO_UUID, list(mentions.values())) for name, mentions in once.items()]

    def _topic_of(self, name: str, topic_id: bytes, version: int) -> Topic | ErrorCode:
        if version < FIRST_COMMIT_BY_TOPIC_ID:
            return self._cluster.topics.get(name) or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return self._cluster.by_id.get(topic_id) or ErrorCode.UNKNOWN_TOPIC_ID

    def _take_topic(
        self,
        topic: Topic | ErrorCode,
        asked: Sequence[OffsetAsked],
        code: ErrorCode,
        retention_ms: int,
        to: Accepted,
    ) -> list[PartitionAnswer]:
        """The partitions' answers once the accepted offsets are written; a `code` refuses those that exist."""
        now_ms = self._clock.wall_ms()
        expire_ms = NEVER if retention_ms == NO_RETENTION else now_ms + retention_ms
        longest = self._cluster.settings.offset_metadata_max_bytes
        answers: list[PartitionAnswer] = []
        for index, offset, leader_epoch, commit_ms, note in asked:
            error = missing(topic, index) or code or _length_refusal(note, longest)
            if not error and isinstance(topic, Topic):
                at_ms = now_ms if commit_ms == NOW else commit_ms
                committed = Committed(offset, leader_epoch, note or "", at_ms, expire_ms, topic.id)
                to.append(((topic.name, index), committed))
            answers.append((index, error))
        return answers

    def _offsets_for_writing(self, group_id: str, shard: int, *, old: bool = False) -> GroupOffsets:
        """The offsets of a group; a group without members is created by its first commit."""
        if old:
            return self._registry.old_offsets.setdefault(group_id, GroupOffsets())
        group = self._registry.groups.get(group_id)
        if group is None:
            group = ClassicGroup(group_id, shard, GroupOffsets(), self._clock.wall_ms())
            self._registry.groups[group_id] = group
        return group.offsets

    # -- transactions

    def txn_commit(self, request: TxnCommitRequest, done: Callable[[TxnCommitAnswer], None]) -> None:
        """Append offsets in a producer's transaction; they count once `complete_txn` says that it is committed."""
        _, group_id, producer_id, producer_epoch, generation, member_id, instance_id, topics = request
        shard = self._journal.shard_of(group_id)
        code = self._registry.load_error(shard) or self._check_member(
            group_id, member_id, instance_id, generation, NO_VERSION, transactional=True
        )
        if code in NOT_CURRENT:
            found = [(self._topic_of(name, NO_UUID, NO_VERSION), sets) for name, sets in topics]
            code = self._check_kept(group_id, member_id, generation, code, found)
        if code == ErrorCode.STALE_MEMBER_EPOCH:  # which producers do not know
            code = ErrorCode.ILLEGAL_GENERATION
        accepted: Accepted = []
        answers = []
        for name, asked in topics:
            topic = self._topic_of(name, NO_UUID, NO_VERSION)
            timed = [(index, offset, leader_epoch, NOW, note) for index, offset, leader_epoch, note in asked]
            if timed or isinstance(topic, ErrorCode):
                answers.append((name, self._take_topic(topic, timed, code, NO_RETENTION, accepted)))
        answers = merged_where_refused(answers)
        if not accepted:
            done((NO_THROTTLING_MS, answers))
            return
        accepted = _each_once(accepted)
        entries = [committed.entry(group_id, partition) for partition, committed in accepted]

        def written(failure: ErrorCode, base_offset: int) -> None:
            if failure:
                done((NO_THROTTLING_MS, [(name, _refused(each, failure)) for name, each in answers]))
                return
            offsets = self._offsets_for_writing(group_id, shard)
            self._registry.pending.setdefault(producer_id, set()).add(group_id)
            for place, (partition, committed) in enumerate(accepted):
                committed.log_offset = base_offset + place
                offsets.put_pending(producer_id, partition, committed)
            done((NO_THROTTLING_MS, answers))

        # As durable as the transaction's records: else a power cut before its end may keep records without their offsets.
        durable = self._cluster.settings.horolog_acks_all_sync
        producer = TransactionalProducer(producer_id, producer_epoch)
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
        """OffsetDelete: offsets of topics that a live group reads are kept."""
        shard = self._journal.shard_of(request.group_id)
        group = self._registry.groups.get(request.group_id)
        code = self._registry.load_error(shard) or ErrorCode.NONE
        if not code:
            code = ErrorCode.GROUP_ID_NOT_FOUND if group is None else group.check_offset_delete()
        if code or group is None:
            done(OffsetDeleteResponse(error_code=code, topics=[]))
            return
        doomed: dict[TopicPartition, None] = {}
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
                    doomed[partition] = None
            if answers:
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


def _each_once(accepted: Accepted) -> Accepted:
    """If a request names a partition more than once, only its last offset counts and is written."""
    return accepted if len(accepted) == 1 else list(dict(accepted).items())


def merged_where_refused(
    answers: Iterable[tuple[Named, list[PartitionAnswer]]],
) -> list[tuple[Named, list[PartitionAnswer]]]:
    """Where anything is refused, each topic is answered once, as on real brokers."""
    told = list(answers)
    if not any(error for _, each in told for _, error in each):
        return told
    return list(each_topic_once(told).items())


def _failed(response: OffsetDeleteResponse, code: ErrorCode) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(error_code=code, topics=[]) if code else response


def missing(topic: Topic | ErrorCode, index: int) -> ErrorCode:
    """Why a partition has no offsets: it does not exist, whatever else is wrong with the commit."""
    if not isinstance(topic, Topic):
        return topic
    return ErrorCode.NONE if topic.has(index) else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _length_refusal(note: str | None, longest: int) -> ErrorCode:
    return ErrorCode.OFFSET_METADATA_TOO_LARGE if note and len(note) > longest else ErrorCode.NONE


def _refused(answers: Sequence[PartitionAnswer], code: ErrorCode) -> list[PartitionAnswer]:
    """The answers if the accepted offsets could not be written."""
    told = ErrorCode.INVALID_COMMIT_OFFSET_SIZE if code in TOO_LARGE else ErrorCode.COORDINATOR_NOT_AVAILABLE
    if code == ErrorCode.NOT_COORDINATOR:
        told = code
    return [(index, error or told) for index, error in answers]
