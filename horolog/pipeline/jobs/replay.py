"""`horolog pipeline replay`: what an archive or segment files hold goes to a topic again, with the times that it had."""

import argparse
import asyncio
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Union

from horolog.broker.log.manager import partition_of
from horolog.broker.log.segments import LOG_SUFFIX
from horolog.client.cli.common.arguments import positive_number
from horolog.client.cli.common.console import Console
from horolog.client.cli.common.errors import CommandError, NotFoundError, UsageError
from horolog.client.cli.common.exit_codes import ExitCode
from horolog.pipeline.brokers import Where
from horolog.pipeline.jobs.common import (
    Summary,
    add_catalogue,
    add_common,
    add_range,
    brokers_of,
    catalogue_table,
    one_topic,
    require_topics,
    show_summary,
    spark_of,
    times_of,
)
from horolog.pipeline.jobs.lanes import COLUMNS, Lanes, before_of, noted_of
from horolog.pipeline.jobs.loading import (
    Load,
    Settings,
    TopicRules,
    add_sending,
    carry_out,
    look_ahead,
    not_sent,
    refuse_losses,
    rules_at,
    settings_of,
    unsent,
)
from horolog.pipeline.object_stores import Place, StoreError, hadoop_options, is_url
from horolog.pipeline.positions import parse_moment
from horolog.pipeline.tables.layout import DATE
from horolog.pipeline.tables.store import files_of, place_of
from horolog.pipeline.tables.table import OWN, TableError, open_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from horolog.pipeline.tables.catalogues import CatalogueTable

Source = Union[str, "CatalogueTable"]


def kind_of(folder: str | Place) -> str:
    """The content of a folder: a table of some kind, or "segments"; TableError if it is nothing that can be read."""
    if isinstance(folder, Place):
        return _kind_of_place(folder)
    return _kind_of_folder(Path(folder.removeprefix("file://")))


def _kind_of_place(place: Place) -> str:
    files = files_of(place)
    folders = files.folders("")
    if "_delta_log" in folders:
        return "delta"
    if OWN in folders or any(name.startswith(f"{DATE}=") for name in folders):
        return "parquet"
    partitions = (name for name in folders if partition_of(name) is not None)
    if any(name.endswith(LOG_SUFFIX) for folder in ("", *partitions) for name in files.names(folder)):
        return "segments"
    raise TableError(f"{place.url} holds neither an archive nor segment files")


def _kind_of_folder(folder: Path) -> str:
    if not folder.is_dir():
        raise TableError(f"{folder} is no folder")
    if (folder / "_delta_log").is_dir():
        return "delta"
    if (folder / "catalog.db").is_file():
        return "iceberg"
    if any(folder.glob(f"{DATE}=*/**/*.parquet")):
        return "parquet"
    if any(folder.glob("*.log")) or any(folder.glob("*-*/*.log")):
        return "segments"
    raise TableError(f"{folder} holds neither an archive nor segment files")


def rows_of(
    spark: "SparkSession", source: Source, source_topic: str | None, since_ms: int | None, until_ms: int | None
) -> "DataFrame":
    """Rows of the columns that a topic takes, and where they were."""
    from pyspark.sql import functions as f

    if not isinstance(source, str):
        rows = open_table("iceberg", source, spark).rows(since_ms, until_ms)
    else:
        rows = _rows_in(spark, source, since_ms, until_ms)
    if source_topic is not None:
        rows = rows.where(f.col("topic") == source_topic)
    return rows


def _rows_in(spark: "SparkSession", source: str, since_ms: int | None, until_ms: int | None) -> "DataFrame":
    from pyspark.sql import functions as f

    place = place_of(source, spark)
    kind = kind_of(place)
    folder = place.url if isinstance(place, Place) else str(Path(place.removeprefix("file://")).absolute())
    if kind == "segments":
        reader = spark.read.format("horolog").option("includeHeaders", "true")
        if isinstance(place, Place):
            reader = reader.options(**hadoop_options(spark, place.url) | place.as_options())
        rows = reader.option("kafka.isolation.level", "read_committed").load(folder)
        ms = f.unix_millis("timestamp")
        if since_ms is not None:
            rows = rows.where(ms >= since_ms)
        if until_ms is not None:
            rows = rows.where(ms < until_ms)
    elif kind == "parquet" and OWN not in files_of(place).folders(""):  # its log of commits is elsewhere (--checkpoint)
        from horolog.pipeline.tables.parquet import plain_rows

        rows = plain_rows(spark, place, since_ms, until_ms)
    else:
        rows = open_table(kind, folder, spark).rows(since_ms, until_ms)
    return rows


def known_as(source: Source) -> str:
    """What tells this source from others, however it is written."""
    if not isinstance(source, str):
        return source.known_as
    return Place.of(source).canonical() if is_url(source) else str(Path(source.removeprefix("file://")).absolute())


def source_of(rows: "DataFrame") -> dict[str, int]:
    """How many partitions the rows have of each topic."""
    from pyspark.sql import functions as f

    counted = rows.groupBy("topic").agg((f.max("partition") + 1).alias("partitions")).collect()
    return {row["topic"]: row["partitions"] for row in counted}


def in_lanes(rows: "DataFrame", *, keep_partitions: bool) -> "DataFrame":
    """The rows to send: those of each partition in the order of their offsets, to the partition they were in or by key."""
    from pyspark.sql import functions as f

    partition = f.col("partition") if keep_partitions else f.lit(None).cast("int")
    return rows.select(
        f.col("partition").alias("lane"),
        f.col("offset").alias("position"),
        "key",
        "value",
        "headers",
        partition.alias("partition"),
        f.unix_millis("timestamp").alias("timestamp_ms"),  # -1, no time, stays that
        "timestamp",
    )


class Range(NamedTuple):
    """The times that are asked for, as somebody said it (which is what the job is known by) and in milliseconds."""

    said: tuple[str | int | None, str | int | None] = (None, None)
    since_ms: int | None = None
    until_ms: int | None = None


def replay(
    spark: "SparkSession",
    bootstrap: Where,
    source: Source,
    topic: str,
    *,
    from_topic: str | None = None,
    since: str | int | None = None,
    until: str | int | None = None,
    settings: Settings | None = None,
) -> Summary:
    """Send what an archive or a folder of segment files holds to the topic; goes on where a run before has ended.

    Times are milliseconds or the command line's, in UTC. Raises `NotSent` if something would be lost.
    """
    now_ms = time.time_ns() // 1_000_000
    since_ms, until_ms = (
        None if each is None else parse_moment("since", str(each), now_ms).value for each in (since, until)
    )
    chosen = settings or Settings()
    asked = Range((since, until), since_ms, until_ms)
    rules = asyncio.run(rules_at(bootstrap, topic))
    made = prepare(spark, bootstrap, source, topic, rules, from_topic=from_topic, asked=asked, settings=chosen)
    if not chosen.force:
        refuse_losses(made.outlook)
    return made.send(chosen)


def prepare(
    spark: "SparkSession",
    bootstrap: Where,
    source: Source,
    topic: str,
    rules: TopicRules,
    *,
    from_topic: str | None,
    asked: Range,
    settings: Settings,
) -> Load:
    """Look at the rows, at those sent before, and at how the topic would treat the rest."""
    lanes = Lanes.of(
        "replay",
        (known_as(source), from_topic, *asked.said),
        bootstrap,
        topic,
        rules.partitions,
        exactly_once=settings.exactly_once,
        note_records=settings.step_records,
    )
    before = None if settings.again else asyncio.run(before_of(lanes))
    settled: dict[str, Any] = {"since": asked.since_ms, "until": asked.until_ms, "partitions": rules.partitions}
    if before is not None:
        settled = before.settled
        lanes = replace(lanes, partitions=settled["partitions"])
    found = rows_of(spark, source, from_topic, settled["since"], settled["until"]).persist()
    sources = source_of(found)
    if not sources:
        raise NotFoundError("there are no records of that range, or of that topic")
    if len(sources) > 1:
        raise UsageError(f"{source} holds {', '.join(sorted(sources))}", "--from-topic names one")
    (partitions,) = sources.values()
    numbers = range(partitions)
    have = {} if before is None else asyncio.run(noted_of(lanes, numbers))
    rows = unsent(in_lanes(found, keep_partitions=partitions <= rules.partitions), have)
    outlook = look_ahead(rows, rules, time.time_ns() // 1_000_000)
    ordered = rows.repartition("lane").sortWithinPartitions("lane", "position").select(*COLUMNS)
    return Load("replay", ordered, lanes, numbers, settled, outlook, sum(each.sent for each in have.values()))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--from", dest="source", metavar="DIR|URL", help="an archive, or a folder of segment files (or --catalog)"
    )
    add_catalogue(parser)
    parser.add_argument("--from-topic", metavar="TOPIC", help="of the folder's topics this one (the only one)")
    parser.add_argument(
        "--rate", type=positive_number, metavar="N", help="records per second, no more (as fast as it goes)"
    )
    add_sending(parser)
    add_range(parser)
    add_common(parser)


def run(arguments: argparse.Namespace, console: Console) -> ExitCode:
    topic = one_topic(arguments)
    named = catalogue_table(arguments)
    if (named is None) == (arguments.source is None):
        raise UsageError("--from is expected, or --catalog and --table, and not both")
    source: Source = named or arguments.source
    asked = Range((arguments.since, arguments.until), *times_of(arguments, console))
    asyncio.run(require_topics(arguments, [topic]))
    rules = asyncio.run(rules_at(brokers_of(arguments), topic))
    try:
        if isinstance(source, str) and not is_url(source):
            kind_of(source)
        with spark_of(arguments) as spark:
            made = prepare(
                spark,
                brokers_of(arguments),
                source,
                topic,
                rules,
                from_topic=arguments.from_topic,
                asked=asked,
                settings=settings_of(arguments),
            )
            summary = carry_out(made, arguments, console)
            if summary is None:
                return not_sent("replay", made.outlook, console, dry_run=arguments.dry_run)
    except (StoreError, TableError) as error:
        raise CommandError(str(error)) from error
    summary.details["partitions_kept"] = len(made.numbers) <= rules.partitions
    show_summary(summary, console)
    return ExitCode.OK
