"""`horolog restore`: writes a moment of a backup as a data folder."""

from __future__ import annotations

import argparse

from horolog.commands.arguments import add_output, add_zone, describe
from horolog.commands.console import Console
from horolog.commands.errors import UsageError
from horolog.commands.exit_codes import ExitCode


def configure(parser: argparse.ArgumentParser) -> None:
    text = (
        "Write the newest moment of the backup at URL, or the newest one up to --at, into the empty folder DIR. Start a broker"
        " on it: clients find topics, records with their offsets and times, committed offsets, transactions, users and settings"
        " as they were at that moment. Every batch is read and verified. To continue an interrupted restore, run the same"
        " command again.\n\n"
        "With --check, the command opens the copy in a temporary folder, compares checksums and offsets, and removes the folder"
        " at the end.\n\n"
        "exit codes: 0 everything is restored, 3 something is missing or damaged, 4 there is no such moment or topic, 1 the"
        " restore failed"
    )
    describe(
        parser,
        text,
        "horolog restore --from s3://bucket/backup --data /var/lib/horolog",
        "horolog restore --from s3://bucket/backup --at 'yesterday 10:05' --data /tmp/then --topics orders,payments",
        "horolog restore --from s3://bucket/backup --check",
    )
    parser.add_argument(
        "--from",
        dest="url",
        required=True,
        metavar="URL",
        help="s3://BUCKET/PREFIX, gs://, az://, file:///FOLDER or /FOLDER",
    )
    parser.add_argument("--endpoint", default="", metavar="URL", help="an S3 server other than Amazon's")
    parser.add_argument("--at", metavar="TIME", help="the newest moment up to this time (default: the newest one)")
    parser.add_argument(
        "--data",
        metavar="DIR",
        help="an empty folder, created if it does not exist; with --check, the parent of the temporary folder",
    )
    parser.add_argument("--topics", metavar="NAMES", help="only these topics, separated by commas, and internal topics")
    parser.add_argument(
        "--check", action="store_true", help="restore into a temporary folder, report, and remove the folder"
    )
    add_output(parser)
    add_zone(parser)


def run(arguments: argparse.Namespace, console: Console) -> ExitCode:
    from horolog.client.cli.backing_up import restored

    at = None if arguments.at is None else console.time(arguments.at, "--at")
    if not (arguments.data or arguments.check):
        raise UsageError("--data names the folder to restore to; --check needs none")
    if at is not None:
        console.note(f"--at is {at.understood}")
    return restored.run(arguments, None if at is None else at.ms, console)
