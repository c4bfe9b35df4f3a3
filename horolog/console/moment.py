"""The page of a moment: the records around a time, merged by time, decoded and filtered; one key's records before and after; downloads."""

from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from starlette.responses import Response, StreamingResponse

from horolog.base.readable import exact_time
from horolog.client.charting.lookups import offsets_at
from horolog.client.values.times import TimeTextError, format_duration, parse_duration
from horolog.client.values.types import ConsumerRecord, TopicPartition
from horolog.console.beside import asked_beside, beside_of
from horolog.console.changes import command_line
from horolog.console.now import served_places
from horolog.console.reading import FILTERED_SECONDS_AT_MOST, Reader, ShownRecord
from horolog.console.record_rows import (
    RecordRow,
    command_of_record,
    key_dots,
    key_text,
    rows_of,
    tree_parts,
    with_marks,
)
from horolog.console.rendering import Times
from horolog.console.timelines import chart_of
from horolog.console.visits import Refused, Visit

if TYPE_CHECKING:
    from horolog.client.decoding import Decoded, Decoder
    from horolog.client.decoding.where import Where
    from horolog.client.moments.moment import MergedRecords
    from horolog.client.values.time_ranges import TimeRange

ROWS = 100
ROWS_AT_MOST = 500
WITHIN = "1h"
LONGEST_MS = 10 * 366 * 86_400_000
SPAN_ALL = "all"
"""The timeline shows all records of the topic."""
NAMES_AT_MOST = 2000
DOWNLOADED_AT_MOST = 100_000


class MomentQuery(NamedTuple):
    """The page's time: a span before and after a moment, or a range."""

    at_ms: int
    since_ms: int
    until_ms: int
    is_range: bool = False

    @property
    def text(self) -> str:
        """The same for an address: absolute, so that it holds whenever it is opened."""
        return f"@{self.since_ms}ms..@{self.until_ms}ms" if self.is_range else str(self.at_ms)

    def moved(self, by_ms: int) -> str:
        """The range moved by a duration."""
        return f"@{max(0, self.since_ms + by_ms)}ms..@{max(1, self.until_ms + by_ms)}ms"


def asked_of(visit: Visit) -> MomentQuery:
    """`at` is a time, shown with `within` on both sides, or a range; with `until` it is where a range begins."""
    times = _range_until(visit) if visit.text("until") else visit.range("at")
    if times is None:
        at, within = visit.time("at"), within_of(visit)
        at_ms = visit.now_ms if at is None else at.ms
        return MomentQuery(at_ms, at_ms - within, at_ms + within)
    assert times.since is not None
    assert times.until is not None
    since_ms, until_ms = times.since_ms or 0, times.until.ms
    return MomentQuery(since_ms, since_ms, until_ms, is_range=True)


def _range_until(visit: Visit) -> "TimeRange":
    """From `at` to `until`. An error appears at the field that has it."""
    if visit.range("at") is not None:
        raise Refused("until: the first field already has a range; clear this one", field="until")
    visit.time("at")
    found = visit.range_of(visit.text("at") or "earliest", visit.text("until"), "until")
    assert found is not None
    return found


class Wish:
    """Which records are wanted, by the parameters of the address."""

    def __init__(self, visit: Visit, decoder: "Decoder") -> None:
        self.key = visit.text("key")
        self.text = visit.text("where")
        self._decoder = decoder
        self._where: Where | None = None
        if self.text:
            from horolog.client.decoding.where import WhereError, compile_where

            try:
                self._where = compile_where(self.text, visit.now_ms, visit.zone)
            except WhereError as error:
                raise Refused(f"where: {error}", field="where") from error

    async def __call__(self, record: ConsumerRecord) -> "Decoded | None":
        if self.key and key_text(record.key) != self.key:
            return None
        where = self._where
        if where is not None and not where.needs_decoding and not where(record):
            return None
        decoded = await self._decoder.decode(record)
        return None if where is not None and where.needs_decoding and not where(record, decoded) else decoded


async def page(visit: Visit) -> Response:
    name = visit.text("topic")
    if not name:
        return await which(visit, "/moment", "Moment")
    places: list[TopicPartition] = []
    with visit.reading("topic", "partition"):
        places = await places_of(visit, name)
    if "topic" in visit.wrong:
        return await which(visit, "/moment", "Moment")
    with visit.reading("where", "key"):
        wish = Wish(visit, visit.desk.decoder)
    other = None
    with visit.reading("at", "until", "within", "other"):
        asked = asked_of(visit)
        other = asked_beside(visit, asked)
    most = visit.number("rows", ROWS, 2, ROWS_AT_MOST)
    if visit.wrong:
        return visit.page("moment.html", **words_of(visit, name), asked=None, chart=None, beside=None)
    reader = Reader(visit.client, places, wish, visit.desk.clock)
    if wish.key or wish.text:
        reader.until = visit.desk.clock.monotonic() + FILTERED_SECONDS_AT_MOST
    earlier, from_ms, later, until_ms = await reader.around(asked.since_ms, asked.at_ms, asked.until_ms, most)
    chart = await chart_of(visit.client, places, {}, bounds_of(visit, earlier, later, asked), visit.zone, visit.now_ms)
    if chart is not None:
        chart.marks["moment"] = asked.at_ms
        chart.shown = (max(from_ms, 0), until_ms)
    beside = None if other is None else await beside_of(visit, places, wish, (asked, other), most)
    parts = tree_parts(len(earlier) + len(later))
    words = words_of(visit, name)
    if not asked.is_range:
        words["within"] = format_duration(asked.until_ms - asked.at_ms)
    before, after = rows_of(earlier, parts, is_after=False), rows_of(later, parts, is_after=True)
    lines_before, lines_after = with_marks(before, after, asked.at_ms, until_ms)
    return visit.page(
        "moment.html",
        **words,
        here=partial(here, visit, words),
        asked=asked,
        at_ms=asked.at_ms,
        within_ms=asked.until_ms - asked.at_ms,
        earlier=before,
        later=after,
        lines_before=lines_before,
        lines_after=lines_after,
        tools=tools_of(visit, words),
        spans=None if chart is None else spans(asked.at_ms, chart.timeline.start_ms, chart.until_ms),
        dots=key_dots([*before, *after], asked.at_ms) if wish.key else None,
        from_ms=from_ms,
        until_ms=until_ms,
        is_cut=until_ms < asked.until_ms,
        looked_at=reader.looked_at,
        most=most,
        is_search_on=is_search_on(asked, (from_ms, until_ms), (len(earlier), len(later)), most),
        notes=reader.notes,
        chart=chart,
        beside=beside,
        command=command_of(visit, name, asked.since_ms, asked.until_ms, wish),
    )


def is_search_on(asked: MomentQuery, edges: tuple[int, int], found: tuple[int, int], most: int) -> bool:
    """Whether there is more to search for a page of this many rows: then it continues by itself."""
    wants_earlier = not asked.is_range and edges[0] > asked.since_ms and found[0] < most // 2
    return wants_earlier or (edges[1] < asked.until_ms and sum(found) < most)


def words_of(visit: Visit, topic: str) -> dict[str, str]:
    """The values of the form, as typed."""
    words = {
        name: visit.typed(name) for name in ("at", "until", "within", "where", "key", "partition", "span", "other")
    }
    since, found, until = words["at"].partition("..")
    if found and "at" not in visit.wrong and not words["until"]:
        words["at"], words["until"] = since.strip(), until.strip()
    return {"topic": topic, **words, "within": words["within"] or WITHIN}


def here(visit: Visit, words: Mapping[str, str], path: str = "/moment", **changes: Any) -> str:
    """The same page with other parameters, or another page with the same ones. Another time is a whole one, without the end."""
    if "at" in changes:
        changes = {"until": "", **changes}
    return visit.link(path, **{**words, **changes})


def tools_of(visit: Visit, words: Mapping[str, str]) -> dict[str, Any]:
    """The functions that the rows of a page use: links, times and commands."""

    def one(row: RecordRow) -> str:
        address = here(visit, words, at=row.record.timestamp_ms, span="")
        return f"{address.removesuffix('#moment')}#{row._replace(mark='r').id}"

    def again(record: ConsumerRecord) -> str:
        return visit.link("/change/produce", topic=record.topic, again=f"{record.partition}:{record.offset}")

    return {
        "again": again if visit.may("produce") else None,
        "here": partial(here, visit, words),
        "when": Times(visit.zone, visit.now_ms).show,
        "link_to": one,
        "command": lambda record: command_of_record(record, visit.cluster.bootstrap),
    }


async def which(visit: Visit, target: str, title: str) -> Response:
    """The page that asks for a topic; it lists all but internal ones."""
    view = await visit.client.metadata()
    names = sorted(one.name for one in view.topics.values() if not one.internal)
    typed = {"topic": visit.typed("topic"), "at": visit.typed("at")}
    return visit.page("moment_topics.html", names=names[:NAMES_AT_MOST], target=target, title=title, **typed)


def chart_bounds(earlier: Sequence[ShownRecord], later: Sequence[ShownRecord], asked: MomentQuery) -> tuple[int, int]:
    """The chart shows twice what the rows cover, or the range and its surroundings, so that it can be moved from there."""
    at_ms = asked.at_ms
    if asked.is_range:
        beside = max((asked.until_ms - asked.since_ms) // 4, 25)
        return max(0, asked.since_ms - beside), asked.until_ms + beside
    low = earlier[0].record.timestamp_ms if earlier else asked.since_ms
    high = later[-1].record.timestamp_ms if later else asked.until_ms
    reach = max(at_ms - low, high - at_ms, 50)
    return max(0, at_ms - 2 * reach), at_ms + 2 * reach


def bounds_of(
    visit: Visit, earlier: Sequence[ShownRecord], later: Sequence[ShownRecord], asked: MomentQuery
) -> tuple[int | None, int | None]:
    """The times of the chart: `span` on both sides of the moment, all times, or what suits the rows."""
    if visit.text("span") == SPAN_ALL:
        return None, None
    span = visit.number("span", 0, 0, LONGEST_MS)
    if span:
        return max(0, asked.at_ms - span), asked.at_ms + max(span, 25)
    return chart_bounds(earlier, later, asked)


def spans(at_ms: int, start_ms: int, end_ms: int) -> tuple[int, int]:
    """The spans of the buttons: nearer and wider than a chart of these bounds."""
    now = max(end_ms - at_ms, at_ms - start_ms, 50)
    return max(25, now // 3), min(3 * now, LONGEST_MS)


async def places_of(visit: Visit, name: str) -> list[TopicPartition]:
    """The wanted partitions, or all with a leader."""
    topic = await visit.topic(name)
    served = await served_places(visit, name)
    if not visit.text("partition"):
        return served
    number = visit.number("partition", 0)
    if number not in topic.partitions:
        raise Refused(f"topic {name} has no partition {number}", 404, "partition")
    return [place for place in served if place.partition == number]


def within_of(visit: Visit) -> int:
    text = visit.text("within") or WITHIN
    try:
        found = parse_duration(text)
    except TimeTextError as error:
        raise Refused(f"within: {error}", field="within") from error
    if not 0 < found <= LONGEST_MS:
        raise Refused("within: expected a duration of at most ten years", field="within")
    return found


def command_of(visit: Visit, topic: str, since_ms: int, until_ms: int, wish: Wish) -> str:
    """The page as a command line, for a script or a ticket."""
    words = ["consume", topic]
    words += ["--since", exact_time(max(0, since_ms), visit.zone), "--until", exact_time(max(0, until_ms), visit.zone)]
    if visit.text("partition"):
        words += ["--partition", visit.text("partition")]
    tests = [f"({wish.text})"] if wish.text and wish.key else [wish.text] if wish.text else []
    if wish.key:
        tests.append("key = '" + wish.key.replace("\\", "\\\\").replace("'", "\\'") + "'")
    if tests:
        words += ["--where", " and ".join(tests)]
    return command_line(visit.cluster.bootstrap, *words, "-o", "json")


# -- downloads


async def download(visit: Visit) -> Response:
    """The records of a range as JSON lines or Parquet; a range with too many is refused before anything is read."""
    form = visit.text("format", "jsonl")
    if form not in {"jsonl", "parquet"}:
        raise Refused("format: choose jsonl or parquet")
    name = visit.text("topic")
    places = await places_of(visit, name)
    asked = asked_of(visit)
    since, until = asked.since_ms, asked.until_ms
    wish = Wish(visit, visit.desk.decoder)
    found = await offsets_at(visit.client, places, [max(0, since), max(0, until)])
    count = sum(max(0, high - low) for low, high in found.values())
    if count > DOWNLOADED_AT_MOST:
        raise Refused(
            f"that range has {count:,} records; the maximum for a download is {DOWNLOADED_AT_MOST:,}: choose a shorter range",
            413,
        )
    lines = json_lines(merged(visit, places, since, until), wish)
    stem = "".join(sign if sign.isalnum() or sign in "._-" else "_" for sign in name)
    headers = {"content-disposition": f'attachment; filename="{stem}.{form}"'}
    if form == "jsonl":
        return StreamingResponse(lines, media_type="application/x-ndjson", headers=headers)
    from horolog.console.parquet import converted, is_installed

    if not is_installed():
        raise Refused(
            "Parquet needs pyarrow, which is not installed where the console runs; install it there: pip install pyarrow",
            501,
        )
    return Response(await converted(lines), media_type="application/vnd.apache.parquet", headers=headers)


def merged(visit: Visit, places: Sequence[TopicPartition], since_ms: int, until_ms: int) -> "MergedRecords":
    from horolog.client.moments.look_ahead import LookAhead
    from horolog.client.moments.moment import merge
    from horolog.client.moments.sorting import Hold

    look_ahead, hold = LookAhead(600_000, 4 << 20), Hold(4000, 8 << 20)
    return merge(visit.client, places, max(0, since_ms), max(0, until_ms), look_ahead=look_ahead, hold=hold)


async def json_lines(moment: "MergedRecords", wish: Wish) -> AsyncIterator[bytes]:
    """The records in the form of `horolog consume -o json`."""
    from horolog.commands.online.record_text import json_writer

    async with moment:
        async for placed in moment:
            if await wish(placed.record) is not None:
                yield json_writer(placed.record)
