"""`horolog pipeline vacuum`: files in a table's folder that no version of it names are deleted, once they are old enough.

A job that writes a step has files that no commit names yet. The minimum age protects them, and so does the table's lock, which this
job takes, too.
"""

import argparse
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from horolog.commands.console import Console
from horolog.commands.errors import UsageError
from horolog.commands.exit_codes import ExitCode
from horolog.pipeline.jobs.at_table import add_table, change_table, changing, past_ms
from horolog.pipeline.jobs.common import Summary

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from horolog.pipeline.tables.catalogues import CatalogueTable

KEPT = "7d"
KEPT_MS = 7 * 86_400_000
"""Delta's default: no job takes that long for a step."""


def vacuum(
    spark: "SparkSession",
    to: "str | CatalogueTable",
    *,
    before_ms: int | None = None,
    table_format: str = "parquet",
    checkpoint: str | None = None,
    dry_run: bool = False,
    wait_ms: int = 0,
    tell: Callable[[str], None] = lambda _: None,
) -> Summary:
    """Delete files that no version names and that have not changed since `before_ms` (seven days ago); LockHeld if the table is in use."""
    began = time.monotonic()
    if before_ms is None:
        before_ms = time.time_ns() // 1_000_000 - KEPT_MS
    with changing(spark, to, table_format, checkpoint, wait_ms, tell, dry_run=dry_run) as table:
        gone = table.vacuum(before_ms, dry_run=dry_run)
    details = {"files": gone.files, "dates": list(gone.dates)}
    return Summary("vacuum", bytes=gone.size_bytes, seconds=time.monotonic() - began, details=details)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--older-than",
        default=KEPT,
        metavar="TIME",
        help=f"delete files that have not changed since then (default: {KEPT})",
    )
    parser.add_argument(
        "--force",
        action="store_true",
        help=f"also delete files younger than {KEPT}; use it only if nothing else writes to the table",
    )
    add_table(parser)


def run(arguments: argparse.Namespace, console: Console) -> ExitCode:
    before_ms = past_ms(arguments.older_than, "--older-than", console)
    if before_ms > console.now_ms() - KEPT_MS + 60_000 and not arguments.force:
        raise UsageError(
            f"--older-than: files younger than {KEPT} may belong to a job that is still writing them",
            "use --force if no job is running",
        )
    return change_table(arguments, console, vacuum, before_ms=before_ms)
