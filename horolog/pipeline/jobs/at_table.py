"""What jobs that work on a table or on files share: which table it is, and faults in the words of the command line."""

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from horolog.client.values.errors import KafkaError
from horolog.commands.arguments import duration
from horolog.commands.console import Console
from horolog.commands.errors import BusyError, CommandError, NotFoundError, UsageError
from horolog.commands.exit_codes import ExitCode
from horolog.commands.online.connecting import command_error
from horolog.pipeline.base.positions import DataLoss, OptionError
from horolog.pipeline.jobs.common import Summary, add_catalogue, add_spark, catalogue_table, show_summary, spark_of
from horolog.pipeline.stores.object_stores import Place, is_url
from horolog.pipeline.tables.lock import LockHeld, writing
from horolog.pipeline.tables.table import FORMATS, CommitLost, Table, TableError, open_table
from horolog.stores.faults import StoreError
from horolog.stores.place import SCHEMES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from horolog.pipeline.tables.catalogues import CatalogueTable


def add_table(parser: argparse.ArgumentParser) -> None:
    """For jobs that change an existing table, and need no broker."""
    parser.add_argument("--to", metavar="DIR|URL", help="the table's folder; or give --catalog")
    parser.add_argument(
        "--format", choices=FORMATS, help="the format of the table (default: parquet; iceberg with --catalog)"
    )
    add_catalogue(parser)
    parser.add_argument(
        "--checkpoint", metavar="DIR", help="where Parquet's log of commits is (default: in the table's folder)"
    )
    parser.add_argument(
        "--wait",
        type=duration,
        default="0ms",
        metavar="DURATION",
        help="how long to wait while another job writes to the table (default: do not wait, exit code 6)",
    )
    parser.add_argument("-n", "--dry-run", action="store_true", help="only show what would be removed")
    add_spark(parser)


def table_of(arguments: argparse.Namespace) -> "tuple[str, str | CatalogueTable]":
    """The kind of the table, and where it is."""
    named = catalogue_table(arguments, arguments.to)
    kind: str = arguments.format or ("parquet" if named is None else "iceberg")
    if named is not None and kind != "iceberg":
        raise UsageError(f"--catalog is for Iceberg tables, not for {kind}")
    if arguments.checkpoint and kind != "parquet":
        raise UsageError(f"--checkpoint is for parquet; {kind} keeps offsets in its own commits")
    if named is None and arguments.to is None:
        raise UsageError("give --to, or --catalog and --table")
    return kind, named or arguments.to


def existing_table(arguments: argparse.Namespace) -> "tuple[str, str | CatalogueTable]":
    """The same for a table that must exist; NotFoundError if its folder does not."""
    kind, to = table_of(arguments)
    if isinstance(to, str) and not is_url(to) and not Path(to.removeprefix("file://")).is_dir():
        raise NotFoundError(f"there is no folder {to}")
    return kind, to


def table_there(spark: "SparkSession", to: "str | CatalogueTable", table_format: str, checkpoint: str | None) -> Table:
    """A table that has commits; TableError if it was never written to."""
    table = open_table(table_format, to, spark, checkpoint)
    if not table.offsets():
        raise TableError(f"{to} is not a table of horolog yet")
    return table


@contextmanager
def changing(
    spark: "SparkSession",
    to: "str | CatalogueTable",
    table_format: str,
    checkpoint: str | None,
    wait_ms: int,
    tell: Callable[[str], None],
    *,
    dry_run: bool,
) -> Iterator[Table]:
    """A table that has commits, with its lock held; a dry run needs none."""
    table = table_there(spark, to, table_format, checkpoint)
    with nullcontext() if dry_run else writing(table, wait_ms, tell):
        yield table


def change_table(
    arguments: argparse.Namespace, console: Console, job: Callable[..., Summary], **own: object
) -> ExitCode:
    """Run a job on the table that the command line names, with its `own` arguments, and show what was removed."""
    kind, to = existing_table(arguments)
    with told(arguments, to), spark_of(arguments) as spark:
        summary = job(
            spark,
            to,
            table_format=kind,
            checkpoint=arguments.checkpoint,
            dry_run=arguments.dry_run,
            wait_ms=arguments.wait,
            tell=console.note,
            **own,
        )
    show_what_went(summary, console, dry_run=arguments.dry_run)
    return ExitCode.OK


def in_store(source: str) -> bool:
    """Whether it is the URL of an object store, which tasks read without a jar."""
    return is_url(source) and source.partition("://")[0] in SCHEMES


def known_as(source: "str | CatalogueTable") -> str:
    """What distinguishes this source of records from others, however it is spelt."""
    if not isinstance(source, str):
        return source.known_as
    if source.startswith("jdbc:") or (is_url(source) and not in_store(source)):
        return source
    return Place.of(source).canonical() if is_url(source) else str(Path(source.removeprefix("file://")).absolute())


def past_ms(text: str, option: str, console: Console) -> int:
    """A time in the past."""
    moment = console.time(text, option)
    if moment.ms > console.now_ms():
        raise UsageError(f"{option}: {moment.understood} is in the future")
    console.note(f"{option} is {moment.understood}")
    return moment.ms


@contextmanager
def told(arguments: argparse.Namespace, to: object) -> Iterator[None]:
    """Faults of tables, stores and brokers."""
    try:
        yield
    except LockHeld as error:
        raise BusyError(f"{to}: {error}; nothing was done", "use --wait to wait for it") from error
    except CommitLost as error:
        raise BusyError(f"{to}: {error}", "run it again") from error
    except OptionError as error:
        raise UsageError(str(error)) from error
    except (DataLoss, StoreError, TableError) as error:
        raise CommandError(str(error)) from error
    except KafkaError as error:
        raise command_error(error, arguments.bootstrap) from error


def show_what_went(summary: Summary, console: Console, *, dry_run: bool) -> None:
    summary.details["dry_run"] = dry_run
    show_summary(summary, console)
    if dry_run:
        console.note("nothing was changed (--dry-run)")
