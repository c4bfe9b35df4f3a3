"""`horolog pipeline replay`: what an archive or segment files hold goes to a topic again, with the times that it had."""

import argparse
import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from client.cli.common.arguments import positive_number
from client.cli.common.console import Console
from client.cli.common.errors import CommandError, NotFoundError, UsageError
from client.cli.common.exit_codes import ExitCode
from client.cli.online.connecting import connected
from pipeline.jobs.common import (
    JobProgress,
    add_common,
    add_range,
    one_topic,
    require_topics,
    show_summary,
    spark_of,
    times_of,
)
from pipeline.jobs.loading import TopicRules, look_ahead, not_sent, rules_of, send, show_outlook
from pipeline.tables.table import TableError, open_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def kind_of(folder: Path) -> str:
    """What is in a folder: a table of some kind, or "segments"; TableError if it is nothing that can be read."""
    if not folder.is_dir():
        raise TableError(f"{folder} is no folder")
    if (folder / "_delta_log").is_dir():
        return "delta"
    if (folder / "catalog.db").is_file():
        return "iceberg"
    if any(folder.glob("date=*/*.parquet")):
        return "parquet"
    if any(folder.glob("*.log")) or any(folder.glob("*-*/*.log")):
        return "segments"
    raise TableError(f"{folder} holds neither an archive nor segment files")


def rows_of(
    spark: "SparkSession", folder: Path, source_topic: str | None, since_ms: int | None, until_ms: int | None
) -> "DataFrame":
    """Rows of the columns that a topic takes, and where they were."""
    from pyspark.sql import functions as f

    kind = kind_of(folder)
    if kind == "segments":
        reader = spark.read.format("horolog").option("includeHeaders", "true")
        rows = reader.option("kafka.isolation.level", "read_committed").load(str(folder))
        ms = f.unix_millis("timestamp")
        if since_ms is not None:
            rows = rows.where(ms >= since_ms)
        if until_ms is not None:
            rows = rows.where(ms < until_ms)
    elif kind == "parquet":
        from pipeline.tables.table import in_range

        rows = in_range(spark.read.parquet(str(folder)), since_ms, until_ms)
    else:
        rows = open_table(kind, str(folder), spark).rows(since_ms, until_ms)
    if source_topic is not None:
        rows = rows.where(f.col("topic") == source_topic)
    return rows


def source_of(rows: "DataFrame") -> dict[str, int]:
    """How many partitions the rows have of each topic."""
    from pyspark.sql import functions as f

    counted = rows.groupBy("topic").agg((f.max("partition") + 1).alias("partitions")).collect()
    return {row["topic"]: row["partitions"] for row in counted}


def in_order(rows: "DataFrame", *, keep_partitions: bool) -> "DataFrame":
    """What is sent: the rows of each partition in the order of their offsets, to the partition they were in or by key."""
    from pyspark.sql import functions as f

    partition = f.col("partition") if keep_partitions else f.lit(None).cast("int")
    ms = f.unix_millis("timestamp")
    return (
        rows.repartition("topic", "partition")
        .sortWithinPartitions("topic", "partition", "offset")
        .select(
            "key",
            "value",
            "headers",
            partition.alias("partition"),
            "timestamp",
            f.when(ms >= 0, ms).alias("timestamp_ms"),
        )
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--from", dest="source", required=True, metavar="DIR", help="an archive, or a folder of segment files"
    )
    parser.add_argument("--from-topic", metavar="TOPIC", help="of the folder's topics this one (the only one)")
    parser.add_argument(
        "--rate", type=positive_number, metavar="N", help="records per second, no more (as fast as it goes)"
    )
    parser.add_argument("-n", "--dry-run", action="store_true", help="only say what would happen")
    parser.add_argument("--force", action="store_true", help="send although something would be lost")
    add_range(parser)
    add_common(parser)


def run(arguments: argparse.Namespace, console: Console) -> ExitCode:
    topic = one_topic(arguments)
    since_ms, until_ms = times_of(arguments, console)
    asyncio.run(require_topics(arguments, [topic]))
    rules = asyncio.run(rules_for(arguments, topic))
    try:
        kind_of(Path(arguments.source))
        with spark_of(arguments) as spark:
            rows = rows_of(spark, Path(arguments.source), arguments.from_topic, since_ms, until_ms).persist()
            return _replay(rows, topic, rules, arguments, console)
    except TableError as error:
        raise CommandError(str(error)) from error


async def rules_for(arguments: argparse.Namespace, topic: str) -> TopicRules:
    from client.admin import Admin

    async with connected(arguments) as client, Admin(client) as admin:
        return await rules_of(admin, topic)


def _replay(
    rows: "DataFrame", topic: str, rules: TopicRules, arguments: argparse.Namespace, console: Console
) -> ExitCode:
    sources = source_of(rows)
    if not sources:
        raise NotFoundError("there are no records of that range, or of that topic")
    if len(sources) > 1:
        raise UsageError(f"{arguments.source} holds {', '.join(sorted(sources))}", "--from-topic names one")
    outlook = look_ahead(rows, rules, console.now_ms())
    show_outlook(outlook, topic, console)
    if arguments.dry_run or (outlook.losses and not arguments.force):
        return not_sent("replay", outlook, console, dry_run=arguments.dry_run)
    (partitions,) = sources.values()
    ordered = in_order(rows, keep_partitions=partitions <= rules.partitions)
    progress = JobProgress(console, outlook.records)
    if arguments.rate is None:
        ordered = ordered.drop("timestamp_ms")
    summary = send(ordered, arguments.bootstrap, topic, outlook, progress, arguments.rate)
    progress.clear()
    summary.job = "replay"
    summary.details = {"topic": topic, "partitions_kept": partitions <= rules.partitions}
    show_summary(summary, console)
    return ExitCode.OK
