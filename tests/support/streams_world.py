"""A group coordinator with streams groups, in virtual time, and members that behave as Kafka Streams does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from horolog.broker.cluster.cluster_state import RulesChanged
from horolog.broker.groups.group_settings import rule_of
from horolog.broker.groups.streams.tasks import NO_TASKS, TaskSet, read_tasks, written_tasks
from horolog.protocol.messages.streams_groups import (
    StreamsCopartitionGroup,
    StreamsEndpoint,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    StreamsKeyValue,
    StreamsSubtopology,
    StreamsTopicInfo,
    StreamsTopology,
)
from tests.support.at_once import at_once
from tests.support.group_world import CLIENT, GroupWorld

GROUP = "g"
NO_DELAY = {"group.streams.initial.rebalance.delay.ms": 0}


def info(name: str, partitions: int = 0, **configs: str) -> StreamsTopicInfo:
    settings = [StreamsKeyValue(key=key.replace("_", "."), value=value) for key, value in configs.items()]
    return StreamsTopicInfo(name=name, partitions=partitions, topic_configs=settings)


def subtopology(
    name: str,
    sources: Iterable[str] = (),
    repartition: Iterable[StreamsTopicInfo] = (),
    sinks: Iterable[str] = (),
    changelogs: Iterable[StreamsTopicInfo] = (),
    together: Iterable[tuple[list[int], list[int]]] = (),
) -> StreamsSubtopology:
    """`together` has the indexes of copartitioned source topics and repartition topics."""
    groups = [StreamsCopartitionGroup(source_topics=one, repartition_source_topics=other) for one, other in together]
    return StreamsSubtopology(
        subtopology_id=name,
        source_topics=list(sources),
        repartition_source_topics=list(repartition),
        repartition_sink_topics=list(sinks),
        state_changelog_topics=list(changelogs),
        copartition_groups=groups,
    )


def topology(*subtopologies: StreamsSubtopology, epoch: int = 0) -> StreamsTopology:
    return StreamsTopology(epoch=epoch, subtopologies=list(subtopologies))


def counting(epoch: int = 0) -> StreamsTopology:
    """Reads `t`, writes by another key and counts: two subtopologies, one with state."""
    return topology(
        subtopology("0", ["t"], sinks=["g-by-key"]),
        subtopology(
            "1", [], [info("g-by-key", cleanup_policy="delete")], [], [info("g-log", cleanup_policy="compact")]
        ),
        epoch=epoch,
    )


class StreamsWorld(GroupWorld):
    """One broker's streams groups."""

    def __init__(self, settings: Mapping[str, object] | None = None) -> None:
        super().__init__(NO_DELAY if settings is None else settings)

    def beat(
        self, member: str = "m1", epoch: int = 0, group: str = GROUP, may_create: Any = None, **fields: Any
    ) -> StreamsGroupHeartbeatResponse:
        """A heartbeat and its response, once all is written."""
        given: list[StreamsGroupHeartbeatResponse] = []
        if epoch == 0:
            empty: dict[str, Any] = {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []}
            first = {"rebalance_timeout_ms": 60_000, "process_id": f"p-{member}", "topology": counting(), **empty}
            fields = first | fields
        request = StreamsGroupHeartbeatRequest(group_id=group, member_id=member, member_epoch=epoch, **fields)
        self.coordinator.streams.heartbeat(request, CLIENT, given.append, may_create)
        self.tick()
        (response,) = given
        return response

    def group(self, group: str = GROUP) -> Any:
        return self.coordinator.registry.groups[group]

    def configure(self, key: str, value: str, group: str = GROUP) -> None:
        """Set a group's own setting."""
        changed = RulesChanged((rule_of(group, {key: value}),), frozenset())
        at_once(self.cluster.change_rules, lambda _: changed)


class Application:
    """A member: it has what the broker gave it, and gives back at once what the broker takes."""

    def __init__(self, world: StreamsWorld, member: str, **fields: Any) -> None:
        self.world = world
        self.id = member
        self.fields = fields
        self.epoch = 0
        self.tasks: TaskSet = NO_TASKS
        self.last: Any = None

    def __repr__(self) -> str:
        return f"<Application {self.id} in epoch {self.epoch}>"

    def beat(self, *, report: bool = True, **fields: Any) -> Any:
        """Send a heartbeat; without `report` the member still has what it had."""
        if self.epoch == 0:
            fields = self.fields | fields
        elif report:
            active, standby, warmup = map(written_tasks, self.tasks)
            fields = {"active_tasks": active, "standby_tasks": standby, "warmup_tasks": warmup} | fields
        self.last = answer = self.world.beat(self.id, self.epoch, **fields)
        if answer.error_code:
            self.epoch, self.tasks = 0, NO_TASKS
            return answer
        self.epoch = answer.member_epoch
        if answer.active_tasks is not None:
            self.tasks = TaskSet(*map(read_tasks, (answer.active_tasks, answer.standby_tasks, answer.warmup_tasks)))
        return answer

    def leave(self) -> Any:
        answer = self.world.beat(self.id, -1)
        self.epoch, self.tasks = 0, NO_TASKS
        return answer


def settle(*members: Application, rounds: int = 6) -> None:
    """Heartbeats of all members until nothing moves any more."""
    for _ in range(rounds):
        for member in members:
            member.beat()


def endpoint(port: int = 1) -> StreamsEndpoint:
    return StreamsEndpoint(host="h", port=port)
