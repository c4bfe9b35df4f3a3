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
        "Copy a broker's data folders to an object store, or to a folder on another disk. `horolog restore` "
        "writes them back.",
        "horolog backup run /var/lib/horolog s3://bucket/backup",
        "horolog backup list s3://bucket/backup",
    )
    run_it = actions.add_parser("run", help="copy the changes since the last run, as a moment that can be restored")
    text = (
        "Copy the changes in the data folders DIR since the last run to URL, as a moment that can be restored: records with"
        " their offsets and times, committed offsets of groups, transactions, topics with their ids and settings, users, ACLs"
        " and quotas. The broker may be running, and the folders are not changed. To continue an interrupted run, run the same"
        " command again.\n\n"
        "The backup keeps all moments of the last hour, one for every ten minutes of the last day, and one for every hour before"
        " that, up to --history."
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
        "--rate", type=whole_number, default=0, metavar="BYTES", help="maximum bytes per second (default: unlimited)"
    )
    _configure_looks(actions)
    for one in actions.choices.values():
        add_output(one)
        add_zone(one)


def _configure_looks(actions: Any) -> None:
    listing = actions.add_parser("list", help="show the moments that can be restored")
    text = (
        "Show the moments at URL, newest first. EXACT shows whether the folders stayed unchanged while they were read."
    )
    describe(listing, text, "horolog backup list s3://bucket/backup")
    check = actions.add_parser(
        "verify", help="read the objects of a backup, and report those that are missing or damaged"
    )
    text = (
        "Read all objects of the newest moment at URL, and compare every piece with its checksum. `horolog "
        "restore --check` goes further: it opens the copy as a broker does.\n\nexit codes: 0 nothing is "
        "missing or damaged, 3 something is, 1 the store cannot be read, 4 there is no moment"
    )
    describe(check, text, "horolog backup verify s3://bucket/backup", "horolog backup verify s3://bucket/backup --all")
    check.add_argument("--all", action="store_true", help="verify all moments (default: the newest one)")
    for one in (listing, check):
        _add_place(one)


def _add_place(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("url", metavar="URL", help="s3://BUCKET/PREFIX, gs://, az://, file:///FOLDER or /FOLDER")
    parser.add_argument("--endpoint", default="", metavar="URL", help="an S3 server other than Amazon's")


def run(arguments: argparse.Namespace, console: Console) -> ExitCode:
    from horolog.client.cli.backing_up import rounds, shown

    actions = {"run": rounds.run, "list": shown.show_moments, "verify": shown.run_verify}
    return actions[arguments.action](arguments, console)
