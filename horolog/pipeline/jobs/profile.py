"""`horolog pipeline profile`: how out of order a topic's times are.

A record is late by as much as its time is behind the latest time before it in its partition. Spark computes that as a
running maximum over the offsets of each partition; only counts return to the driver.
"""

import argparse
import asyncio
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from horolog.commands.console import Console
from horolog.commands.errors import NotFoundError
from horolog.commands.exit_codes import ExitCode
from horolog.pipeline.jobs.common import (
    Summary,
    add_common,
    add_range,
    brokers_of,
    one_topic,
    require_topics,
    show_summary,
    spark_of,
    times_of,
)
from horolog.pipeline.options.brokers import spark_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

HOUR_MS = 3_600_000
MINUTE_MS = 60_000
LATENESS_BOUNDS_MS = (0, 1000, 10_000, 60_000, 600_000, HOUR_MS, 24 * HOUR_MS)
"""A bar of the histogram holds the records that are late by more than one bound and at most the next; the first those that are not late."""
GAPS = 10
HOURS_SHOWN = 48
PERCENTILES = (0.5, 0.9, 0.99, 0.999)


@dataclass(slots=True)
class PartitionProfile:
    partition: int
    records: int
    missing: int
    """Records without a time."""
    future: int
    late: int
    largest_lateness_ms: int
    first_ms: int | None
    last_ms: int | None


@dataclass(slots=True)
class Profile:
    topic: str
    records: int
    missing: int
    future: int
    late: int
    largest_lateness_ms: int
    percentiles_ms: dict[str, int]
    """Of the lateness of the records that are late."""
    lateness: list[dict[str, int | None]]
    """`over_ms`, `up_to_ms` (null: no limit) and `records` of each bar of the histogram."""
    hours: list[dict[str, int]]
    """`hour_ms` and `records` of each hour that has records."""
    gaps: list[dict[str, int]]
    """`from_ms`, `to_ms`: the longest stretches of whole minutes without a record."""
    partitions: list[PartitionProfile] = field(default_factory=list)


def profile(
    spark: "SparkSession",
    topic: str,
    options: dict[str, str],
    *,
    now_ms: int | None = None,
    since_ms: int | None = None,
    until_ms: int | None = None,
) -> Profile:
    """`options` say where the topic is: {"kafka.bootstrap.servers": ...} or {"path": ...}."""
    rows = _rows(spark, topic, options, since_ms, until_ms).persist()
    try:
        return _collect(rows, topic, time.time_ns() // 1_000_000 if now_ms is None else now_ms)
    finally:
        rows.unpersist()


def _rows(
    spark: "SparkSession", topic: str, options: dict[str, str], since_ms: int | None, until_ms: int | None
) -> "DataFrame":
    """partition, ms (null: no time), late_ms (0: in order), of each record of the range."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    reader = spark.read.format("horolog").option("subscribe", topic).options(**options)
    if since_ms is not None:
        reader = reader.option("startingTimestamp", str(since_ms)).option("onNoMatch", "latest")
    if until_ms is not None:
        reader = reader.option("endingTimestamp", str(until_ms))
    ms = f.unix_millis("timestamp")
    before = Window.partitionBy("partition").orderBy("offset").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    return (
        reader.load()
        .select("partition", "offset", f.when(ms >= 0, ms).alias("ms"))
        .withColumn("late_ms", f.max("ms").over(before) - f.col("ms"))
        .drop("offset")
    )


def _collect(rows: "DataFrame", topic: str, now_ms: int) -> Profile:
    partitions = _partitions(rows, now_ms)
    return Profile(
        topic=topic,
        records=sum(each.records for each in partitions),
        missing=sum(each.missing for each in partitions),
        future=sum(each.future for each in partitions),
        late=sum(each.late for each in partitions),
        largest_lateness_ms=max((each.largest_lateness_ms for each in partitions), default=0),
        percentiles_ms=_percentiles(rows),
        lateness=_histogram(rows),
        hours=_hours(rows),
        gaps=_gaps(rows),
        partitions=partitions,
    )


def _partitions(rows: "DataFrame", now_ms: int) -> list[PartitionProfile]:
    from pyspark.sql import functions as f

    counted = rows.groupBy("partition").agg(
        f.count("*").alias("records"),
        f.sum(f.col("ms").isNull().cast("long")).alias("missing"),
        f.sum(f.coalesce(f.col("ms") > now_ms, f.lit(False)).cast("long")).alias("future"),
        f.sum(f.coalesce(f.col("late_ms") > 0, f.lit(False)).cast("long")).alias("late"),
        f.coalesce(f.max("late_ms"), f.lit(0)).alias("largest_lateness_ms"),
        f.min("ms").alias("first_ms"),
        f.max("ms").alias("last_ms"),
    )
    return [PartitionProfile(**row.asDict()) for row in counted.orderBy("partition").collect()]


def _percentiles(rows: "DataFrame") -> dict[str, int]:
    from pyspark.sql import functions as f

    found = rows.where("late_ms > 0").agg(f.percentile_approx("late_ms", list(PERCENTILES)).alias("found")).collect()
    values = found[0]["found"] or []
    return {f"p{share * 100:g}": int(value) for share, value in zip(PERCENTILES, values, strict=False)}


def _histogram(rows: "DataFrame") -> list[dict[str, int | None]]:
    from pyspark.sql import functions as f

    place = sum(((f.col("late_ms") > bound).cast("int") for bound in LATENESS_BOUNDS_MS), f.lit(0))
    counted = rows.where("ms is not null").groupBy(place.alias("place")).count().collect()
    count_of = {row["place"]: row["count"] for row in counted}
    bounds: list[int | None] = [*LATENESS_BOUNDS_MS, None]
    return [
        {"over_ms": None if number == 0 else bounds[number - 1], "up_to_ms": bound, "records": count_of.get(number, 0)}
        for number, bound in enumerate(bounds)
    ]


def _hours(rows: "DataFrame") -> list[dict[str, int]]:
    from pyspark.sql import functions as f

    hour = (f.floor(f.col("ms") / HOUR_MS) * HOUR_MS).cast("long")
    counted = rows.where("ms is not null").groupBy(hour.alias("hour_ms")).agg(f.count("*").alias("records"))
    return [row.asDict() for row in counted.orderBy("hour_ms").collect()]


def _gaps(rows: "DataFrame") -> list[dict[str, int]]:
    """Between two minutes that have records, longest first."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    minute = f.floor(f.col("ms") / MINUTE_MS).cast("long")
    minutes = rows.where("ms is not null").select(minute.alias("minute")).distinct()
    following = f.lead("minute").over(Window.partitionBy(f.lit(0)).orderBy("minute"))
    found = (
        minutes.withColumn("next", following)
        .where("next > minute + 1")
        .select(((f.col("minute") + 1) * MINUTE_MS).alias("from_ms"), (f.col("next") * MINUTE_MS).alias("to_ms"))
        .orderBy(f.desc(f.col("to_ms") - f.col("from_ms")), "from_ms")
        .limit(GAPS)
    )
    return [row.asDict() for row in found.collect()]


# -- the command


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dir", metavar="DIR", help="read this data folder instead of asking a broker")
    parser.add_argument("--png", metavar="FILE", help="draw lateness and records per hour")
    add_range(parser)
    add_common(parser)


def run(arguments: argparse.Namespace, console: Console) -> ExitCode:
    topic = one_topic(arguments)
    since_ms, until_ms = times_of(arguments, console)
    options = {"path": arguments.dir} if arguments.dir else spark_options(brokers_of(arguments))
    if not arguments.dir:
        asyncio.run(require_topics(arguments, [topic]))
    began = time.monotonic()
    with spark_of(arguments) as spark:
        found = profile(spark, topic, options, now_ms=console.now_ms(), since_ms=since_ms, until_ms=until_ms)
    if not found.records:
        raise NotFoundError(f"topic {topic} has no records in that range")
    if arguments.png:
        Path(arguments.png).write_bytes(picture(found, console))
    if console.as_json:
        console.json_line(asdict(found))
    else:
        _show(found, console)
        show_summary(Summary("profile", found.records, seconds=time.monotonic() - began), console)
    return ExitCode.OK


def _show(found: Profile, console: Console) -> None:
    from horolog.client.values.times import format_duration
    from horolog.commands.charting.drawing import draw

    console.table(
        ("PARTITION", "RECORDS", "NO TIME", "FUTURE", "LATE", "LATE BY UP TO", "FIRST", "LAST"),
        [
            (
                each.partition,
                each.records,
                each.missing,
                each.future,
                each.late,
                format_duration(each.largest_lateness_ms),
                _time(each.first_ms, console),
                _time(each.last_ms, console),
            )
            for each in found.partitions
        ],
    )
    console.print("\nlateness")
    late = [each["records"] or 0 for each in found.lateness]
    for line in draw(_bars(found), late, console.width, _no_fold, [""] * len(late)):
        console.print(line)
    if found.percentiles_ms:
        shares = ", ".join(f"{name} {format_duration(value)}" for name, value in found.percentiles_ms.items())
        console.print(f"of the late ones: {shares}")
    hours, counts = _every_hour(found, HOURS_SHOWN)
    console.print("\nrecords per hour")
    shown = [console.show_time(hour) for hour in hours]
    for line in draw(
        shown, counts, console.width, lambda first, last: f"{last - first + 1} hours without", [""] * len(hours)
    ):
        console.print(line)
    for gap in found.gaps[:3]:
        length = format_duration(gap["to_ms"] - gap["from_ms"])
        console.print(f"no record for {length} from {console.show_time(gap['from_ms'])}")


def _no_fold(first: int, last: int) -> str:
    return f"nothing in {last - first + 1} of the steps"


def _time(ms: int | None, console: Console) -> str | None:
    return None if ms is None else console.show_time(ms)


def _bars(found: Profile) -> list[str]:
    from horolog.client.values.times import format_duration

    labels = ["in order"]
    for each in found.lateness[1:]:
        upper = each["up_to_ms"]
        labels.append(
            f"more than {format_duration(each['over_ms'] or 0)}" if upper is None else f"up to {format_duration(upper)}"
        )
    return labels


def _every_hour(found: Profile, most: int) -> tuple[list[int], list[int]]:
    """The last hours, those without records among them."""
    if not found.hours:
        return [], []
    count_of = {each["hour_ms"]: each["records"] for each in found.hours}
    last = found.hours[-1]["hour_ms"]
    first = max(found.hours[0]["hour_ms"], last - (most - 1) * HOUR_MS)
    hours = list(range(first, last + 1, HOUR_MS))
    return hours, [count_of.get(hour, 0) for hour in hours]


def picture(found: Profile, console: Console) -> bytes:
    """Above the lateness in seconds, late ones red; below the records per hour, those of the future red."""
    from horolog.commands.charting.png import pictures

    counts: Sequence[int] = [each["records"] or 0 for each in found.lateness]
    seconds = [str((each["over_ms"] or 0) // 1000) for each in found.lateness]
    hours, per_hour = _every_hour(found, 24 * 31)
    labels = [console.show_time(hour)[:16].replace("T", " ") for hour in hours]
    late = [number > 0 for number in range(len(counts))]
    return pictures([(counts, late, seconds), (per_hour, [hour > console.now_ms() for hour in hours], labels)])
