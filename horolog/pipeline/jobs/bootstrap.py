"""`horolog pipeline bootstrap`: a whole dump, from files or a database, becomes a topic with the dump's own times.

The dump is a folder of Parquet, JSON, CSV or ORC files, here or in an object store, or a table behind a JDBC URL (`--table`; the driver's jar with
`--conf spark.jars=...`). A record's value is the row as JSON, or the column that `--value-column` names; its time is the column of
`--time-column`. Afterwards `--reprocess 3d` finds where the last three days of the dump begin, and with `--group` lets a group begin there.
"""

import argparse
import asyncio
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from horolog.commands.arguments import duration
from horolog.commands.console import Console
from horolog.commands.errors import CommandError, NotFoundError, UsageError
from horolog.commands.exit_codes import ExitCode
from horolog.commands.online.connecting import admin_of
from horolog.pipeline.jobs.at_table import in_store, known_as, told
from horolog.pipeline.jobs.common import (
    Summary,
    add_common,
    brokers_of,
    one_topic,
    require_topics,
    show_summary,
    spark_of,
)
from horolog.pipeline.jobs.dump_files import (
    FILE_FORMATS,
    STRICT,
    Rows,
    SparkRows,
    WholeRows,
    format_among,
    is_data_file,
    rows_at,
)
from horolog.pipeline.jobs.dump_pieces import RowsPiece, is_one_piece, pieces_of, unsent
from horolog.pipeline.jobs.lanes import Lanes, noted_of
from horolog.pipeline.jobs.loading import (
    Load,
    Settings,
    Share,
    add_sending,
    carry_out,
    not_sent,
    refuse_losses,
    settings_of,
)
from horolog.pipeline.jobs.topic_rules import TopicRules, outlook_of, rules_at
from horolog.pipeline.options.brokers import Where
from horolog.pipeline.stores.object_stores import Place, hadoop_options, is_url

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from horolog.client.values.types import TopicPartition

DEFAULT_TIME_COLUMN = "timestamp"


def read_dump(spark: "SparkSession", source: str, table: str | None, file_format: str | None) -> Rows:
    if source.startswith("jdbc:"):
        if table is None:
            raise UsageError("a database has many tables", "choose one with --table, or give a query in parentheses")
        return WholeRows(spark.read.format("jdbc").option("url", source).option("dbtable", table).load())
    if in_store(source):
        return rows_at(spark, Place.of(source, hadoop_options(spark, source)), file_format)
    kind = file_format or _format_of(source)
    reader = spark.read.format(kind).options(**STRICT.get(kind, {}))
    if not is_url(source) and _has_folders(Path(source.removeprefix("file://")), source):
        reader = reader.option("recursiveFileLookup", "true")
    return SparkRows(reader.load(source))


def _has_folders(folder: Path, source: str) -> bool:
    """Whether files lie in subfolders, which Spark does not read by itself; UsageError if it would leave out a part all the same."""
    files = [path.relative_to(folder) for path in sorted(folder.rglob("*")) if path.is_file()]
    data = [path for path in files if is_data_file(path.as_posix())]
    plain = [path for path in data if not any("=" in part for part in path.parent.parts)]
    if plain and len(plain) < len(data):
        raise UsageError(
            f"{source} has columns in the names of some folders, and {plain[0]} outside them",
            "load them separately",
        )
    return any(len(path.parts) > 1 for path in plain)


def _format_of(source: str) -> str:
    if is_url(source):
        raise UsageError(f"the format of {source} is unknown", f"give it with --format: {', '.join(FILE_FORMATS)}")
    path = Path(source.removeprefix("file://"))
    if not path.exists():
        raise NotFoundError(f"there is no {source}")
    names = [path] if path.is_file() else sorted(path.rglob("*"))
    return format_among((name.name for name in names), source)


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


def _as_time(dump: "DataFrame", name: str, *, strict: bool = True) -> "Column":
    """Timestamps as they are, dates at midnight, text as ISO 8601; numbers by their size are seconds, milli-, micro- or nanoseconds.

    A value that is no time ends the job, or is null unless `strict`.
    """
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
    return column.cast("timestamp") if strict else column.try_cast("timestamp")


def _without_time(dump: "DataFrame", name: str, count: int) -> CommandError:
    """The error for rows without a time, with the value of one that has another value there."""
    from pyspark.sql import functions as f

    is_no_time = f.col(name).isNotNull() & _as_time(dump, name, strict=False).isNull()
    example = dump.where(is_no_time).select(f.col(name).cast("string")).head()
    shown = "" if example is None else f"; one of them has {example[0]!r}"
    return CommandError(f"{count:,} rows have no time in column {name}{shown}")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--from",
        dest="source",
        required=True,
        metavar="DIR|URL",
        help="the dump: files here or in a store, or jdbc:...",
    )
    parser.add_argument("--table", metavar="TABLE", help="for a database: the table, or a query in parentheses")
    parser.add_argument(
        "--format", choices=FILE_FORMATS, help="the format of the files (default: recognised by their names)"
    )
    parser.add_argument(
        "--time-column",
        default=DEFAULT_TIME_COLUMN,
        metavar="C",
        help=f"the column with the time of a record (default: {DEFAULT_TIME_COLUMN})",
    )
    parser.add_argument("--key-column", metavar="C", help="the column with the key of a record (default: none)")
    parser.add_argument(
        "--value-column", metavar="C", help="the column with the value of a record (default: the other columns as JSON)"
    )
    parser.add_argument(
        "--reprocess",
        type=duration,
        metavar="DURATION",
        help="find the offsets at which this last part of the dump begins: 3d",
    )
    parser.add_argument("-g", "--group", metavar="GROUP", help="start this group at those offsets")
    add_sending(parser)
    add_common(parser)


class Dump(NamedTuple):
    """The rows to load, and the role of each column."""

    source: str
    table: str | None = None
    file_format: str | None = None
    time_column: str = DEFAULT_TIME_COLUMN
    key_column: str | None = None
    value_column: str | None = None


def bootstrap(
    spark: "SparkSession",
    bootstrap: Where,
    source: str,
    topic: str,
    *,
    table: str | None = None,
    file_format: str | None = None,
    time_column: str = DEFAULT_TIME_COLUMN,
    key_column: str | None = None,
    value_column: str | None = None,
    settings: Settings | None = None,
) -> Summary:
    """Load a dump into the topic in the order of its times, by pieces; resumes where an earlier run ended.

    Raises `NotSent` if something would be lost.
    """
    chosen = settings or Settings()
    dump = Dump(source, table, file_format, time_column, key_column, value_column)
    made = prepare(spark, bootstrap, dump, topic, asyncio.run(rules_at(bootstrap, topic)), chosen)
    if not chosen.force:
        refuse_losses(made.outlook)
    return made.send(chosen)


def prepare(
    spark: "SparkSession", address: Where, dump: Dump, topic: str, rules: TopicRules, settings: Settings
) -> Load:
    """Look at the dump, at what was sent of it before, and at how the topic would treat it."""
    from horolog.pipeline.jobs.dump_rows import PiecedRows, look, rows_of_pieces, size_of, with_grains

    found = read_dump(spark, dump.source, dump.table, dump.file_format)
    rows = _records(found.all, dump)
    times = found.times(dump.time_column, _as_time(found.all, dump.time_column, strict=False))
    looked = look(times, rules, time.time_ns() // 1_000_000)
    counts = looked.counts
    if not counts.records:
        raise NotFoundError(f"{dump.source} has no rows")
    if looked.missing:
        raise _without_time(found.all, dump.time_column, looked.missing)
    counts = counts._replace(size_bytes=size_of(rows, counts.records, rules))
    lanes = Lanes.of(
        "bootstrap",
        (known_as(dump.source), *dump[1:], rules.topic_id),
        address,
        topic,
        rules.partitions,
        exactly_once=settings.exactly_once,
        note_records=settings.step_records,
    )
    settled = {"rows": counts.records, "of": looked.fingerprint}
    have = {} if settings.again else asyncio.run(noted_of(lanes, range(1)))
    sent_before = sum(each.sent for each in have.values())
    if have and have[0].begun.settled != settled:
        raise CommandError(
            f"{dump.source} has changed since {sent_before:,} rows of it were sent",
            "use --again to send all of it again",
        )
    units = looked.units if is_one_piece(counts.size_bytes) else with_grains(times, looked.units)
    pieces, before = pieces_of(units, counts.size_bytes / counts.records), 0
    if sent_before:
        pieces, before = unsent(pieces, rows_of_pieces(times, pieces), sent_before)

    def read(piece: RowsPiece) -> "DataFrame":
        return _records(found.all if piece.files is None else found.of(piece.files), dump)

    share = Share(PiecedRows(read, pieces, before, counts), lanes, range(1), settled, sent_before, counts.records)
    return Load("bootstrap", topic, dump.source, [share], outlook_of(counts, rules))


def _records(frame: "DataFrame", dump: Dump) -> "DataFrame":
    return to_records(frame, time_column=dump.time_column, key_column=dump.key_column, value_column=dump.value_column)


def run(arguments: argparse.Namespace, console: Console) -> ExitCode:
    topic = one_topic(arguments)
    if arguments.group is not None and arguments.reprocess is None:
        raise UsageError("--group needs --reprocess, which sets where it begins", "give --reprocess, too")
    asyncio.run(require_topics(arguments, [topic]))
    with told(arguments, topic):
        rules = asyncio.run(rules_at(brokers_of(arguments), topic))
    if not arguments.source.startswith("jdbc:") and not in_store(arguments.source) and arguments.format is None:
        _format_of(arguments.source)
    dump = Dump(
        arguments.source,
        arguments.table,
        arguments.format,
        arguments.time_column,
        arguments.key_column,
        arguments.value_column,
    )
    with told(arguments, dump.source), spark_of(arguments) as spark:
        made = prepare(spark, brokers_of(arguments), dump, topic, rules, settings_of(arguments))
        summary = carry_out(made, arguments, console)
    if summary is None:
        return not_sent("bootstrap", made.outlook, console, dry_run=arguments.dry_run)
    if arguments.reprocess is not None:
        since_ms = (made.outlook.last_ms or 0) - arguments.reprocess
        summary.details |= asyncio.run(_reprocess(arguments, topic, since_ms))
    show_summary(summary, console)
    return ExitCode.OK


async def _reprocess(arguments: argparse.Namespace, topic: str, since_ms: int) -> dict[str, Any]:
    """Where the records from then on begin, how many there are, and the group put there."""
    from horolog.client.moments.lagging import targets
    from horolog.client.values.types import LATEST
    from horolog.client.wire.offsets import ends
    from horolog.commands.online.connecting import partitions_of

    async with admin_of(arguments) as admin:
        places = await partitions_of(admin.client, topic)
        found = await targets(admin.client, places, since_ms)
        last = await ends(admin.client, dict.fromkeys(places, LATEST))
        begin: Mapping[TopicPartition, int] = {place: offset for place, (offset, _) in found.items()}
        if arguments.group is not None:
            await admin.alter_group_offsets(arguments.group, begin)
    return {
        "reprocess_since_ms": since_ms,
        "reprocess_offsets": {str(place.partition): offset for place, offset in begin.items()},
        "reprocess_records": sum(last[place] - offset for place, offset in begin.items()),
        "group": arguments.group,
    }
