"""Configures a topology by the topics that exist: the number of its tasks, the internal topics that it lacks, and its faults.

A repartition topic has the partitions that its declaration fixes, else those of the topics of the subtopologies that write to it. Topics
that are copartitioned have equal numbers of partitions. A changelog has as many partitions as its subtopology has tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from horolog.protocol.messages.streams_groups import StreamsSubtopology, StreamsTopicInfo

STALE_TOPOLOGY = 0
MISSING_SOURCE_TOPICS = 1
INCORRECTLY_PARTITIONED_TOPICS = 2
MISSING_INTERNAL_TOPICS = 3
SHUTDOWN_APPLICATION = 4
ASSIGNMENT_DELAYED = 5
"""The codes of statuses in the response to a heartbeat."""

NAMED_AT_MOST = 3
CountOf = Callable[[str], int | None]
"""The number of a topic's partitions; None if it does not exist."""


class GroupStatus(NamedTuple):
    """A condition of the group that its members learn."""

    code: int
    detail: str


class InvalidTopologyError(Exception):
    """A topology that cannot run, whatever topics exist."""


class MisfitError(Exception):
    """The topics that exist do not fit the topology."""

    def __init__(self, code: int, detail: str) -> None:
        super().__init__(detail)
        self.status = GroupStatus(code, detail)


class ConfiguredSubtopology(NamedTuple):
    """A subtopology with the number of its tasks. `inputs` are all topics that it reads, with their numbers of partitions."""

    task_count: int
    inputs: Mapping[str, int]
    is_stateful: bool


class ConfiguredTopology(NamedTuple):
    """`subtopologies` is None if the topics do not fit, `missing` has the internal topics to create with their partitions."""

    subtopologies: Mapping[str, ConfiguredSubtopology] | None
    counts: Mapping[str, int]
    """The numbers of partitions that were decided for internal topics."""
    missing: Mapping[str, tuple[StreamsTopicInfo, int]]
    status: GroupStatus | None

    @property
    def is_ready(self) -> bool:
        return self.status is None


def topics_of_topology(subtopologies: Iterable[StreamsSubtopology]) -> set[str]:
    """All topics that a topology reads, and those that keep its state."""
    names: set[str] = set()
    for one in subtopologies:
        names.update(one.source_topics)
        names.update(info.name for info in (*one.repartition_source_topics, *one.state_changelog_topics))
    return names


def configure(subtopologies: Sequence[StreamsSubtopology], count_of: CountOf) -> ConfiguredTopology:
    """Raises InvalidTopologyError."""
    try:
        missing = sorted({name for one in subtopologies for name in one.source_topics if count_of(name) is None})
        if missing:
            raise MisfitError(MISSING_SOURCE_TOPICS, f"Source topics {_named(missing)} are missing.")
        counts = _repartition_counts(subtopologies, count_of)
        for one in subtopologies:
            for group in _copartition_groups(one):
                counts |= _copartitioned(group, subtopologies, counts, count_of)
        configured = {one.subtopology_id: _configured(one, counts, count_of) for one in subtopologies}
        for one in subtopologies:
            for info in _changelogs(one):
                counts[info.name] = configured[one.subtopology_id].task_count
        absent = _missing_internal(subtopologies, counts, count_of)
    except MisfitError as misfit:
        return ConfiguredTopology(None, {}, {}, misfit.status)
    status = None
    if absent:
        status = GroupStatus(MISSING_INTERNAL_TOPICS, f"Internal topics are missing: {_named(sorted(absent))}")
    return ConfiguredTopology(configured, counts, absent, status)


def _named(names: Sequence[str]) -> str:
    more = len(names) - NAMED_AT_MOST
    return ", ".join(names[:NAMED_AT_MOST]) + (f" and {more} additional topics" if more > 0 else "")


# -- repartition topics


def _repartition_counts(subtopologies: Sequence[StreamsSubtopology], count_of: CountOf) -> dict[str, int]:
    """The numbers of partitions of all repartition topics."""
    infos = [info for one in subtopologies for info in one.repartition_source_topics]
    counts = {info.name: info.partitions for info in infos if info.partitions}
    open_names = {info.name for info in infos if not info.partitions}
    unwritten = open_names - {name for one in subtopologies for name in one.repartition_sink_topics}
    if unwritten:
        raise InvalidTopologyError(
            "Failed to compute number of partitions for all repartition topics, because a repartition source topic is"
            " never used as a sink topic."
        )
    while open_names:
        found = {name: count for name in open_names if (count := _derived(name, subtopologies, counts, count_of))}
        if not found:
            raise InvalidTopologyError(
                "Failed to compute number of partitions for all repartition topics. There may be loops in the topology"
                " that cannot be resolved."
            )
        counts |= found
        open_names -= found.keys()
    return counts


def _derived(
    name: str, subtopologies: Sequence[StreamsSubtopology], counts: Mapping[str, int], count_of: CountOf
) -> int | None:
    """The most partitions of a topic that is read to write this one; None while one of them is not known."""
    upstream = [
        counts.get(topic, count_of(topic) if topic in one.source_topics else None)
        for one in subtopologies
        if name in one.repartition_sink_topics
        for topic in _inputs(one)
    ]
    known = [count for count in upstream if count is not None]
    return max(known) if known and len(known) == len(upstream) else None


def _inputs(subtopology: StreamsSubtopology) -> list[str]:
    return [*subtopology.source_topics, *(info.name for info in subtopology.repartition_source_topics)]


# -- copartitioning


def _copartition_groups(subtopology: StreamsSubtopology) -> list[list[str]]:
    try:
        return [
            [subtopology.source_topics[index] for index in one.source_topics]
            + [subtopology.repartition_source_topics[index].name for index in one.repartition_source_topics]
            for one in subtopology.copartition_groups
        ]
    except IndexError:
        raise InvalidTopologyError(
            f"A copartition group of subtopology {subtopology.subtopology_id} names a topic that does not exist."
        ) from None


def _copartitioned(
    names: Sequence[str],
    subtopologies: Sequence[StreamsSubtopology],
    counts: Mapping[str, int],
    count_of: CountOf,
) -> dict[str, int]:
    """The numbers of partitions of the repartition topics among copartitioned topics."""
    fixed_names = {info.name for one in subtopologies for info in one.repartition_source_topics if info.partitions}
    fixed = {name: counts[name] for name in names if name in fixed_names}
    sources = {name: count_of(name) or 0 for name in names if name not in counts}
    wanted = sources or fixed
    if len(set(wanted.values())) > 1:
        listed = ", ".join(f"{name}={count}" for name, count in sorted(wanted.items()))
        raise MisfitError(
            INCORRECTLY_PARTITIONED_TOPICS,
            f"Following topics do not have the same number of partitions: [{{{listed}}}]",
        )
    count = max(wanted.values()) if wanted else max(counts[name] for name in names)
    for name, its_count in fixed.items():
        if its_count != count:
            raise MisfitError(
                INCORRECTLY_PARTITIONED_TOPICS,
                f"Number of partitions [{its_count}] of repartition topic [{name}] doesn't match number of partitions"
                f" [{count}] of the source topic.",
            )
    return {name: count for name in names if name in counts and name not in fixed}


# -- tasks and internal topics


def _configured(subtopology: StreamsSubtopology, counts: Mapping[str, int], count_of: CountOf) -> ConfiguredSubtopology:
    inputs = {name: counts.get(name) or count_of(name) or 0 for name in _inputs(subtopology)}
    if not inputs:
        raise InvalidTopologyError(f"No source topics found for subtopology {subtopology.subtopology_id}")
    return ConfiguredSubtopology(max(inputs.values()), inputs, bool(subtopology.state_changelog_topics))


def _changelogs(subtopology: StreamsSubtopology) -> list[StreamsTopicInfo]:
    """Those that are no source topic as well."""
    inputs = _inputs(subtopology)
    return [info for info in subtopology.state_changelog_topics if info.name not in inputs]


def _missing_internal(
    subtopologies: Sequence[StreamsSubtopology], counts: Mapping[str, int], count_of: CountOf
) -> dict[str, tuple[StreamsTopicInfo, int]]:
    missing = {}
    for one in subtopologies:
        for info in (*one.repartition_source_topics, *_changelogs(one)):
            found, expected = count_of(info.name), counts[info.name]
            if found is None:
                missing[info.name] = (info, expected)
            elif found != expected:
                raise MisfitError(
                    INCORRECTLY_PARTITIONED_TOPICS,
                    f"Existing topic {info.name} has different number of partitions: expected {expected}, found {found}",
                )
    return missing
