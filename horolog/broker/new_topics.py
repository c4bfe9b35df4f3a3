"""Decides what may be created: pure checks of the topics and partitions that a client asks for."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from horolog.broker.cluster_errors import ClusterError
from horolog.broker.settings import Settings
from horolog.broker.topic_names import KRAFT_METADATA, wrong_with
from horolog.protocol.errors import ErrorCode

UNSET = -1
"""A count that asks for the broker's default."""

MAX_PARTITIONS_PER_REQUEST = 10_000
"""Partitions that one request may create, as a KRaft controller bounds it."""

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
    if factor != 1:
        reason = f"one broker keeps one copy of a topic, not {factor}"
        raise ClusterError(ErrorCode.INVALID_REPLICATION_FACTOR, reason)
    if new.partition_count == UNSET:
        return settings.num_partitions
    if new.partition_count <= 0:
        reason = f"a topic has at least one partition, not {new.partition_count}; {UNSET} asks for num.partitions"
        raise ClusterError(ErrorCode.INVALID_PARTITIONS, reason)
    return new.partition_count


def _assigned_count(new: NewTopic, nodes: Collection[int]) -> int:
    if new.partition_count != UNSET or new.replication_factor != UNSET:
        reason = f"where brokers are assigned, number of partitions and replication factor are {UNSET}"
        raise ClusterError(ErrorCode.INVALID_REQUEST, reason)
    if sorted(new.assignments) != list(range(len(new.assignments))):
        reason = "assigned partitions are numbered from 0 without gaps"
        raise ClusterError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)
    check_assignments(new.assignments.values(), nodes)
    return len(new.assignments)


def check_assignments(assignments: Iterable[Sequence[int]], nodes: Collection[int]) -> None:
    """Raises ClusterError where anything but one broker of the cluster is to keep a partition."""
    for brokers in assignments:
        if len(brokers) != 1 or brokers[0] not in nodes:
            only = f"broker {next(iter(nodes))} is the only one" if len(nodes) == 1 else f"the brokers are {nodes}"
            reason = f"{only}: {list(brokers)[:20]} cannot keep a partition"
            raise ClusterError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)


def added_count(wanted: NewPartitions, current_count: int, nodes: Collection[int]) -> int:
    """How many partitions a topic gets on top of those it has. Raises ClusterError."""
    added = wanted.total_count - current_count
    if added <= 0:
        reason = f"{wanted.name} has {current_count} partitions, which can become more, not {wanted.total_count}"
        raise ClusterError(ErrorCode.INVALID_PARTITIONS, reason)
    if wanted.assignments is not None:
        if len(wanted.assignments) != added:
            reason = f"{added} new partitions need {added} assignments, not {len(wanted.assignments)}"
            raise ClusterError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)
        check_assignments(wanted.assignments, nodes)
    return added


def check_room(count: int, *, already_planned: int, existing: int) -> None:
    """Raises ClusterError where `count` partitions more would be too many for the request or the broker."""
    if already_planned + count > MAX_PARTITIONS_PER_REQUEST:
        reason = f"one request may create {MAX_PARTITIONS_PER_REQUEST} partitions"
        raise ClusterError(ErrorCode.POLICY_VIOLATION, reason)
    if existing + already_planned + count > MAX_PARTITIONS:
        reason = f"this broker may have {MAX_PARTITIONS} partitions and has {existing}"
        raise ClusterError(ErrorCode.POLICY_VIOLATION, reason)


def required_values(overrides: Mapping[str, str | None]) -> dict[str, str]:
    """The overrides of a new topic, each of which needs a value. Raises ClusterError."""
    given: dict[str, str] = {}
    for name, value in overrides.items():
        if value is None:
            raise ClusterError(ErrorCode.INVALID_CONFIG, f"{name} is given without a value")
        given[name] = value
    return given
