"""`horolog logdirs`: the data folders of all brokers, their sizes, and the bytes of each partition in them."""

import argparse
from typing import TYPE_CHECKING, Any

from horolog.commands.arguments import add_output, describe
from horolog.commands.console import Console
from horolog.commands.errors import NotFoundError
from horolog.commands.exit_codes import ExitCode
from horolog.commands.online.connecting import add_connection, admin_of

if TYPE_CHECKING:
    from horolog.client.admin.admin_cluster import LogDir


def configure(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Show the data folders of all brokers: the size and the free space of each disk, and the bytes of the partitions."
        " Exit code 1 if a folder has failed.",
        "horolog logdirs",
        "horolog logdirs --topic orders --partitions",
    )
    parser.add_argument(
        "-t", "--topic", metavar="TOPIC", action="append", default=[], help="only this topic; repeatable"
    )
    parser.add_argument("--partitions", action="store_true", help="show a line for each partition, largest first")
    add_connection(parser)
    add_output(parser)


async def run(arguments: argparse.Namespace, console: Console) -> ExitCode:
    async with admin_of(arguments) as admin:
        folders = await admin.log_dirs()
    rows = [folder_row(each, arguments.topic) for each in folders]
    missing = set(arguments.topic) - {one["topic"] for row in rows for one in row["partitions"]}
    if missing:
        raise NotFoundError(
            f"no folder has a partition of {', '.join(sorted(missing))}", "list the topics with `horolog topics list`"
        )
    if console.as_json:
        console.json(rows)
    elif arguments.partitions:
        _show_partitions(rows, console)
    else:
        _show_folders(rows, console)
    failed = [row for row in rows if row["error"]]
    for row in failed:
        console.error(f"{row['path']} on broker {row['broker']} has failed: {row['error']}")
    return ExitCode.FAILED if failed else ExitCode.OK


def folder_row(folder: "LogDir", topics: list[str]) -> dict[str, Any]:
    """A folder with its partitions, the largest first; only those of the topics, if there are any."""
    from horolog.client.values.errors import error_of

    sizes = {place: size for place, size in folder.sizes.items() if not topics or place.topic in topics}
    return {
        "broker": folder.node_id,
        "path": folder.path,
        "error": error_of(folder.error_code).code.name if folder.error_code else None,
        "total_bytes": None if folder.total_bytes < 0 else folder.total_bytes,
        "usable_bytes": None if folder.usable_bytes < 0 else folder.usable_bytes,
        "size_bytes": sum(sizes.values()),
        "partitions": [
            {"topic": place.topic, "partition": place.partition, "size_bytes": size}
            for place, size in sorted(sizes.items(), key=lambda one: (-one[1], one[0]))
        ],
    }


def _show_folders(rows: list[dict[str, Any]], console: Console) -> None:
    console.table(
        ("BROKER", "FOLDER", "PARTITIONS", "BYTES", "FREE", "DISK"),
        [
            (
                row["broker"],
                row["path"],
                len(row["partitions"]),
                row["size_bytes"],
                row["usable_bytes"],
                row["total_bytes"],
            )
            for row in rows
        ],
    )


def _show_partitions(rows: list[dict[str, Any]], console: Console) -> None:
    console.table(
        ("BROKER", "PARTITION", "BYTES", "FOLDER"),
        [
            (row["broker"], f"{one['topic']}-{one['partition']}", one["size_bytes"], row["path"])
            for row in rows
            for one in row["partitions"]
        ],
    )
