"""`horolog pipeline JOB`: the jobs on Spark as commands."""

import argparse
from collections.abc import Coroutine
from importlib import import_module
from typing import Any, NamedTuple

from horolog.commands.arguments import Parser, add_output, add_zone, describe
from horolog.commands.console import Console
from horolog.commands.exit_codes import ExitCode


class Job(NamedTuple):
    name: str
    sentence: str
    examples: tuple[str, ...]

    @property
    def module(self) -> str:
        return f"horolog.pipeline.jobs.{self.name}"


JOBS = (
    Job(
        "archive",
        "add new records of topics to a table partitioned by event date, exactly once",
        (
            "horolog pipeline archive --topic logs --to /data/logs",
            "horolog pipeline archive --topic logs --to /data/logs --format delta --since 7d --compact",
            "horolog pipeline archive --topic logs --to /data/logs --follow --every 5m",
        ),
    ),
    Job(
        "expire",
        "remove old dates and old versions from a table",
        (
            "horolog pipeline expire --to /data/logs --older-than 90d --dry-run",
            "horolog pipeline expire --to /data/logs --format delta --older-than 90d --keep-versions 30d",
        ),
    ),
    Job(
        "vacuum",
        "delete files in the folder of a table that no version of it needs",
        (
            "horolog pipeline vacuum --to /data/logs --dry-run",
            "horolog pipeline vacuum --to /data/logs --format iceberg --older-than 14d",
        ),
    ),
    Job(
        "replay",
        "send the records of an archive or of segment files to a topic, with their own times",
        (
            "horolog pipeline replay --from /data/logs --topic again --since 3d --dry-run",
            "horolog pipeline replay --from /data/logs --topic again --rate 5000",
        ),
    ),
    Job(
        "bootstrap",
        "load a dump into a topic with its own times, and start a group at its last days",
        (
            "horolog pipeline bootstrap --from dump/ --topic orders --time-column created --key-column id",
            "horolog pipeline bootstrap --from jdbc:postgresql://db/shop --table orders --topic orders --reprocess 3d --group billing",
        ),
    ),
    Job(
        "mirror",
        "copy a topic to another cluster with its times, and move its groups there",
        (
            "horolog pipeline mirror --from old:9092 --to new:9092 --topic orders --group billing",
            "horolog pipeline mirror --from old:9092 --to new:9092 --topic orders --since 7d --follow",
        ),
    ),
    Job(
        "lag",
        "show how far a group is behind, in records and time, and when it will have caught up",
        ("horolog pipeline lag --group billing", "horolog pipeline lag --group billing --topic orders --alert 5m"),
    ),
    Job(
        "profile",
        "show how out of order a topic's times are: lateness, future and missing times, gaps, records per hour",
        (
            "horolog pipeline profile --topic logs --since 3d",
            "horolog pipeline profile --topic logs --png lateness.png",
        ),
    ),
    Job(
        "pack",
        "pack everything that Python on Spark's workers needs into one archive",
        ("horolog pipeline pack --to horolog-pack.tar.gz",),
    ),
)


def configure(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Run jobs on Spark: archives, replays, mirrors and reports. They need the extra `pipeline`: pip "
        "install 'horolog[pipeline]'.",
        *(job.examples[0] for job in JOBS),
    )
    choices = parser.add_subparsers(dest="action", metavar="JOB", required=True, parser_class=Parser)
    for job in JOBS:
        own = choices.add_parser(job.name, help=job.sentence)
        describe(own, job.sentence[0].upper() + job.sentence[1:] + ".", *job.examples)
        import_module(job.module).add_arguments(own)
        add_zone(own)
        add_output(own)


def run(arguments: argparse.Namespace, console: Console) -> ExitCode | Coroutine[Any, Any, ExitCode]:
    (job,) = (each for each in JOBS if each.name == arguments.action)
    result: ExitCode | Coroutine[Any, Any, ExitCode] = import_module(job.module).run(arguments, console)
    return result
