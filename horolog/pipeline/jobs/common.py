"""What jobs share: their arguments, the Spark session, progress while they run and the summary at their end."""

import argparse
import os
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from horolog.base.readable import counted
from horolog.commands.console import Console, is_terminal
from horolog.commands.errors import CommandError, UsageError
from horolog.commands.online.connecting import add_connection, connected, partitions_of
from horolog.pipeline.options.brokers import Brokers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from horolog.pipeline.tables.catalogues import CatalogueTable

DEFAULT_MASTER = "local[*]"
REDRAW_SECONDS = 0.2
LINE_SECONDS = 5.0
"""Between lines that stay."""
QUIET = Path(__file__).with_name("quiet.properties").as_uri()
NEEDED = ("pyspark", "pyarrow", "pandas")


# -- arguments


def add_common(parser: argparse.ArgumentParser, *, topics: bool = True) -> None:
    """What every job takes: the broker, topics, and where Spark runs."""
    if topics:
        parser.add_argument("-t", "--topic", action="append", default=[], metavar="TOPIC", help="a topic; repeatable")
    add_spark(parser)
    parser.add_argument(
        "--progress",
        action="store_true",
        help=f"show progress without a terminal too: a line on standard error every {LINE_SECONDS:.0f} s",
    )
    add_connection(parser)


def add_spark(parser: argparse.ArgumentParser) -> None:
    """Where Spark runs, and its settings."""
    parser.add_argument(
        "--master",
        metavar="URL",
        help=f"where Spark runs: local[4], spark://host:7077 (default: {DEFAULT_MASTER}, or what spark-submit says)",
    )
    parser.add_argument(
        "--conf", action="append", default=[], metavar="KEY=VALUE", help="a setting of Spark; repeatable"
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="start in half the time, but compute more slowly: for small jobs (Java runs without its second compiler)",
    )


def brokers_of(arguments: argparse.Namespace) -> Brokers:
    return Brokers(arguments.bootstrap, arguments.security)


def add_range(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--since", metavar="TIME", help="start at the first record at or after this time (default: the beginning)"
    )
    parser.add_argument(
        "--until", metavar="TIME", help="end before the first record at or after this time (default: the end)"
    )


def times_of(arguments: argparse.Namespace, console: Console) -> tuple[int | None, int | None]:
    """`--since` and `--until` in milliseconds; says how they were understood."""
    times = console.range(arguments.since, arguments.until)
    return times.since_ms, times.until_ms


def add_catalogue(parser: argparse.ArgumentParser) -> None:
    """A table of Iceberg by its name, in place of a folder."""
    parser.add_argument(
        "--catalog",
        metavar="NAME",
        help="an Iceberg catalogue: rest, sql, glue, or a section of .pyiceberg.yaml (default: SQLite in the table's folder)",
    )
    parser.add_argument("--table", metavar="NAMESPACE.NAME", help="the table's name in the catalogue")
    parser.add_argument(
        "--catalog-set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a property of the catalogue, under its name in pyiceberg: uri=..., warehouse=...; repeatable",
    )


def catalogue_table(arguments: argparse.Namespace, location: str | None = None) -> "CatalogueTable | None":
    """The table that is named; None if none is."""
    from horolog.commands.online.actions import assignments
    from horolog.pipeline.tables.catalogues import CatalogueTable
    from horolog.pipeline.tables.table import TableError

    if arguments.catalog is None:
        if arguments.table is not None or arguments.catalog_set:
            raise UsageError("--table and --catalog-set are for tables in a catalogue", "give --catalog, too")
        return None
    if arguments.table is None:
        raise UsageError(f"the catalogue {arguments.catalog} has many tables", "choose one with --table NAMESPACE.NAME")
    try:
        return CatalogueTable(arguments.catalog, arguments.table, assignments(arguments.catalog_set), location)
    except TableError as error:
        raise UsageError(str(error)) from error


def one_topic(arguments: argparse.Namespace) -> str:
    if len(arguments.topic) != 1:
        raise UsageError(f"give one --topic, not {len(arguments.topic)}")
    return str(arguments.topic[0])


# -- Spark


@contextmanager
def spark_of(arguments: argparse.Namespace) -> Iterator["SparkSession"]:
    """A session as the arguments say; a running one is used and left running."""
    import importlib.util

    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise CommandError(f"{', '.join(missing)} is not installed", "install it: pip install 'horolog[pipeline]'")
    from py4j.protocol import Py4JError, Py4JJavaError
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    from horolog.commands.online.actions import assignments
    from horolog.pipeline.spark.spark_session import session
    from horolog.pipeline.spark.spark_versions import UnsupportedSparkError, require_data_sources

    try:
        require_data_sources()
    except UnsupportedSparkError as error:
        raise CommandError(str(error), "pip install 'horolog[pipeline]' installs one") from error
    running = SparkSession.getActiveSession()
    try:
        if running is not None:
            yield running
            return
        conf: dict[str, Any] = {"spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={QUIET}"}
        conf |= {"spark.log.level": "ERROR", **assignments(arguments.conf)}
        spark = session(arguments.master or _default_master(), "horolog pipeline", quick=arguments.quick, **conf)
        try:
            yield spark
        finally:
            with suppress(OSError, Py4JError):  # a signal to all processes of a service may have ended it with us
                spark.stop()
    except (PySparkException, Py4JJavaError) as error:  # what Java's side of a task raises is not one of Spark's own
        raise CommandError(f"Spark failed: {_cause(str(error))}") from error


def _default_master() -> str | None:
    """None within spark-submit, which has opened this port for its program and knows where it runs."""
    return None if "PYSPARK_GATEWAY_PORT" in os.environ else DEFAULT_MASTER


def _cause(text: str) -> str:
    """The error of a worker, of Java or of Spark, which adds a prefix, the traceback of an unexpected error, and a plan or the line of a call."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not _NO_REASON.match(line)]
    own = [found[1] for line in lines if (found := _OWN_ERROR.search(line))]
    java = [line.removeprefix(_CAUSED) for line in lines if line.startswith(_CAUSED)]
    named = [line for line in lines if _ERROR_LINE.match(line)]
    condition = [found[1] for line in lines if (found := _CONDITION.search(line))][:1]
    return (own or java or named or condition or lines or ["the reason is unknown"])[-1]


_CAUSED = "Caused by: "
_NO_REASON = re.compile(r"\s*(SQLSTATE: \w+\s*$|at [\w.$/]+\(|\.\.\. \d+ (common frames|more))")
_OWN_ERROR = re.compile(r"(?:^|: )(horolog\.[\w.]+: .*)")
_CONDITION = re.compile(r"(?:^|: )(\[[A-Z][A-Z0-9_.]*\] .*?)(?:\s*SQLSTATE: \w+.*)?$")
"""A sentence of Spark's own: `[CONDITION] What has happened. SQLSTATE: 22018`."""
_ERROR_LINE = re.compile(r"[A-Za-z_][\w.]*(Error|Exception|Failed|Refused|TimedOut|DataLoss)\b.*:")


async def require_topics(arguments: argparse.Namespace, topics: Iterable[str]) -> None:
    """Name the fault of the broker or a topic before Spark starts, in one sentence."""
    async with connected(arguments) as client:
        for topic in topics:
            await partitions_of(client, topic)


# -- progress


class JobProgress:
    """Records, bytes, position in time, rate and remaining time, on standard error.

    At a terminal it is one line that is redrawn; elsewhere, on request, one line after another.
    """

    def __init__(self, console: Console, total_records: int | None, *, in_lines: bool = False) -> None:
        self._console = console
        self._redrawn = is_terminal(console.err)
        self._in_lines = in_lines and not self._redrawn
        self._total = total_records
        self._began = time.monotonic()
        self._drawn_at = 0.0
        self.records = 0
        self.size_bytes = 0
        self.time_ms: int | None = None

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    def advance(self, records: int, size_bytes: int = 0, time_ms: int | None = None) -> None:
        self.records += records
        self.size_bytes += size_bytes
        self.time_ms = time_ms if time_ms is not None else self.time_ms
        now = time.monotonic()
        if self._redrawn and now - self._drawn_at >= REDRAW_SECONDS:
            self._drawn_at = now
            self._console.err.write(f"\r\x1b[K{self._line()[: self._console.width - 1]}")
            self._console.err.flush()
        elif self._in_lines and now - max(self._drawn_at, self._began) >= LINE_SECONDS:
            self._drawn_at = now
            self._console.err.write(f"{self._line()}\n")
            self._console.err.flush()

    def _line(self) -> str:
        position = "" if self.time_ms is None else self._console.show_time(self.time_ms)
        return progress_line(self.records, self.size_bytes, self._total, position, self.seconds)

    def clear(self) -> None:
        if self._redrawn and self._drawn_at:
            self._console.err.write("\r\x1b[K")
            self._console.err.flush()
            self._drawn_at = 0.0


def progress_of(arguments: argparse.Namespace, console: Console, total_records: int | None) -> JobProgress:
    return JobProgress(console, total_records, in_lines=arguments.progress)


def progress_line(records: int, size_bytes: int, total: int | None, position: str, seconds: float) -> str:
    """What the line says; pure."""
    rate = records / seconds if seconds > 0 else 0.0
    parts = [counted(records, "record") if total is None else f"{records:,} of {total:,} records"]
    if total:
        parts.append(f"{100 * records // total} %")
    parts.append(f"{size_bytes / 1e6:,.1f} MB")
    if position:
        parts.append(f"at {position}")
    parts.append(f"{rate:,.0f}/s")
    if total is not None and rate > 0 and records < total:
        parts.append(f"{(total - records) / rate:,.0f} s left")
    return "  ".join(parts)


# -- the end


@dataclass(slots=True)
class Summary:
    """What a job did: its last output, and its JSON."""

    job: str
    records: int = 0
    bytes: int = 0
    seconds: float = 0.0
    details: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        found = asdict(self)
        details = found.pop("details")
        found["seconds"] = round(self.seconds, 3)
        return found | details


def show_summary(summary: Summary, console: Console) -> None:
    """JSON is one line, the last: schedulers read it, and a file of such lines grows by a line for each run."""
    if console.as_json:
        console.json_line(summary.as_json())
        return
    rate = summary.records / summary.seconds if summary.seconds else 0.0
    console.print(
        f"{summary.job}: {counted(summary.records, 'record')}, {summary.bytes / 1e6:,.1f} MB in {summary.seconds:.1f} s ({rate:,.0f}/s)"
    )
    for name, value in summary.details.items():
        console.print(f"  {name.replace('_', ' ')}: {value}")
