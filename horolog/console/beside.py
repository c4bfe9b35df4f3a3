"""Another moment of the same topic below the records of a Moment page: the same span and filters, and how the counts differ."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from horolog.client.charting.lookups import offsets_at
from horolog.client.values.types import TopicPartition
from horolog.console.reading import Reader, Wanted
from horolog.console.record_rows import RecordRow, WrittenMark, rows_of, tree_parts, with_marks
from horolog.console.visits import Visit

if TYPE_CHECKING:
    from horolog.console.moment import MomentQuery

MARK = "b"
"""The rows have names of their own, since both moments may show the same record."""


class Beside(NamedTuple):
    asked: "MomentQuery"
    lines: list[RecordRow | WrittenMark]
    here: int
    """All records of the page's span, and of this one; filters do not count."""
    there: int
    from_ms: int
    until_ms: int
    notes: list[str]

    @property
    def difference(self) -> int:
        return self.there - self.here


def asked_beside(visit: Visit, asked: "MomentQuery") -> "MomentQuery | None":
    """The page's span, moved to the time of the field `other`."""
    other = visit.time("other")
    if other is None:
        return None
    by_ms = other.ms - asked.at_ms
    return asked._replace(at_ms=other.ms, since_ms=asked.since_ms + by_ms, until_ms=asked.until_ms + by_ms)


async def beside_of(
    visit: Visit, places: Sequence[TopicPartition], wanted: Wanted, spans: "tuple[MomentQuery, MomentQuery]", most: int
) -> Beside:
    """`spans`: the page's own, and the other one."""
    reader = Reader(visit.client, places, wanted, visit.desk.clock)
    asked = spans[1]
    earlier, from_ms, later, until_ms = await reader.around(asked.since_ms, asked.at_ms, asked.until_ms, most)
    parts = tree_parts(len(earlier) + len(later))
    before, after = (
        [row._replace(mark=MARK) for row in rows_of(found, parts, is_after=is_after)]
        for found, is_after in ((earlier, False), (later, True))
    )
    lines = [line for side in with_marks(before, after, asked.at_ms, until_ms) for line in side]
    borders = [max(0, border) for span in spans for border in (span.since_ms, span.until_ms)]
    offsets = await offsets_at(visit.client, places, borders)
    here = sum(max(0, found[1] - found[0]) for found in offsets.values())
    there = sum(max(0, found[3] - found[2]) for found in offsets.values())
    return Beside(asked, lines, here, there, from_ms, until_ms, reader.notes)
