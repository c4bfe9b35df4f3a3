"""Share groups at the coordinator: finds the group of a heartbeat, asks the persister for states, and answers what others ask of a group.

The leaders of share partitions ask for a group's settings.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from horolog.base.readable import counted
from horolog.broker.cluster.cluster import Cluster
from horolog.broker.coordination.keyed_queue import gather
from horolog.broker.groups.classic_events import Client
from horolog.broker.groups.group_settings import overrides_of
from horolog.broker.groups.held import HeldByGroups
from horolog.broker.groups.journal import GroupJournal
from horolog.broker.groups.known import Known
from horolog.broker.groups.registry import Registry
from horolog.broker.groups.runner import Runner
from horolog.broker.groups.share.share_decisions import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    check_share_heartbeat,
    share_refusal,
)
from horolog.broker.groups.share.share_events import (
    ShareHeartbeat,
    ShareLeave,
    StatesBegun,
    StatesToBegin,
    TopicsTracked,
)
from horolog.broker.groups.share.share_group import ShareGroup
from horolog.broker.groups.share.share_settings import EffectiveSettings, ShareSettings
from horolog.broker.groups.share.share_states import UNINITIALIZED, SharePlace, ShareRefusal, ShareStates
from horolog.broker.groups.share.tracked_topics import Tracked, TrackedTopic, TrackedTopics
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.share_groups import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse

log = logging.getLogger(__name__)


class ShareCoordinator:
    """The share groups of this broker."""

    def __init__(
        self,
        cluster: Cluster,
        known: Known,
        journal: GroupJournal,
        registry: Registry,
        runner: Runner,
        held: HeldByGroups,
    ) -> None:
        self._cluster = cluster
        self.known = known
        self._journal = journal
        self._registry = registry
        self._runner = runner
        self._held = held
        self._settings = EffectiveSettings()
        self.persister: ShareStates | None = None
        """Set before the first request is served."""

    def __repr__(self) -> str:
        return f"<ShareCoordinator of {self._registry!r} over {self.persister!r}>"

    @property
    def states(self) -> ShareStates:
        assert self.persister is not None, "share groups are served with a persister alone"
        return self.persister

    # -- members

    def heartbeat(
        self,
        request: ShareGroupHeartbeatRequest,
        client: Client,
        answer: Callable[[ShareGroupHeartbeatResponse], None],
    ) -> None:
        refusal = check_share_heartbeat(request)
        group = refusal or self._group_of(request)
        if isinstance(group, ShareGroup) and not self._held.takes_share_heartbeat(group, request, client):
            group = ShareRefusal(
                ErrorCode.GROUP_MAX_SIZE_REACHED, "The limit for the data of group members is reached."
            )
        if isinstance(group, ShareRefusal):
            answer(share_refusal(group))
        elif request.member_epoch == LEAVE_EPOCH:
            self._runner.run(group, ShareLeave(request, answer))
        else:
            self.keep(group)
            self._runner.run(group, ShareHeartbeat(request, client, answer, partial(self._begin_states, group)))

    def _group_of(self, request: ShareGroupHeartbeatRequest) -> ShareGroup | ShareRefusal:
        found = self.find(request.group_id)
        if request.member_epoch == LEAVE_EPOCH or not self.is_free(request.group_id):
            return found
        if request.member_epoch != JOIN_EPOCH:
            return ShareRefusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Share group {request.group_id} not found.")
        return self.new(request.group_id)

    def new(self, group_id: str) -> ShareGroup | ShareRefusal:
        """A group that is kept for a member that joins, or for offsets that are set."""
        if len(self._registry.groups) >= self.known.settings.horolog_groups_max:
            return ShareRefusal(ErrorCode.GROUP_MAX_SIZE_REACHED, "The maximum number of groups is reached.")
        return ShareGroup(group_id, self._journal.shard_of(group_id), self.known.now_ms())

    # -- what others ask

    def find(self, group_id: str) -> ShareGroup | ShareRefusal:
        """A share group, or why there is none."""
        code = self.load_error(group_id)
        group = self._registry.groups.get(group_id)
        if code:
            return ShareRefusal(code, code.message)
        if group is None:
            return ShareRefusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        if not isinstance(group, ShareGroup):
            return ShareRefusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a share group.")
        return group

    def load_error(self, group_id: str) -> ErrorCode:
        """Why this broker cannot say anything about a group, if it cannot."""
        return self._registry.load_error(self._journal.shard_of(group_id))

    def is_free(self, group_id: str) -> bool:
        """Whether no group has this id, as far as this broker may say so."""
        return not self.load_error(group_id) and group_id not in self._registry.groups

    def settings(self, group_id: str) -> ShareSettings:
        return self._settings.of(group_id, overrides_of(self._cluster.state.rules, group_id), self._cluster.settings)

    # -- states of partitions

    def _begin_states(self, group: ShareGroup, asked: StatesToBegin | None) -> None:
        """Ask the persister, now that the group's log says so; None if that could not be written."""
        if asked is None:
            return

        def note_begun(codes: dict[SharePlace, ErrorCode]) -> None:
            refused = {place for place, code in codes.items() if code}
            if refused:
                log.warning(
                    "group %s: the state of %s could not be created", group.id, counted(len(refused), "partition")
                )
            if self._registry.groups.get(group.id) is group:
                good = {place for place in codes if place not in refused}
                self._runner.run(group, StatesBegun(_only(asked.topics, good), _only(asked.topics, refused)))

        begins = dict.fromkeys(places_of(group.id, asked.topics), UNINITIALIZED)
        self.begin(begins, asked.state_epoch, note_begun)

    def begin(
        self, offsets: dict[SharePlace, int], state_epoch: int, done: Callable[[dict[SharePlace, ErrorCode]], None]
    ) -> None:
        """Begin states at these offsets."""
        places = list(offsets)
        gather(
            [partial(self.states.initialize, place, state_epoch, offsets[place]) for place in places],
            lambda codes: done(dict(zip(places, codes, strict=True))),
        )

    def delete(self, places: list[SharePlace], done: Callable[[dict[SharePlace, ErrorCode]], None]) -> None:
        gather(
            [partial(self.states.delete, place) for place in places],
            lambda codes: done(dict(zip(places, codes, strict=True))),
        )

    def keep(self, group: ShareGroup) -> None:
        """Keep a new group."""
        self._registry.groups.setdefault(group.id, group)

    def track(
        self, group: ShareGroup, change: Callable[[TrackedTopics], TrackedTopics], then: Callable[[ErrorCode], None]
    ) -> None:
        """Change the tracked topics of a group; `then` gets the outcome once it is written.

        A group that is gone, or was read again from the log while the persister was asked, is not changed.
        """
        if self._registry.groups.get(group.id) is group:
            self._runner.run(group, TopicsTracked(change, then))
        else:
            code = self._registry.load_error(group.shard)
            then(code or ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)

    # -- groups and topics that go

    def delete_states(self, group: ShareGroup, done: Callable[[ErrorCode], None]) -> None:
        """Delete the states of a group that is about to be deleted."""
        topics = self._with_states(group)

        def finish(codes: dict[SharePlace, ErrorCode]) -> None:
            done(next((code for code in codes.values() if code), ErrorCode.NONE))

        def written(code: ErrorCode) -> None:
            if code:
                done(code)
            else:
                self.delete(places_of(group.id, topics), finish)

        names = {topic_id: one.name for topic_id, one in topics.items()}
        self.track(group, lambda tracked: tracked.delete(topics, names), written)

    def _with_states(self, group: ShareGroup) -> dict[bytes, TrackedTopic]:
        """All partitions of a group that may have a state, those of a deletion that did not end included."""
        topics = group.tracked.partitions()
        for topic_id, name in group.tracked.deleting.items():
            topic = self.known.by_id.get(topic_id)
            if topic is not None and topic_id not in topics:
                topics[topic_id] = TrackedTopic(name, frozenset(range(topic.partition_count)))
        return topics

    def sweep(self) -> None:
        """Delete the states of topics that are deleted."""
        for group in list(self._registry.groups.values()):
            if isinstance(group, ShareGroup) and not group.tracked.is_empty:
                gone = {
                    topic_id: one
                    for topic_id, one in group.tracked.partitions().items()
                    if topic_id not in self.known.by_id
                }
                lost = [one for one in group.tracked.deleting if one not in self.known.by_id]
                if gone or lost:
                    self._sweep(group, gone, [*gone, *lost])

    def _sweep(self, group: ShareGroup, gone: Tracked, topic_ids: list[bytes]) -> None:
        def forget(codes: dict[SharePlace, ErrorCode]) -> None:
            if not any(codes.values()):
                self.track(group, lambda tracked: tracked.forget(topic_ids), _tried_again)

        self.delete(places_of(group.id, gone), forget)


def places_of(group_id: str, topics: Tracked) -> list[SharePlace]:
    return [
        SharePlace(group_id, topic_id, index) for topic_id, one in topics.items() for index in sorted(one.partitions)
    ]


def _only(topics: Tracked, places: set[SharePlace]) -> dict[bytes, TrackedTopic]:
    """The topics with those of their partitions that are among the places."""
    found: dict[bytes, set[int]] = {}
    for _, topic_id, index in places:
        found.setdefault(topic_id, set()).add(index)
    return {topic_id: topics[topic_id]._replace(partitions=frozenset(indexes)) for topic_id, indexes in found.items()}


def _tried_again(_: ErrorCode) -> None:
    """What could not be written is found again by the next sweep."""
