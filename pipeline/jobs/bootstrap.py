"""`horolog pipeline bootstrap`: a whole dump, from files or a database, becomes a topic with the dump's own times.

The dump is a folder of Parquet, JSON, CSV or ORC files, or a table behind a JDBC URL (`--table`; the driver's jar with
`--conf spark.jars=...`). A record's value is the row as JSON, or the column that `--value-column` names; its time is the column of
`--time-column`. Afterwards `--reprocess 3d` finds where the last three days of the dump begin, and with `--group` lets a group begin there.
"""

import argparse
import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from client.cli.common.arguments import duration
from client.cli.common.console import Console
from client.cli.common.errors import CommandError, NotFoundError, UsageError
from client.cli.common.exit_codes import ExitCode
from client.cli.online.connecting import connected
from pipeline.jobs.common import JobProgress, add_common, one_topic, require_topics, show_summary, spark_of
from pipeline.jobs.loading import look_ahead, not_sent, send, show_outlook
from pipeline.jobs.replay import rules_for

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from client.types import TopicPartition

FILE_FORMATS = ("parquet", "json", "csv", "orc")
DEFAULT_TIME_COLUMN = "timestamp"


def read_dump(spark: "SparkSession", source: str, table: str | None, file_format: str | None) -> "DataFrame":
    if source.startswith("jdbc:"):
        if table is None:
            raise UsageError("a database has many tables", "--table names one, or a query in parentheses")
        return spark.read.format("jdbc").option("url", source).option("dbtable", table).load()
    kind = file_format or _format_of(source)
    reader = spark.read.format(kind)
    if kind == "csv":
        reader = reader.option("header", "true").option("inferSchema", "true")
    return reader.load(source)


def _format_of(source: str) -> str:
    from pathlib import Path

    path = Path(source)
    if not path.exists():
        raise NotFoundError(f"there is no {source}")
    names = [path] if path.is_file() else list(path.rglob("*"))
    for name in names:
        found = name.suffix.lstrip(".")
        if found in FILE_FORMATS:
            return found
        if found in {"jsonl", "ndjson"}:
            return "json"
    raise UsageError(f"no file in {source} looks like {', '.join(FILE_FORMATS)}", "--format names what they are")


def to_records(dump: "DataFrame", *, time_column: str, key_column: str | None, value_column: str | None) -> "DataFrame":
    """The rows as records: key, value, timestamp."""
    from pyspark.sql import functions as f

    for option, name in (("time", time_column), ("key", key_column), ("value", value_column)):
        if name is not None and name not in dump.columns:
            raise UsageError(f"--{option}-column {name}: the dump has {', '.join(dump.columns)}")
    rest = [name for name in dump.columns if name not in {time_column, key_column}]
    value = f.to_json(f.struct(*rest)) if value_column is None else f.col(value_column)
    key = f.lit(None).cast("binary") if key_column is None else _as_binary(dump, key_column, f.col(key_column))
    return dump.select(
        key.alias("key"),
        (value.cast("binary") if value_column is None else _as_binary(dump, value_column, value)).alias("value"),
        _as_time(dump, time_column).alias("timestamp"),
    )


def _as_binary(dump: "DataFrame", name: str, column: "Column") -> "Column":
    return column if dict(dump.dtypes)[name] == "binary" else column.cast("string").cast("binary")


def _as_time(dump: "DataFrame", name: str) -> "Column":
    """Timestamps as they are, dates at midnight, text as ISO 8601; numbers by their size are seconds, milli-, micro- or nanoseconds."""
    from pyspark.sql import functions as f

    kind, column = dict(dump.dtypes)[name], f.col(name)
    if kind in {"bigint", "int"}:
        number = column.cast("long")
        micros = (
            f.when(f.abs(number) < 10**11, number * 1_000_000)
            .when(f.abs(number) < 10**14, number * 1000)
            .when(f.abs(number) < 10**17, number)
            .otherwise(f.floor(number / 1000).cast("long"))
        )
        return f.timestamp_micros(micros)
    return column.cast("timestamp")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--from", dest="source", required=True, metavar="DIR_OR_JDBC_URL", help="the dump")
    parser.add_argument("--table", metavar="TABLE", help="of a database: its table, or a query in parentheses")
    parser.add_argument("--format", choices=FILE_FORMATS, help="what the files are (by their names)")
    parser.add_argument(
        "--time-column", default=DEFAULT_TIME_COLUMN, metavar="C", help=f"the time of a record ({DEFAULT_TIME_COLUMN})"
    )
    parser.add_argument("--key-column", metavar="C", help="the key of a record (none)")
    parser.add_argument("--value-column", metavar="C", help="the value of a record (the other columns as JSON)")
    parser.add_argument(
        "--reprocess", type=duration, metavar="DURATION", help="then find where the dump's last 3d begin"
    )
    parser.add_argument("-g", "--group", metavar="GROUP", help="and let this group begin there")
    parser.add_argument("-n", "--dry-run", action="store_true", help="only say what would happen")
    parser.add_argument("--force", action="store_true", help="send although something would be lost")
    add_common(parser)


def run(arguments: argparse.Namespace, console: Console) -> ExitCode:
    topic = one_topic(arguments)
    if arguments.group is not None and arguments.reprocess is None:
        raise UsageError("--group begins where --reprocess says", "give --reprocess, too")
    asyncio.run(require_topics(arguments, [topic]))
    rules = asyncio.run(rules_for(arguments, topic))
    if not arguments.source.startswith("jdbc:") and arguments.format is None:
        _format_of(arguments.source)
    with spark_of(arguments) as spark:
        dump = read_dump(spark, arguments.source, arguments.table, arguments.format)
        rows = to_records(
            dump,
            time_column=arguments.time_column,
            key_column=arguments.key_column,
            value_column=arguments.value_column,
        ).persist()
        outlook = look_ahead(rows, rules, console.now_ms())
        if not outlook.records:
            raise NotFoundError(f"{arguments.source} has no rows")
        missing = _times_missing(rows)
        if missing:
            raise CommandError(f"{missing:,} rows have no time in column {arguments.time_column}")
        show_outlook(outlook, topic, console)
        if arguments.dry_run or (outlook.losses and not arguments.force):
            return not_sent("bootstrap", outlook, console, dry_run=arguments.dry_run)
        progress = JobProgress(console, outlook.records)
        in_time = rows.orderBy("timestamp").coalesce(1)  # several tasks at once would mix early and late times
        summary = send(in_time, arguments.bootstrap, topic, outlook, progress, None)
        progress.clear()
    summary.job = "bootstrap"
    summary.details = {"topic": topic}
    if arguments.reprocess is not None:
        summary.details |= asyncio.run(_reprocess(arguments, topic, (outlook.last_ms or 0) - arguments.reprocess))
    show_summary(summary, console)
    return ExitCode.OK


def _times_missing(rows: "DataFrame") -> int:
    return int(rows.where("timestamp is null").count())


async def _reprocess(arguments: argparse.Namespace, topic: str, since_ms: int) -> dict[str, Any]:
    """Where the records from then on begin, how many there are, and the group put there."""
    from client.admin import Admin
    from client.cli.online.connecting import partitions_of
    from client.cli.online.lagging import targets
    from client.offsets import ends
    from client.types import LATEST

    async with connected(arguments) as client, Admin(client) as admin:
        places = await partitions_of(client, topic)
        found = await targets(client, places, since_ms)
        last = await ends(client, dict.fromkeys(places, LATEST))
        begin: Mapping[TopicPartition, int] = {place: offset for place, (offset, _) in found.items()}
        if arguments.group is not None:
            await admin.alter_group_offsets(arguments.group, begin)
    return {
        "reprocess_since_ms": since_ms,
        "reprocess_offsets": {str(place.partition): offset for place, offset in begin.items()},
        "reprocess_records": sum(last[place] - offset for place, offset in begin.items()),
        "group": arguments.group,
    }
