"""What the page of a group shows of share groups and of streams groups alone.

Brokers do not report which records of a share group are in flight. They report the first record that is not done, and
how many wait or are in flight from there on; the others after it are done.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from horolog.client.moments.lagging import Lag
from horolog.console.brokers import hour_of
from horolog.console.cluster import ranges

if TYPE_CHECKING:
    from horolog.console.visits import Visit
    from horolog.protocol.messages.streams_groups import DescribedStreamsGroup, StreamsTaskIds

SHARE, STREAMS = "share", "streams"


class ShareSums(NamedTuple):
    """A share group over its partitions; None: not known."""

    done_early: int | None
    """Records after the first one that is not done."""
    in_flight: float | None
    """Of all share groups of these brokers."""


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


def done_early(lag: Lag) -> int | None:
    """The records of a partition that a share group is done with, after the first one that it is not done with."""
    if lag.committed is None or lag.records is None:
        return None
    return max(0, lag.end_offset - lag.committed - lag.records)


async def share_sums(visit: "Visit", lags: Sequence[Lag]) -> ShareSums:
    known = [one for one in map(done_early, lags) if one is not None]
    hour = await hour_of(visit)
    counts = [None if one.scrape is None else one.scrape.share_in_flight for one in hour.answers]
    in_flight = None if not counts or None in counts else sum(one for one in counts if one is not None)
    return ShareSums(sum(known) if known else None, in_flight)


def streams_view(group: "DescribedStreamsGroup") -> StreamsView:
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


def task_text(tasks: "Iterable[StreamsTaskIds]") -> str:
    """Subtopologies and the partitions of their tasks: 0: 0-3; 1: 2."""
    found = sorted((one.subtopology_id, ranges(sorted(one.partitions))) for one in tasks if one.partitions)
    return "; ".join(f"{name}: {partitions}" for name, partitions in found)
