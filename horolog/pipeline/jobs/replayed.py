"""What a source of `replay` has, topic by topic: a topic and a later one of the same name are two, distinguished by their ids."""

import os
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from horolog.client.values.types import TopicPartition
from horolog.pipeline.base.positions import OffsetRange
from horolog.pipeline.jobs.dump_files import is_hidden
from horolog.pipeline.jobs.lane_rows import (
    FileTables,
    LaneRows,
    ReadRows,
    SegmentTables,
    SortedRows,
    Stretch,
    look_at_files,
)
from horolog.pipeline.jobs.lanes import COLUMNS, Due, Noted, Reach
from horolog.pipeline.jobs.loading import Gap, unsent
from horolog.pipeline.jobs.merging import Group, Times, is_too_much
from horolog.pipeline.options.options import parse_read
from horolog.pipeline.reading import pins
from horolog.pipeline.reading.offline import Piece, There
from horolog.pipeline.reading.pins import plan_and_pin
from horolog.pipeline.reading.pushdown import EVERYTHING
from horolog.pipeline.spark.notes import say
from horolog.pipeline.stores.object_stores import Place, hadoop_options
from horolog.pipeline.stores.store import Files, files_of
from horolog.pipeline.tables.table import Table, open_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from horolog.pipeline.tables.catalogues import CatalogueTable

Positions = Mapping[int, int]
"""By lane, the offset of the first row that was not sent."""

PLAIN = "plain"
"""Parquet files of an archive whose log of commits is elsewhere (`--checkpoint`)."""


class WantedRows(NamedTuple):
    """The wanted rows of a source."""

    spark: "SparkSession"
    source: "str | Place | CatalogueTable"
    kind: str
    topic: str | None
    times: Times


@dataclass(frozen=True)
class ReplayedTopic:
    """The rows of one topic."""

    asked: WantedRows
    topic: str
    topic_id: str | None
    partitions: int
    tables: SegmentTables | FileTables
    sorted_by: "Callable[[], DataFrame] | None" = None
    """If merging would take too much memory: the rows for Spark to sort."""
    reach: Mapping[int, Reach] = field(default_factory=dict)
    """Of segment files: the offsets of each partition that are read."""
    firsts: Mapping[int, int] = field(default_factory=dict)
    """Of segment files: where each partition begins now."""
    known: int = 0
    """How many partitions the table has had."""

    @property
    def has_rows(self) -> bool:
        return bool(self.tables.units())

    def is_in_files_of(self, topic_id: str | None) -> bool:
        """Whether these are the segment files of the topic with this id."""
        return self.topic_id is not None and self.topic_id == topic_id and isinstance(self.tables, SegmentTables)

    def due(self, have: Mapping[int, Noted]) -> "tuple[dict[int, Due], list[Gap]]":
        """Of a table: the rows of each lane, with those that were sent; and those that an earlier run has found, and that are gone."""
        tables = self.tables
        if isinstance(tables, SegmentTables):
            return {}, []
        old = [(lane, each, each.begun.due) for lane, each in have.items() if each.begun.due is not None]
        now = [(lane, have[lane][:2] if lane in have else (0, 0)) for lane in range(self.partitions)]
        stretches = [Stretch(lane, each.position, due.end) for lane, each, due in old]
        stretches += [Stretch(lane, position, tables.end(lane)) for lane, (position, _) in now]
        found = tables.rows_in(self.asked.spark, stretches)
        gaps = [
            Gap(f"{self.topic}-{lane}", each.position, None, due.rows - each.sent - rows)
            for (lane, each, due), rows in zip(old, found, strict=False)
        ]
        dues = {
            lane: Due(sent + rows, tables.end(lane))
            for (lane, (_, sent)), rows in zip(now, found[len(old) :], strict=True)
        }
        return dues, [gap for gap in gaps if gap.gone > 0]

    def unsent(self, positions: Positions, there: int) -> LaneRows:
        """The rows that were not sent yet, for a topic with this many partitions: each to its own, if there are enough."""
        keeps = self.partitions <= there
        tables = self.tables.unsent(positions)
        read = ReadRows(self.asked.spark, tables, keeps)
        if self.sorted_by is None:
            return read
        frame = _in_order(self.sorted_by(), self, positions, keeps_partitions=keeps)
        return SortedRows(frame, lambda rules, now_ms, exactly: read.counts(rules, now_ms, exactly=exactly))


def topics_in(asked: WantedRows, held: ExitStack) -> list[ReplayedTopic]:
    """The topics of a source that have rows of that range, oldest first; `held` keeps their files.

    The only topic is there without rows, too: an earlier run may have sent those that it had, or left some that are gone.
    """
    found = _in_segments(asked, held) if asked.kind == "segments" else _in_files(asked)
    return [one for one in found if one.has_rows] or (found if len({one.topic for one in found}) == 1 else [])


# -- segment files


def _in_segments(asked: WantedRows, held: ExitStack) -> list[ReplayedTopic]:
    source = asked.source
    options = {"includeHeaders": "true", "kafka.isolation.level": "read_committed"}
    if isinstance(source, Place):
        options |= {"path": source.url, **hadoop_options(asked.spark, source.url), **source.as_options()}
    else:
        options |= {"path": str(Path(str(source).removeprefix("file://")).absolute())}
    if asked.topic is not None:
        options["subscribe"] = asked.topic
    if asked.times.since_ms is not None:  # all records before the first at or after it are earlier
        options["startingTimestamp"] = str(asked.times.since_ms)
    read = parse_read(options, 0)
    plan, tasks = plan_and_pin(read, EVERYTHING, lambda plan: plan.parts, os.getpid(), say)
    held.enter_context(pins.held(tasks))
    pieces: dict[TopicPartition, list[Piece]] = {}
    for piece in (piece for task in tasks for piece in task):
        pieces.setdefault(piece.partition, []).append(piece)
    by_topic: dict[tuple[str, str | None], list[OffsetRange]] = {}
    for one in plan.ranges:
        by_topic.setdefault((one.partition.topic, plan.there[one.partition].topic_id), []).append(one)
    now_ms = time.time_ns() // 1_000_000
    return [
        ReplayedTopic(
            asked,
            *key,
            1 + max(one.partition.partition for one in ranges),
            SegmentTables(
                {one.partition.partition: pieces.get(one.partition, []) for one in ranges},
                asked.times,
                plan.latest_ms,
                read.place,
                plan.versions,
            ),
            reach={one.partition.partition: _reach(one, plan.there[one.partition], asked, now_ms) for one in ranges},
            firsts={one.partition.partition: plan.there[one.partition].first for one in ranges},
        )
        for key, ranges in by_topic.items()
    ]


def _reach(one: OffsetRange, there: There, asked: WantedRows, now_ms: int) -> Reach:
    """A range of times is over where a record has come that is later, unless that record is of the future."""
    until_ms = asked.times.until_ms
    return Reach(one.start, one.end, until_ms is not None and until_ms <= min(there.latest_ms, now_ms))


# -- tables


def _in_files(asked: WantedRows) -> list[ReplayedTopic]:
    table = None if asked.kind == PLAIN else open_table(asked.kind, _folder(asked.source), asked.spark)
    found = _plain_files(asked) if table is None else table.files(*asked.times)
    known = _known(table, asked.topic)
    groups = look_at_files(asked.spark, found, asked.times, asked.topic)
    stores = [files for files, _ in found]
    by_topic: dict[tuple[str, str | None], dict[int, list[Group]]] = {}
    for one in groups:
        by_topic.setdefault((one.topic, one.topic_id), {}).setdefault(one.partition, []).append(one)
    for key in known if not by_topic else ():
        by_topic[key] = {}

    def age(key: tuple[str, str | None]) -> tuple[bool, int]:
        """Rows without an id are older than any with one."""
        return key[1] is not None, min((one.first_us for ours in by_topic[key].values() for one in ours), default=0)

    return [
        ReplayedTopic(
            asked,
            *key,
            1 + max(by_topic[key], default=-1),
            FileTables(stores, by_topic[key], asked.times),
            partial(_rows, asked) if any(is_too_much(ours) for ours in by_topic[key].values()) else None,
            known=known.get(key, 0),
        )
        for key in sorted(by_topic, key=age)
    ]


def _known(table: "Table | None", topic: str | None) -> dict[tuple[str, str | None], int]:
    """How many partitions the topics of a table have had, whether or not it has rows of them still."""
    found: dict[tuple[str, str | None], int] = {}
    if table is not None:
        offsets, ids = table.offsets(), table.topic_ids()
        for place in offsets:
            if topic in {None, place.topic}:
                key = (place.topic, ids.get(place.topic))
                found[key] = max(found.get(key, 0), place.partition + 1)
    return found


def _plain_files(asked: WantedRows) -> list[tuple[Files, list[str]]]:
    source: Any = asked.source
    files = files_of(source)
    return [(files, [name for name in files.files("") if name.endswith(".parquet") and not is_hidden(name)])]


def _folder(source: "str | Place | CatalogueTable") -> "str | CatalogueTable":
    if isinstance(source, Place):
        return source.url
    return str(Path(source.removeprefix("file://")).absolute()) if isinstance(source, str) else source


def _rows(asked: WantedRows) -> "DataFrame":
    if asked.kind == PLAIN:
        from horolog.pipeline.tables.parquet import plain_rows

        source: Any = asked.source
        return plain_rows(asked.spark, source, *asked.times)
    return open_table(asked.kind, _folder(asked.source), asked.spark).rows(*asked.times)


def _in_order(rows: "DataFrame", of: ReplayedTopic, positions: Positions, *, keeps_partitions: bool) -> "DataFrame":
    """The rows to send (`lanes.COLUMNS`): those of each partition in the order of their offsets."""
    from pyspark.sql import functions as f

    known = f.col("topic_id") if "topic_id" in rows.columns else f.lit(None).cast("string")
    ours = rows.where((f.col("topic") == of.topic) & known.eqNullSafe(f.lit(of.topic_id)))
    partition = f.col("partition") if keeps_partitions else f.lit(None).cast("int")
    lanes = ours.select(
        f.col("partition").alias("lane"),
        f.col("offset").alias("position"),
        "key",
        "value",
        "headers",
        partition.alias("partition"),
        f.unix_millis("timestamp").alias("timestamp_ms"),  # -1, no time, stays that
    )
    return unsent(lanes, positions).repartition("lane").sortWithinPartitions("lane", "position").select(*COLUMNS)
