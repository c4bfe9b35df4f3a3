"""`horolog backup`: copies of a broker's data folders in an object store or a folder: take one, list them, verify them."""

from __future__ import annotations

import argparse
from typing import Any

from horolog.commands.arguments import Parser, add_output, add_zone, describe, duration, whole_number
from horolog.commands.console import Console
from horolog.commands.exit_codes import ExitCode

_HISTORY_MS = 7 * 86_400_000


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, parser_class=Parser)
    describe(
        parser,
        "Copies of a broker's data folders in an object store, or in a folder of another disk. `horolog restore` writes them back.",
        "horolog backup run /var/lib/horolog s3://bucket/backup",
        "horolog backup list s3://bucket/backup",
    )
    run_it = actions.add_parser("run", help="copy all that is new since the last moment, and make the next one")
    text = (
        "Copy all that is new in the data folders DIR since the last run to URL, and make a moment of it: records with their offsets and"
        " times, positions of groups, transactions, topics with their ids and settings, users, ACLs and quotas. The broker may be"
        " running, and the folders are not changed. A run that was interrupted goes on when you run the same command again.\n\n"
        "All moments of the last hour are kept, one in ten minutes of the last day, and one an hour before that, up to --history."
    )
    describe(
        run_it,
        text,
        "horolog backup run /var/lib/horolog s3://bucket/backup",
        "horolog backup run /var/lib/horolog /mnt/backup --history 30d",
    )
    run_it.add_argument("data_folders", metavar="DIR", nargs="+", help="all folders of log.dirs")
    _add_place(run_it)
    run_it.add_argument(
        "--history",
        type=duration,
        default=_HISTORY_MS,
        metavar="DURATION",
        help="how long moments are kept (default: 7d)",
    )
    run_it.add_argument(
        "--rate", type=whole_number, default=0, metavar="BYTES", help="maximum bytes a second (default: unlimited)"
    )
    _configure_looks(actions)
    for one in actions.choices.values():
        add_output(one)
        add_zone(one)


def _configure_looks(actions: Any) -> None:
    listing = actions.add_parser("list", help="show the moments that can be restored")
    text = (
        "Show the moments at URL, the newest first. EXACT says whether nothing was written while the folders were read."
    )
    describe(listing, text, "horolog backup list s3://bucket/backup")
    check = actions.add_parser(
        "verify", help="read the objects of a backup, and report those that are missing or damaged"
    )
    text = (
        "Read all objects that the newest moment at URL names, and compare every piece with its checksum. `horolog restore --check`"
        " goes further: it opens the copy as a broker does.\n\n"
        "exit codes: 0 nothing is missing or damaged, 3 something is, 1 the store cannot be read, 4 there is no moment"
    )
    describe(check, text, "horolog backup verify s3://bucket/backup", "horolog backup verify s3://bucket/backup --all")
    check.add_argument("--all", action="store_true", help="verify all moments, and not the newest one only")
    for one in (listing, check):
        _add_place(one)


def _add_place(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("url", metavar="URL", help="s3://BUCKET/PREFIX, gs://, az://, file:///FOLDER or /FOLDER")
    parser.add_argument("--endpoint", default="", metavar="URL", help="an S3 server other than Amazon's")


def run(arguments: argparse.Namespace, console: Console) -> ExitCode:
    from horolog.client.cli.backing_up import rounds, shown

    actions = {"run": rounds.run, "list": shown.show_moments, "verify": shown.run_verify}
    return actions[arguments.action](arguments, console)
