"""`horolog pipeline expire`: removes whole old dates from a table, and old versions of it.

The table keeps its offsets, so `archive` continues where it was.
"""

import argparse
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from horolog.commands.arguments import duration
from horolog.commands.console import Console
from horolog.commands.errors import UsageError
from horolog.commands.exit_codes import ExitCode
from horolog.pipeline.jobs.at_table import add_table, change_table, changing, past_ms
from horolog.pipeline.jobs.common import Summary
from horolog.pipeline.tables.table import Table
from horolog.pipeline.tables.upkeep import first_kept

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from horolog.pipeline.tables.catalogues import CatalogueTable


def expire(
    spark: "SparkSession",
    to: "str | CatalogueTable",
    *,
    older_than_ms: int | None = None,
    versions_before_ms: int | None = None,
    table_format: str = "parquet",
    checkpoint: str | None = None,
    dry_run: bool = False,
    wait_ms: int = 0,
    tell: Callable[[str], None] = lambda _: None,
) -> Summary:
    """Remove dates that end before `older_than_ms`, and versions made before `versions_before_ms`; LockHeld if the table is in use."""
    began = time.monotonic()
    with changing(spark, to, table_format, checkpoint, wait_ms, tell, dry_run=dry_run) as table:
        summary = _expired(table, older_than_ms, versions_before_ms, dry_run=dry_run)
    summary.seconds = time.monotonic() - began
    return summary


def _expired(table: Table, older_than_ms: int | None, versions_before_ms: int | None, *, dry_run: bool) -> Summary:
    summary = Summary("expire", details={"files": 0, "dates": [], "versions": 0})
    if older_than_ms is not None:
        gone = table.expire(first_kept(table.folders(), older_than_ms), dry_run=dry_run)
        summary.records, summary.bytes = gone.records, gone.size_bytes
        summary.details |= {"files": gone.files, "dates": list(gone.dates)}
    if versions_before_ms is not None:
        summary.details["versions"] = table.forget_versions(versions_before_ms, dry_run=dry_run)
    return summary


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--older-than", metavar="TIME", help="remove dates that end before this: 90d, 2026-01-01")
    parser.add_argument(
        "--keep-versions",
        type=duration,
        metavar="DURATION",
        help="remove older commits, versions or snapshots (default: keep all)",
    )
    add_table(parser)


def run(arguments: argparse.Namespace, console: Console) -> ExitCode:
    if arguments.older_than is None and arguments.keep_versions is None:
        raise UsageError("give --older-than or --keep-versions")
    older_than_ms = None if arguments.older_than is None else past_ms(arguments.older_than, "--older-than", console)
    kept_ms = arguments.keep_versions
    versions_before_ms = None if kept_ms is None else console.now_ms() - kept_ms
    return change_table(arguments, console, expire, older_than_ms=older_than_ms, versions_before_ms=versions_before_ms)
