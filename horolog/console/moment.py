"""The page of a moment: the records around a time, merged by time, decoded and filtered; one key's records before and after; downloads."""

import shlex
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from starlette.responses import Response, StreamingResponse

from horolog.base.readable import exact_time
from horolog.client.charting.lookups import offsets_at
from horolog.client.values.times import TimeTextError, format_duration, parse_duration
from horolog.client.values.types import ConsumerRecord, TopicPartition
from horolog.console.now import leaders_of
from horolog.console.reading import FILTERED_SECONDS_AT_MOST, Reader, Shown
from horolog.console.rendering import short
from horolog.console.timelines import chart_of
from horolog.console.trees import tree_of
from horolog.console.visits import Refused, Visit

if TYPE_CHECKING:
    from markupsafe import Markup

    from horolog.client.decoding import Decoded, Decoder
    from horolog.client.decoding.where import Where
    from horolog.client.moments.moment import MergedRecords

ROWS = 100
ROWS_AT_MOST = 500
WITHIN = "1h"
LONGEST_MS = 10 * 366 * 86_400_000
VALUE_SHOWN = 240
VALUE_AT_MOST = 16 << 10
VALUE_PARTS = 1000
PAGE_PARTS = 30_000
"""Parts of values to fold open: fields and items."""
NAMES_AT_MOST = 2000
DOWNLOADED_AT_MOST = 100_000


class RecordRow(NamedTuple):
    """A row of the page: one record."""

    record: ConsumerRecord
    key: str | None
    value: str | None
    whole: str | None
    """The whole value if `value` is only a part of it."""
    headers: tuple[tuple[str, str], ...]
    problem: str
    late_ms: int
    is_after: bool
    tree: "Markup | None" = None
    """The value, to be folded open."""


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
    """`at` is a time, shown with `within` on both sides, or a range."""
    times = visit.range("at")
    if times is None:
        at, within = visit.time("at"), within_of(visit)
        at_ms = visit.now_ms if at is None else at.ms
        return MomentQuery(at_ms, at_ms - within, at_ms + within)
    assert times.since is not None
    assert times.until is not None
    since_ms, until_ms = times.since_ms or 0, times.until.ms
    return MomentQuery(since_ms, since_ms, until_ms, is_range=True)


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


def key_text(key: bytes | None) -> str | None:
    """A key in addresses: as text, or as hexadecimal digits."""
    if key is None:
        return None
    try:
        return key.decode()
    except UnicodeDecodeError:
        return f"0x{key.hex()}"


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
    with visit.reading("at", "within"):
        asked = asked_of(visit)
    most = visit.number("rows", ROWS, 2, ROWS_AT_MOST)
    if visit.wrong:
        return visit.page("moment.html", **words_of(visit, name), asked=None, chart=None)
    reader = Reader(visit.client, places, wish, visit.desk.clock)
    if wish.key or wish.text:
        reader.until = visit.desk.clock.monotonic() + FILTERED_SECONDS_AT_MOST
    earlier, from_ms, later, until_ms = await reader.around(asked.since_ms, asked.at_ms, asked.until_ms, most)
    chart = await chart_of(visit.client, places, {}, chart_bounds(earlier, later, asked), visit.zone, visit.now_ms)
    if chart is not None:
        chart.marks["moment"] = asked.at_ms
    parts = tree_parts(len(earlier) + len(later))
    words = words_of(visit, name)
    if not asked.is_range:
        words["within"] = format_duration(asked.until_ms - asked.at_ms)
    return visit.page(
        "moment.html",
        **words,
        here=partial(here, visit, words),
        asked=asked,
        at_ms=asked.at_ms,
        within_ms=asked.until_ms - asked.at_ms,
        earlier=rows_of(earlier, parts, is_after=False),
        later=rows_of(later, parts, is_after=True),
        from_ms=from_ms,
        until_ms=until_ms,
        is_cut=until_ms < asked.until_ms,
        looked_at=reader.looked_at,
        most=most,
        is_search_on=is_search_on(asked, (from_ms, until_ms), (len(earlier), len(later)), most),
        notes=reader.notes,
        chart=chart,
        command=command_of(visit, name, asked.since_ms, asked.until_ms, wish),
    )


def is_search_on(asked: MomentQuery, edges: tuple[int, int], found: tuple[int, int], most: int) -> bool:
    """Whether there is more to search for a page of this many rows: then it continues by itself."""
    wants_earlier = not asked.is_range and edges[0] > asked.since_ms and found[0] < most // 2
    return wants_earlier or (edges[1] < asked.until_ms and sum(found) < most)


def words_of(visit: Visit, topic: str) -> dict[str, str]:
    """The values of the form, as typed."""
    words = {name: visit.typed(name) for name in ("at", "within", "where", "key", "partition")}
    return {"topic": topic, **words, "within": words["within"] or WITHIN}


def here(visit: Visit, words: Mapping[str, str], path: str = "/moment", **changes: Any) -> str:
    """The same page with other parameters, or another page with the same ones."""
    return visit.link(path, **{**words, **changes})


async def which(visit: Visit, target: str, title: str) -> Response:
    """The page that asks for a topic; it lists all but internal ones."""
    view = await visit.client.metadata()
    names = sorted(one.name for one in view.topics.values() if not one.internal)
    typed = {"topic": visit.typed("topic"), "at": visit.typed("at")}
    return visit.page("moment_topics.html", names=names[:NAMES_AT_MOST], target=target, title=title, **typed)


def chart_bounds(earlier: Sequence[Shown], later: Sequence[Shown], asked: MomentQuery) -> tuple[int, int]:
    """The chart shows twice what the rows cover, or the range and its surroundings, so that it can be moved from there."""
    at_ms = asked.at_ms
    if asked.is_range:
        beside = max((asked.until_ms - asked.since_ms) // 4, 25)
        return max(0, asked.since_ms - beside), asked.until_ms + beside
    low = earlier[0].record.timestamp_ms if earlier else asked.since_ms
    high = later[-1].record.timestamp_ms if later else asked.until_ms
    reach = max(at_ms - low, high - at_ms, 50)
    return max(0, at_ms - 2 * reach), at_ms + 2 * reach


async def places_of(visit: Visit, name: str) -> list[TopicPartition]:
    """The wanted partitions, or all with a leader."""
    topic = await visit.topic(name)
    leaders = leaders_of(visit.client.view)
    wanted = visit.text("partition")
    numbers = topic.numbers
    if wanted:
        numbers = [visit.number("partition", 0)]
        if numbers[0] not in topic.partitions:
            raise Refused(f"topic {name} has no partition {numbers[0]}", 404, "partition")
    return [place for index in numbers if (place := TopicPartition(name, index)) in leaders]


def within_of(visit: Visit) -> int:
    text = visit.text("within") or WITHIN
    try:
        found = parse_duration(text)
    except TimeTextError as error:
        raise Refused(f"within: {error}", field="within") from error
    if not 0 < found <= LONGEST_MS:
        raise Refused("within: a duration of at most ten years is expected", field="within")
    return found


def tree_parts(rows: int) -> int:
    """How many parts of each value are shown: there is a limit for the page, and one for a value."""
    return min(VALUE_PARTS, PAGE_PARTS // max(rows, 1))


def rows_of(found: Sequence[Shown], parts: int, *, is_after: bool) -> list[RecordRow]:
    return [row_of(one, parts, is_after=is_after) for one in found]


def row_of(one: Shown, parts: int = 0, *, is_after: bool = True) -> RecordRow:
    record, decoded = one.record, one.decoded
    value = None if record.value is None else decoded.value_text
    whole = None
    if value is not None and len(value) > VALUE_SHOWN:
        whole, value = short(value, VALUE_AT_MOST), short(value, VALUE_SHOWN)
    problems = [problem for problem in (decoded.key_problem, decoded.value_problem) if problem]
    headers = tuple((key_text(name) or "", key_text(content) or "") for name, content in record.headers)
    key = None if record.key is None else decoded.key_text
    tree = tree_of(decoded.value, parts) if parts else None
    return RecordRow(record, key, value, whole, headers, "; ".join(problems), one.late_ms, is_after, tree)


def command_of(visit: Visit, topic: str, since_ms: int, until_ms: int, wish: Wish) -> str:
    """The page as a command line, for a script or a ticket."""
    words = ["horolog", "consume", topic, "-b", visit.cluster.bootstrap]
    words += ["--since", exact_time(max(0, since_ms), visit.zone), "--until", exact_time(max(0, until_ms), visit.zone)]
    if visit.text("partition"):
        words += ["--partition", visit.text("partition")]
    tests = [f"({wish.text})"] if wish.text and wish.key else [wish.text] if wish.text else []
    if wish.key:
        tests.append("key = '" + wish.key.replace("\\", "\\\\").replace("'", "\\'") + "'")
    if tests:
        words += ["--where", " and ".join(tests)]
    return shlex.join([*words, "-o", "json"])


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
            f"{count:,} records are in that range, {DOWNLOADED_AT_MOST:,} is the bound of a download; make it shorter",
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
            "Parquet needs pyarrow, which is not installed where the console runs; pip install pyarrow brings it", 501
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
