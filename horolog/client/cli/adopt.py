"""`horolog adopt`: shows what a start on a folder of Kafka or horolog finds there, and gives settings to topics without any."""

import argparse
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from horolog.base.readable import counted
from horolog.commands.arguments import add_broker_settings, add_output, add_zone, describe
from horolog.commands.console import Console
from horolog.commands.errors import CommandError, NotFoundError, UsageError
from horolog.commands.exit_codes import ExitCode

if TYPE_CHECKING:  # reading files is imported when files are read
    from horolog.broker.adoption.given import GivenSettings
    from horolog.broker.config.settings import Settings


def configure(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Show what the broker will find in these data folders: topics, their settings and the source of each, what retention\nwould delete within an hour, and what cannot be read. Then take over the folders for the next start.\nWith --dry-run nothing is written. Nothing is deleted from topics with unknown settings until you set them.\nGive --config and --set as to `horolog serve`: they apply to topics without settings of their own.\n\nexit codes: 0 all settings are known and nothing is deleted, 3 settings are unknown, or records would be deleted or\ncannot be read",
        "horolog adopt /var/lib/kafka/data --dry-run",
        "horolog adopt /var/lib/kafka/data --config server.properties --dry-run -o json",
        "kafka-configs.sh --zookeeper localhost --entity-type topics --describe > settings.txt",
        "horolog adopt /var/lib/kafka/data --settings settings.txt",
    )
    parser.add_argument("data_folders", metavar="DIR", nargs="+", help="all folders of log.dirs")
    parser.add_argument("-n", "--dry-run", action="store_true", help="write nothing; a broker may be running")
    parser.add_argument(
        "--settings",
        type=Path,
        metavar="FILE",
        help="settings of topics: output of kafka-configs.sh --describe, or JSON",
    )
    add_broker_settings(parser)
    add_output(parser)
    add_zone(parser)


def run(arguments: argparse.Namespace, console: Console) -> ExitCode:
    from horolog.broker.adoption.giving import RefusedSettings
    from horolog.broker.config.setting_types import SettingsError
    from horolog.broker.log.storage import DataFolderError, FolderInUse, OverlayStorage, ReadOnlyStorage, StorageFault
    from horolog.client.cli.examining import adopting

    folders = [one.rstrip("/") or "/" for one in arguments.data_folders]
    _check_folders(folders, console, dry_run=arguments.dry_run)
    settings = broker_settings(arguments, folders[0], console)
    given = _given(arguments.settings) if arguments.settings is not None else {}
    try:
        stored, taken = adopting.plan(OverlayStorage(ReadOnlyStorage()), folders, given, settings)
        running = adopting.with_dynamic(settings, taken)
        found = adopting.examine(folders, taken, running, console.now_ms())
        document = adopting.document(folders, taken, stored, found, running)
        if not arguments.dry_run:
            adopting.carry_out(folders, given, settings)
    except RefusedSettings as error:
        raise UsageError(f"{arguments.settings}: {error}") from error
    except FolderInUse as error:
        raise CommandError(f"a broker runs on {folders}: {error}", "stop it, or add --dry-run") from error
    except (DataFolderError, StorageFault, SettingsError) as error:
        raise CommandError(f"{', '.join(folders)}: {error}") from error
    document = {"dry_run": arguments.dry_run, **document}
    if console.as_json:
        console.json(document)
    else:
        _show(document, console)
    summary = document["summary"]
    return ExitCode.ALERT if any(summary[key] for key in summary if key != "topics") else ExitCode.OK


def _check_folders(folders: list[str], console: Console, *, dry_run: bool) -> None:
    from horolog.broker.log.storage import ReadOnlyStorage
    from horolog.client.cli.examining.folder_check import is_in_use
    from horolog.client.cli.examining.given_folders import check_given

    storage = ReadOnlyStorage()
    for folder in folders:
        check_given(storage, [folder])
        if is_in_use(folder):
            if not dry_run:
                raise CommandError(f"{folder} is in use by a running broker", "stop it, or add --dry-run")
            console.note(f"a broker runs on {folder}: records that it is writing now may be missing here")


def broker_settings(arguments: argparse.Namespace, folder: str, console: Console) -> "Settings":
    """The settings that `serve` would have; the broker's id comes from the folder unless an argument gives it."""
    from horolog.broker.config.setting_types import SettingsError
    from horolog.broker.config.settings import load
    from horolog.broker.log.storage import ReadOnlyStorage
    from horolog.client.cli.examining.adopting import node_id_of

    flags: dict[str, str] = {}
    for text in arguments.assigned:
        key, equals, value = text.partition("=")
        if not (key.strip() and equals):
            raise UsageError(f"--set {text!r} is not KEY=VALUE")
        flags[key.strip()] = value
    try:
        settings, _ = load(arguments.config, console.environ, flags)
        node_id = node_id_of(ReadOnlyStorage(), folder)
        if node_id is not None and not (settings.is_set("node.id") or settings.is_set("broker.id")):
            settings, _ = load(arguments.config, console.environ, {**flags, "node.id": str(node_id)})
    except SettingsError as error:
        raise UsageError(str(error)) from error
    return settings


def _given(path: Path) -> "dict[str, GivenSettings]":
    from horolog.broker.adoption.given import GivenError, parse

    try:
        return parse(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise NotFoundError(f"there is no file {path}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{path} cannot be read: {error}") from error
    except GivenError as error:
        raise UsageError(f"{path}: {error}") from error


def _show(document: dict[str, Any], console: Console) -> None:
    rows = [_row(topic, console) for topic in document["topics"]]
    if rows:
        headings = [
            "TOPIC",
            "PARTITIONS",
            "BYTES",
            "LATEST TIME",
            "POLICY",
            "KEPT FOR",
            "SETTINGS FROM",
            "EXPIRES SOON",
        ]
        console.table(headings, rows)
    for topic in document["topics"]:
        _show_topic(topic, console)
    for renaming in document["renamings"]:
        verb = "would become" if document["dry_run"] else "is now"
        console.print(f"{renaming['folder']} {verb} {renaming['new_name']}: {renaming['reason']}")
    if document["absent"]:
        console.print(f"without a folder here, and not created: {', '.join(document['absent'])}")
    _show_kraft(document["kraft"], console)
    for note in document["notes"]:
        console.print(note)
    summary = document["summary"]
    what = "nothing was written" if document["dry_run"] else "the folders are ready for the next start"
    console.print(
        f"\n{counted(summary['topics'], 'topic')}, {summary['settings_unknown']} without settings;"
        f" retention would delete {counted(summary['expiring_bytes'], 'byte')} within an hour;"
        f" {counted(summary['unreadable'], 'unreadable place')}; {what}"
    )


def _show_kraft(kraft: dict[str, Any] | None, console: Console) -> None:
    if kraft is None:
        return
    whole = "" if kraft["whole"] else ", not all of which can be read"
    console.print(
        f"KRaft metadata up to offset {kraft['end_offset']}{whole}: {kraft['scram_credentials']} SCRAM credentials and"
        f" {kraft['acls']} ACLs take effect; {kraft['quotas']} quotas are kept, but do not"
    )


def _row(topic: dict[str, Any], console: Console) -> list[str | int | None]:
    force = topic["in_force"]
    known = topic["settings_known"]
    latest = topic["largest_timestamp"]
    return [
        topic["topic"],
        topic["partitions"],
        topic["size_bytes"],
        None if latest is None else console.show_time(latest),
        force["cleanup.policy"] if known else "unknown",
        _kept_for(force) if known else "nothing expires",
        topic["settings_from"],
        sum(one["size_bytes"] for one in topic["expiring"]) or None,
    ]


def _kept_for(force: dict[str, str]) -> str:
    if "delete" not in force["cleanup.policy"]:
        return "latest value per key" if force["cleanup.policy"] else "ever"
    time_ms, size_bytes = int(force["retention.ms"]), int(force["retention.bytes"])
    kept = "ever" if time_ms < 0 else str(timedelta(milliseconds=time_ms)).removesuffix(", 0:00:00")
    return kept if size_bytes < 0 else f"{kept}, {size_bytes} bytes"


def _show_topic(topic: dict[str, Any], console: Console) -> None:
    if topic["folders"] < topic["partitions"]:
        console.print(
            f"{topic['topic']}: no folder here for {topic['partitions'] - topic['folders']} of {counted(topic['partitions'], 'partition')}"
        )
    for error in topic["settings_left_out"]:
        console.print(f"{topic['topic']}: {error}; it is left out")
    for one in topic["expiring"]:
        latest = one["largest_timestamp"]
        until = "" if latest is None else f", up to {console.show_time(latest)}"
        console.print(
            console.style(
                "red",
                f"{topic['topic']}-{one['partition']}: retention would delete {counted(one['segments'], 'segment')},"
                f" {counted(one['size_bytes'], 'byte')}{until}, within an hour by {' and '.join(one['because_of'])}",
            )
        )
    for one in topic["unreadable"]:
        console.print(console.style("red", f"{topic['topic']}-{one['partition']} cannot be read: {one['reason']}"))
