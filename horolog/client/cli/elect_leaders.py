"""`horolog elect-leaders`: elects the preferred leaders of partitions, or any replica where none is in sync."""

import argparse
from typing import TYPE_CHECKING, Any

from horolog.commands.arguments import add_output, describe, partitions
from horolog.commands.console import Console
from horolog.commands.errors import UsageError
from horolog.commands.exit_codes import ExitCode
from horolog.commands.online.actions import add_yes, confirmed
from horolog.commands.online.connecting import add_connection, admin_of, partitions_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from horolog.client.admin.admin import Admin
    from horolog.client.values.errors import KafkaError
    from horolog.client.values.types import TopicPartition


def configure(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Elect the preferred leader, which is the first replica, of each partition of all topics or of those "
        "that you name. With --unclean, elect a replica that is not in sync if no other is left; records "
        "that only the old leader had are lost.",
        "horolog elect-leaders",
        "horolog elect-leaders orders --partition 0,3",
        "horolog elect-leaders orders --unclean --yes",
    )
    parser.add_argument("topics", metavar="TOPIC", nargs="*", help="only these topics (default: all)")
    parser.add_argument(
        "-p", "--partition", type=partitions, metavar="N", help="only these partitions, of a single topic: 0,3,5-7"
    )
    parser.add_argument("--unclean", action="store_true", help="also elect replicas that are not in sync")
    add_yes(parser)
    add_connection(parser)
    add_output(parser)


async def run(arguments: argparse.Namespace, console: Console) -> ExitCode:
    if arguments.partition is not None and len(arguments.topics) != 1:
        raise UsageError("--partition needs a single topic", "name one topic")
    async with admin_of(arguments) as admin:
        places = [
            place for name in arguments.topics for place in await partitions_of(admin.client, name, arguments.partition)
        ]
        if arguments.unclean and not await confirmed(arguments, console, "an unclean election"):
            return ExitCode.FAILED
        found = await admin.elect_leaders(places if arguments.topics else None, unclean=arguments.unclean)
        leaders = await _leaders(admin, found)
    rows = [_row(place, error, leaders.get(place)) for place, error in sorted(found.items())]
    if console.as_json:
        console.json(rows)
    else:
        console.table(
            ("TOPIC", "PARTITION", "LEADER", ""),
            [(row["topic"], row["partition"], row["leader"], row["error"] or _outcome(row)) for row in rows],
        )
        if not rows:
            console.note("no partition needs another leader")
    return ExitCode.FAILED if any(row["error"] for row in rows) else ExitCode.OK


async def _leaders(admin: "Admin", places: "Mapping[TopicPartition, object]") -> "dict[TopicPartition, int]":
    """The leaders after the election."""
    view = await admin.client.metadata(sorted({place.topic for place in places}))
    return {
        place: view.topics[place.topic].partitions[place.partition].leader
        for place in places
        if place.topic in view.topics
    }


def _row(place: "TopicPartition", error: "KafkaError | None", leader: int | None) -> dict[str, Any]:
    """A partition that needs no election is done."""
    from horolog.protocol.errors import ErrorCode

    is_done = error is not None and error.code == ErrorCode.ELECTION_NOT_NEEDED
    return {
        "topic": place.topic,
        "partition": place.partition,
        "elected": error is None,
        "leader": leader if leader is not None and leader >= 0 else None,
        "error": None if error is None or is_done else error.message,
    }


def _outcome(row: dict[str, Any]) -> str:
    return "elected" if row["elected"] else "no election needed"
