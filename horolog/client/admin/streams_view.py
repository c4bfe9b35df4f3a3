"""A streams group as people look at it: the parts of its topology, and the tasks of its members."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from horolog.base.readable import ranges
from horolog.protocol.messages.streams_groups import DescribedStreamsGroup, StreamsTaskIds


class Subtopology(NamedTuple):
    name: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    state: tuple[str, ...]
    """The changelogs of its state stores."""
    tasks: int
    """Active ones."""


class StreamsMember(NamedTuple):
    client_id: str
    host: str
    process: str
    active: str
    standby: str
    warmup: str


class StreamsView(NamedTuple):
    is_complete: bool
    """False: topics are missing, or numbers of partitions do not fit, so there are no tasks."""
    subtopologies: tuple[Subtopology, ...]
    members: tuple[StreamsMember, ...]


def streams_view(group: DescribedStreamsGroup) -> StreamsView:
    found = group.topology.subtopologies if group.topology is not None else None
    active = [tasks for member in group.members for tasks in member.assignment.active_tasks]
    subtopologies = tuple(
        Subtopology(
            one.subtopology_id,
            (*one.source_topics, *(topic.name for topic in one.repartition_source_topics)),
            tuple(one.repartition_sink_topics),
            tuple(topic.name for topic in one.state_changelog_topics),
            sum(len(tasks.partitions) for tasks in active if tasks.subtopology_id == one.subtopology_id),
        )
        for one in found or ()
    )
    members = tuple(
        StreamsMember(
            one.client_id,
            one.client_host,
            one.process_id,
            task_text(one.assignment.active_tasks),
            task_text(one.assignment.standby_tasks),
            task_text(one.assignment.warmup_tasks),
        )
        for one in group.members
    )
    return StreamsView(found is not None, subtopologies, members)


def task_text(tasks: Iterable[StreamsTaskIds]) -> str:
    """Subtopologies and the partitions of their tasks: 0: 0-3; 1: 2."""
    found = sorted((one.subtopology_id, ranges(sorted(one.partitions))) for one in tasks if one.partitions)
    return "; ".join(f"{name}: {partitions}" for name, partitions in found)
