"""The rows of large topics in Metadata and DescribeTopicPartitions, kept encoded until a leader, an epoch or a member changes.

While leaders change, clients ask for all partitions again and again, and 10,000 rows take some 38 ms to make. They are kept in runs of
`RUN` rows. A run is used again if nothing has changed that its rows follow from:

- which brokers there are: values that are replaced and never changed, compared by identity;
- who leads its partitions on record;
- those of its partitions that are served here, their epochs and faults. `RareChanges` counts these changes for all partitions together.

Whenever something has changed for any partition, each run is compared with what its own partitions are now.

Rows are made a run at a time, and other requests have their turns in between. So each row is true at some time after the request came.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from operator import is_
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from horolog.broker.handlers.lookup import Leadership, leadership
from horolog.protocol.apis import API, ApiKey
from horolog.protocol.compile import element_encoder
from horolog.protocol.compile_encode import Encoded

if TYPE_CHECKING:
    from horolog.broker.cluster.cluster import Cluster
    from horolog.broker.cluster.cluster_state import Lead
    from horolog.broker.cluster.placement import Placement
    from horolog.broker.cluster.topic import Topic
    from horolog.broker.config.topic_settings import TopicConfig
    from horolog.broker.log.partition import RareChanges

RUN: Final = 100
LARGE: Final = 2 * RUN
"""The rows of smaller topics are made anew for each answer."""

MOST_ROWS: Final = 200_000
"""The bound for all topics and versions together: some 8 MB."""

Answer = TypeVar("Answer")
Steps = Generator[None, None, Answer]


class RowForm(NamedTuple):
    """The rows of one API and version; `row` makes one."""

    api: ApiKey
    version: int
    row: Callable[[int, Leadership], Any]

    def encode(self, rows: Sequence[Any]) -> bytes:
        return element_encoder(API[self.api].response, self.version, ("topics", "partitions"), flat=False)(rows)


class _Changes:
    """Counts how often one of several values was replaced."""

    def __init__(self) -> None:
        self._values: tuple[object, ...] = ()
        self._count = 0

    def __repr__(self) -> str:
        return f"<_Changes: {self._count}>"

    def count(self, *values: object) -> int:
        if len(values) != len(self._values) or not all(map(is_, values, self._values)):
            self._values = values
            self._count += 1
        return self._count


class _Own(NamedTuple):
    """What the rows of one run follow from beside the brokers."""

    config: TopicConfig
    standings: list[int]
    records: list[Lead | int | None]


class _Run:
    """Encoded rows with the errors in them, and the values that they follow from."""

    __slots__ = ("codes", "count", "data", "era", "moment", "own")

    def __init__(self, count: int, era: int, moment: int, own: _Own) -> None:
        self.era = era
        self.moment = moment
        self.own = own
        self.count = count
        self.codes: list[int] = []
        self.data = b""


class _Kept:
    """The runs of a topic in one form."""

    __slots__ = ("count", "runs")

    def __init__(self, count: int) -> None:
        self.count = count
        self.runs: dict[int, _Run] = {}


class PartitionRows:
    """The rows of all large topics, as one broker knows them."""

    def __init__(
        self, cluster: Cluster, placement: Placement, changes: RareChanges, most_rows: int = MOST_ROWS
    ) -> None:
        self._cluster = cluster
        self._placement = placement
        self._changes = changes
        self._most_rows = most_rows
        self._kept: dict[tuple[bytes, ApiKey, int], _Kept] = {}
        self._eras = _Changes()
        """Of the brokers."""
        self._moments = _Changes()
        """Of any partition."""

    def __repr__(self) -> str:
        return f"<PartitionRows of {len(self._kept)} topics and forms, {self.kept_count} rows>"

    @property
    def kept_count(self) -> int:
        """How many rows are kept at most."""
        return sum(kept.count for kept in self._kept.values())

    def of(self, topic: Topic, form: RowForm, indexes: range) -> Steps[Encoded]:
        """The rows of neighbouring partitions. Yields after each run that had to be made."""
        encoded, kept = Encoded(), self._find(topic, form)
        for first in range(indexes.start // RUN * RUN, indexes.stop, RUN):
            whole = range(first, min(first + RUN, topic.partition_count))
            part = whole[max(0, indexes.start - first) : max(0, indexes.stop - first)]
            run = kept.runs.get(first)
            if part != whole:
                run = self._made(topic, form, part)
            elif run is None or not self._holds(run, topic, whole):
                run = kept.runs[first] = self._made(topic, form, whole)
                yield
            encoded.add(run.count, run.data, run.codes)
        return encoded

    def _find(self, topic: Topic, form: RowForm) -> _Kept:
        """The kept runs of a topic; the least recently used topic goes when there are too many rows."""
        key = topic.id, form.api, form.version
        kept = self._kept.pop(key, None) or _Kept(0)
        self._kept[key] = kept
        if kept.count != topic.partition_count:
            kept.count = topic.partition_count
            while len(self._kept) > 1 and self.kept_count > self._most_rows:
                del self._kept[next(iter(self._kept))]
        return kept

    def _holds(self, run: _Run, topic: Topic, indexes: range) -> bool:
        if run.era != self._era() or run.count != len(indexes):
            return False
        moment = self._moment()
        if run.moment != moment:
            if run.own != self._own(topic, indexes):
                return False
            run.moment = moment
        return True

    def _made(self, topic: Topic, form: RowForm, indexes: range) -> _Run:
        placement = self._placement
        run = _Run(len(indexes), self._era(), self._moment(), self._own(topic, indexes))
        seen = [leadership(placement, topic, index) for index in indexes]
        run.codes = [one.code for one in seen if one.code]
        run.data = form.encode([form.row(index, one) for index, one in zip(indexes, seen, strict=True)])
        return run

    def _era(self) -> int:
        placement = self._placement
        return self._eras.count(*self._cluster.state.leaders_follow_from(), placement.members, placement.selector)

    def _moment(self) -> int:
        state = self._cluster.state
        return self._moments.count(state.leads, state.epochs, self._changes.number)

    def _own(self, topic: Topic, indexes: range) -> _Own:
        return _Own(topic.config, topic.standings(indexes), self._cluster.state.records(topic.id, indexes))


def begun(steps: Steps[Answer]) -> Answer | Steps[Answer]:
    """The answer, if it is made without a pause; else the rest of the steps."""
    try:
        next(steps)
    except StopIteration as end:
        answer: Answer = end.value
        return answer
    return _rest(steps)


def _rest(steps: Steps[Answer]) -> Steps[Answer]:
    yield
    return (yield from steps)
