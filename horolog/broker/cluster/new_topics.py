"""Decides what may be created: plans of the topics and partitions that a client asks for, on the state of the cluster."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from horolog.base.readable import counted
from horolog.broker.base.topic_names import KRAFT_METADATA, collision_key, wrong_with
from horolog.broker.cluster.cluster_state import ClusterState, Lead, Leads
from horolog.broker.config.settings import Settings
from horolog.broker.log.manager import Placing
from horolog.broker.on_record.cluster_errors import ClusterError
from horolog.broker.on_record.cluster_file import StoredTopic
from horolog.protocol.errors import ErrorCode

UNSET = -1
"""A count that asks for the broker's default."""

MAX_PARTITIONS_PER_REQUEST = 10_000
"""Partitions that one request may create, the limit of a KRaft controller."""

ACCEPTED_FACTORS = (2, 3)
"""What `horolog.replication.factor.accept` lets clients ask for."""

MAX_PARTITIONS = 100_000
"""Partitions of this broker; each costs memory and files."""


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic as a client asks for it: counts may be UNSET, assignments map partition to brokers."""

    name: str
    partition_count: int = UNSET
    replication_factor: int = UNSET
    overrides: Mapping[str, str | None] = field(default_factory=dict)
    assignments: Mapping[int, Sequence[int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NewPartitions:
    """A topic that is to have `total_count` partitions; one list of brokers for each new one, or None."""

    name: str
    total_count: int
    assignments: Sequence[Sequence[int]] | None = None


@dataclass(frozen=True, slots=True)
class Planner:
    """What plans depend on besides the state of the cluster; a plan changes nothing but `placing`."""

    settings: Settings
    nodes: Collection[int]
    foreign: Collection[str]
    """Names for which the data folders have folders that are no partitions."""
    check_config: Callable[[Mapping[str, str]], object]
    new_topic_id: Callable[[], bytes]
    placing: Placing
    is_leaving: Callable[[str], bool] = lambda _: False
    """Whether a topic of this name is still being removed."""

    def topics(self, state: ClusterState, wanted: Iterable[NewTopic]) -> list[StoredTopic | ClusterError]:
        """Every topic as it would be, or the reason against it."""
        keys: dict[str, str] = {}
        allowed: set[tuple[tuple[str, str | None], ...]] = set()
        partition_count = 0
        results: list[StoredTopic | ClusterError] = []
        for new in wanted:
            try:
                plan = self._topic(state, new, keys, partition_count, allowed)
            except ClusterError as error:
                results.append(error)
            else:
                keys[collision_key(plan.name)] = plan.name
                partition_count += plan.partition_count
                results.append(plan)
        return results

    def _topic(
        self,
        state: ClusterState,
        new: NewTopic,
        keys: Mapping[str, str],
        already_planned: int,
        allowed: set[tuple[tuple[str, str | None], ...]],
    ) -> StoredTopic:
        """`allowed` are the sets of settings that were checked for topics before it."""
        check_name(new.name)
        if new.name in state.topics:
            raise ClusterError(ErrorCode.TOPIC_ALREADY_EXISTS, f"topic {new.name} already exists")
        key = collision_key(new.name)
        other = state.collision_keys.get(key) or keys.get(key)
        if other is not None:
            reason = f"{new.name} collides with the topic {other}: metric names turn dots into underscores"
            raise ClusterError(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)
        self._check_no_foreign_folders(new.name)
        if self.is_leaving(new.name):
            raise ClusterError(ErrorCode.REQUEST_TIMED_OUT, f"the topic {new.name} is still being deleted: try again")
        count = partition_count_of(new, self.settings, self.nodes)
        check_room(count, already_planned=already_planned, existing=state.partition_count)
        overrides = required_values(new.overrides)
        own = tuple(new.overrides.items())
        if own not in allowed:
            self.check_config(overrides)
            allowed.add(own)
        return StoredTopic(new.name, self.new_topic_id(), count, overrides, self.placing.place(range(count)))

    def _check_no_foreign_folders(self, name: str) -> None:
        """Raises ClusterError if new partitions would have the names of foreign folders."""
        if name in self.foreign:
            reason = f"the data folder has folders that are named like partitions of {name} but are not: move them away"
            raise ClusterError(ErrorCode.POLICY_VIOLATION, reason)

    def growth(
        self, state: ClusterState, wanted: Iterable[NewPartitions]
    ) -> tuple[list[StoredTopic], dict[str, ClusterError]]:
        """The topics as they would be, and why others may not grow."""
        grown: list[StoredTopic] = []
        failures: dict[str, ClusterError] = {}
        planned = 0
        for each in wanted:
            try:
                topic, added = self._grown(state, each, planned)
            except ClusterError as error:
                failures[each.name] = error
            else:
                planned += added
                grown.append(topic)
        return grown, failures

    def _grown(self, state: ClusterState, wanted: NewPartitions, already_planned: int) -> tuple[StoredTopic, int]:
        topic = state.topics.get(wanted.name)
        if topic is None:
            raise unknown_topic(wanted.name)
        self._check_no_foreign_folders(topic.name)
        added = added_count(wanted, topic.partition_count, self.nodes)
        check_room(added, already_planned=already_planned, existing=state.partition_count)
        folders = {one: list(indexes) for one, indexes in topic.folders.items()}
        for one, indexes in self.placing.place(range(topic.partition_count, wanted.total_count)).items():
            folders.setdefault(one, []).extend(indexes)
        return StoredTopic(topic.name, topic.id, wanted.total_count, topic.overrides, folders), added


def leads_of_new(wanted: Iterable[NewTopic], planned: Iterable[StoredTopic | ClusterError]) -> Leads:
    """The leaders of partitions of new topics for which brokers were assigned."""
    return tuple(
        ((topic.id, index), Lead(brokers[0], 0))
        for new, topic in zip(wanted, planned, strict=True)
        if isinstance(topic, StoredTopic)
        for index, brokers in new.assignments.items()
    )


def leads_of_grown(wanted: Iterable[NewPartitions], grown: Iterable[StoredTopic]) -> Leads:
    """The leaders of partitions that are added to topics, as far as brokers were assigned."""
    by_name = {topic.name: topic for topic in grown}
    return tuple(
        ((by_name[each.name].id, index), Lead(brokers[0], 0))
        for each in wanted
        if each.assignments is not None and each.name in by_name
        for index, brokers in enumerate(each.assignments, each.total_count - len(each.assignments))
    )


def unknown_topic(name: str) -> ClusterError:
    return ClusterError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name} here")


def check_name(name: str) -> None:
    """Raises ClusterError for a name that no topic may have."""
    wrong = wrong_with(name)
    if wrong is not None:
        raise ClusterError(ErrorCode.INVALID_TOPIC_EXCEPTION, wrong)
    if name == KRAFT_METADATA:
        raise ClusterError(
            ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"{name} is the log of Kafka's controllers, not a topic"
        )


def partition_count_of(new: NewTopic, settings: Settings, nodes: Collection[int]) -> int:
    """How many partitions a new topic gets. Raises ClusterError."""
    if new.assignments:
        return _assigned_count(new, nodes)
    factor = settings.default_replication_factor if new.replication_factor == UNSET else new.replication_factor
    if factor != 1 and not (factor in ACCEPTED_FACTORS and settings.horolog_replication_factor_accept):
        reason = (
            f"a topic has one replica, not {factor}: leave the replication factor out,"
            " or let the broker accept 2 and 3 (horolog.replication.factor.accept)"
        )
        raise ClusterError(ErrorCode.INVALID_REPLICATION_FACTOR, reason)
    if new.partition_count == UNSET:
        return settings.num_partitions
    if new.partition_count <= 0:
        reason = f"a topic has at least one partition, not {new.partition_count}; {UNSET} asks for num.partitions"
        raise ClusterError(ErrorCode.INVALID_PARTITIONS, reason)
    return new.partition_count


def _assigned_count(new: NewTopic, nodes: Collection[int]) -> int:
    if new.partition_count != UNSET or new.replication_factor != UNSET:
        reason = f"with assigned brokers, the number of partitions and the replication factor must be {UNSET}"
        raise ClusterError(ErrorCode.INVALID_REQUEST, reason)
    if len(new.assignments) > MAX_PARTITIONS_PER_REQUEST:
        check_room(len(new.assignments), already_planned=0, existing=0)
    if sorted(new.assignments) != list(range(len(new.assignments))):
        reason = "assigned partitions are numbered from 0 without gaps"
        raise ClusterError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)
    check_assignments(new.assignments.values(), nodes)
    return len(new.assignments)


def check_assignments(assignments: Iterable[Sequence[int]], nodes: Collection[int]) -> None:
    """Raises ClusterError if a partition is assigned to anything but one broker of the cluster."""
    for brokers in assignments:
        if len(brokers) != 1 or brokers[0] not in nodes:
            reason = f"a partition has one replica, on one of the brokers {list(nodes)}, not on {list(brokers)[:20]}"
            raise ClusterError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)


def added_count(wanted: NewPartitions, current_count: int, nodes: Collection[int]) -> int:
    """How many partitions a topic gets on top of those it has. Raises ClusterError."""
    added = wanted.total_count - current_count
    if added <= 0:
        reason = (
            f"{wanted.name} has {counted(current_count, 'partition')}, which can become more, not {wanted.total_count}"
        )
        raise ClusterError(ErrorCode.INVALID_PARTITIONS, reason)
    if wanted.assignments is not None:
        if len(wanted.assignments) != added:
            reason = f"there are {counted(len(wanted.assignments), 'assignment')} for {counted(added, 'new partition')}"
            raise ClusterError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)
        check_assignments(wanted.assignments, nodes)
    return added


def check_room(count: int, *, already_planned: int, existing: int) -> None:
    """Raises ClusterError if `count` more partitions would be too many for the request or the broker."""
    if already_planned + count > MAX_PARTITIONS_PER_REQUEST:
        reason = f"one request may create at most {MAX_PARTITIONS_PER_REQUEST} partitions"
        raise ClusterError(ErrorCode.POLICY_VIOLATION, reason)
    if existing + already_planned + count > MAX_PARTITIONS:
        reason = f"a broker has at most {MAX_PARTITIONS} partitions, and this one has {existing}"
        raise ClusterError(ErrorCode.POLICY_VIOLATION, reason)


def required_values(overrides: Mapping[str, str | None]) -> dict[str, str]:
    """The overrides of a new topic, each of which needs a value. Raises ClusterError."""
    given: dict[str, str] = {}
    for name, value in overrides.items():
        if value is None:
            raise ClusterError(ErrorCode.INVALID_CONFIG, f"{name} has no value")
        given[name] = value
    return given
