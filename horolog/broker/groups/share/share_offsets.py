"""Reads the offsets of share groups and their lag, and sets and deletes those of groups without members.

Errors and their messages are Kafka's: a partition without a state has offset -1 and no error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

from horolog.broker.coordination.keyed_queue import gather
from horolog.broker.groups.share.latest_offsets import Ends, LatestOffsets
from horolog.broker.groups.share.share_coordinator import ShareCoordinator, places_of
from horolog.broker.groups.share.share_group import ShareGroup
from horolog.broker.groups.share.share_states import UNINITIALIZED, SharePlace, ShareRefusal, ShareSummary
from horolog.broker.groups.share.tracked_topics import TrackedTopic
from horolog.protocol.errors import ErrorCode
from horolog.protocol.topic_partition import TopicPartition
from horolog.protocol.wire import NO_UUID

NO_EPOCH = 0
K = TypeVar("K")
NOTHING_TO_DELETE = "There is no offset information to delete."


class ShareOffset(NamedTuple):
    """Where a group is in one partition."""

    topic_id: bytes
    start_offset: int = UNINITIALIZED
    leader_epoch: int = NO_EPOCH
    lag: int = UNINITIALIZED
    code: ErrorCode = ErrorCode.NONE


class TopicOutcome(NamedTuple):
    """What became of the offsets of one topic."""

    topic_id: bytes
    code: ErrorCode = ErrorCode.NONE
    message: str | None = None


OffsetsTold = dict[TopicPartition, ShareOffset]
Alteration = Mapping[TopicPartition, int]
"""The offsets to set."""


class ShareOffsets:
    """Answers once; `done` gets a refusal of the whole request, or what became of each part."""

    def __init__(self, coordinator: ShareCoordinator, ends: LatestOffsets) -> None:
        self._coordinator = coordinator
        self._known = coordinator.known
        self._ends = ends

    def __repr__(self) -> str:
        return f"<ShareOffsets of {self._coordinator!r}>"

    # -- telling

    def tell_all(self, group_id: str, done: Callable[[OffsetsTold], None]) -> None:
        """All initialized partitions of a group; none of a group that is not known or no share group."""
        group = self._coordinator.find(group_id)
        tracked = group.tracked.initialized if isinstance(group, ShareGroup) else {}
        places = {
            (topic.name, place.partition): place
            for place in places_of(group_id, tracked)
            if (topic := self._known.by_id.get(place.topic_id)) is not None
        }
        self._tell(places, done)

    def tell(self, group_id: str, partitions: Sequence[TopicPartition], done: Callable[[OffsetsTold], None]) -> None:
        """Some partitions of a group, which need not be known."""
        places = {
            (name, index): SharePlace(group_id, topic.id, index)
            for name, index in partitions
            if (topic := self._known.topics.get(name)) is not None
        }
        self._tell(places, done)

    def _tell(self, places: Mapping[TopicPartition, SharePlace], done: Callable[[OffsetsTold], None]) -> None:
        def summed(answers: list[ShareSummary | ErrorCode]) -> None:
            summaries = {
                partition: one for partition, one in zip(places, answers, strict=True) if not isinstance(one, ErrorCode)
            }
            counted = [partition for partition, one in summaries.items() if _has_lag(one)]
            self._ends.read(counted, lambda ends: done(_told(places, summaries, ends)))

        persister = self._coordinator.states
        gather([partial(persister.read_summary, place) for place in places.values()], summed)

    # -- setting

    def alter(
        self,
        group_id: str,
        offsets: Alteration,
        done: Callable[[ShareRefusal | dict[TopicPartition, TopicOutcome]], None],
    ) -> None:
        """Set offsets of a group without members; a group that is not known is made."""
        group = self._coordinator.find(group_id)
        if isinstance(group, ShareRefusal) and self._coordinator.is_free(group_id):
            group = self._coordinator.new(group_id)
        refusal = _not_changeable(group)
        if refusal is not None or not isinstance(group, ShareGroup):
            assert refusal is not None
            done(refusal)
            return
        outcomes = {partition: self._outcome(partition) for partition in offsets}
        begun = {
            SharePlace(group_id, outcome.topic_id, partition[1]): partition
            for partition, outcome in outcomes.items()
            if not outcome.code
        }
        if not begun:
            done(outcomes)
            return
        topics = self._tracked(begun)

        def complete(codes: dict[SharePlace, ErrorCode]) -> None:
            failed = {begun[place]: code for place, code in codes.items() if code}
            for partition, code in failed.items():
                outcomes[partition] = outcomes[partition]._replace(code=code, message=code.message)
            if failed:
                done(outcomes)
            else:
                self._coordinator.track(
                    group, lambda tracked: tracked.complete(topics), lambda code: done(_all(outcomes, code))
                )

        def written(code: ErrorCode) -> None:
            if code:
                done(ShareRefusal(code, code.message))
            else:
                asked = {place: offsets[partition] for place, partition in begun.items()}
                self._coordinator.begin(asked, group.epoch, complete)

        self._coordinator.keep(group)
        self._coordinator.track(group, lambda tracked: tracked.begin(topics), written)

    def _outcome(self, partition: TopicPartition) -> TopicOutcome:
        """Whether a partition exists."""
        name, index = partition
        topic = self._known.topics.get(name)
        if topic is None:
            return _unknown(NO_UUID)
        return TopicOutcome(topic.id) if 0 <= index < topic.partition_count else _unknown(topic.id)

    def _tracked(self, begun: Mapping[SharePlace, TopicPartition]) -> dict[bytes, TrackedTopic]:
        topics: dict[bytes, TrackedTopic] = {}
        for place, (name, index) in begun.items():
            before = topics.get(place.topic_id, TrackedTopic(name, frozenset(), self._known.now_ms()))
            topics[place.topic_id] = before._replace(partitions=before.partitions | {index})
        return topics

    # -- deleting

    def delete(
        self, group_id: str, names: Sequence[str], done: Callable[[ShareRefusal | dict[str, TopicOutcome]], None]
    ) -> None:
        """Delete the offsets of topics, of a group without members."""
        group = self._coordinator.find(group_id)
        refusal = _not_changeable(group)
        if refusal is not None or not isinstance(group, ShareGroup):
            assert refusal is not None
            done(refusal)
            return
        outcomes: dict[str, TopicOutcome] = {}
        topics: dict[bytes, TrackedTopic] = {}
        for name in names:
            outcomes[name], tracked = self._deletable(group, name)
            if tracked is not None:
                topics[outcomes[name].topic_id] = tracked
        if not topics:
            done(outcomes)
            return
        self._delete(group, topics, outcomes, done)

    def _deletable(self, group: ShareGroup, name: str) -> tuple[TopicOutcome, TrackedTopic | None]:
        topic = self._known.topics.get(name)
        if topic is None:
            return _unknown(NO_UUID), None
        tracked = group.tracked.initialized.get(topic.id)
        if tracked is None and topic.id in group.tracked.deleting:
            tracked = TrackedTopic(name, frozenset(range(topic.partition_count)))
        if tracked is None:
            return TopicOutcome(NO_UUID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, NOTHING_TO_DELETE), None
        return TopicOutcome(topic.id), tracked

    def _delete(
        self,
        group: ShareGroup,
        topics: Mapping[bytes, TrackedTopic],
        outcomes: dict[str, TopicOutcome],
        done: Callable[[ShareRefusal | dict[str, TopicOutcome]], None],
    ) -> None:
        names = {topic_id: one.name for topic_id, one in topics.items()}

        def forget(codes: dict[SharePlace, ErrorCode]) -> None:
            for place, code in codes.items():
                if code:
                    outcomes[names[place.topic_id]] = TopicOutcome(place.topic_id, code, code.message)
            gone = [topic_id for topic_id, name in names.items() if not outcomes[name].code]
            self._coordinator.track(
                group, lambda tracked: tracked.forget(gone), lambda code: done(_all(outcomes, code))
            )

        def written(code: ErrorCode) -> None:
            if code:
                done(ShareRefusal(code, code.message))
            else:
                self._coordinator.delete(places_of(group.id, topics), forget)

        self._coordinator.track(group, lambda tracked: tracked.delete(topics, names), written)


def _has_lag(summary: ShareSummary) -> bool:
    return UNINITIALIZED not in {summary.start_offset, summary.complete_count}


def _told(
    places: Mapping[TopicPartition, SharePlace], summaries: Mapping[TopicPartition, ShareSummary], ends: Ends
) -> OffsetsTold:
    told: OffsetsTold = {}
    for partition, place in places.items():
        summary = summaries.get(partition)
        end = ends.get(partition, UNINITIALIZED)
        if summary is None:
            told[partition] = ShareOffset(place.topic_id)
        elif isinstance(end, ErrorCode):
            told[partition] = ShareOffset(place.topic_id, 0, code=end)
        else:
            lag = end - summary.start_offset - summary.complete_count if _has_lag(summary) else UNINITIALIZED
            told[partition] = ShareOffset(place.topic_id, summary.start_offset, summary.leader_epoch, lag)
    return told


def _not_changeable(group: ShareGroup | ShareRefusal) -> ShareRefusal | None:
    if isinstance(group, ShareRefusal):
        return group
    return None if group.is_empty else ShareRefusal(ErrorCode.NON_EMPTY_GROUP, ErrorCode.NON_EMPTY_GROUP.message)


def _unknown(topic_id: bytes) -> TopicOutcome:
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return TopicOutcome(topic_id, code, code.message)


def _all(outcomes: dict[K, TopicOutcome], code: ErrorCode) -> dict[K, TopicOutcome]:
    """The outcomes, all with one code if the tracked topics could not be written."""
    if not code:
        return outcomes
    return {key: one._replace(code=code, message=code.message) for key, one in outcomes.items()}
