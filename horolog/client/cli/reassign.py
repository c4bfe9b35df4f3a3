"""`horolog reassign`: moves partitions to other brokers, and lists and cancels the moves that are under way."""

import argparse
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from horolog.commands.arguments import duration, partitions
from horolog.commands.console import Console
from horolog.commands.errors import NotFoundError
from horolog.commands.exit_codes import ExitCode
from horolog.commands.online.actions import Action, Outcome, add_actions, run_action, show_outcomes
from horolog.commands.online.connecting import admin_of, partitions_of

if TYPE_CHECKING:
    from horolog.client.admin.admin import Admin
    from horolog.client.values.errors import KafkaError
    from horolog.client.values.types import TopicPartition

WAIT = "30s"
LOOK_AGAIN_SECONDS = 0.2
MOVED, MOVING, PLANNED, REFUSED = "moved", "moving", "planned", "refused"


def configure(parser: argparse.ArgumentParser) -> None:
    add_actions(parser, "Move partitions to other brokers, and list and cancel moves in progress.", ACTIONS)


async def run(arguments: argparse.Namespace, console: Console) -> ExitCode:
    return await run_action(ACTIONS, arguments, console)


class Move(NamedTuple):
    """A partition with its brokers before and after; the first is to lead."""

    place: "TopicPartition"
    before: list[int]
    after: list[int]


# -- move


def brokers(text: str) -> list[int]:
    """For `type=`: `1,2,5` as broker numbers, each once."""
    found = partitions(text)
    if len(found) != len(text.split(",")):
        raise argparse.ArgumentTypeError(f"{text!r}: expected broker numbers such as 1,2, each once")
    return found


def _add_places(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topic", metavar="TOPIC")
    parser.add_argument("-p", "--partition", type=partitions, metavar="N", help="only these partitions: 0,3,5-7")


def _move_arguments(parser: argparse.ArgumentParser) -> None:
    _add_places(parser)
    parser.add_argument("--to", type=brokers, metavar="BROKERS", required=True, help="broker numbers: 1,2")
    parser.add_argument("--spread", action="store_true", help="assign each partition to one of the brokers, in turn")
    parser.add_argument(
        "--wait",
        type=duration,
        default=WAIT,
        metavar="DURATION",
        help=f"how long to wait for the data (default: {WAIT})",
    )
    parser.add_argument("-n", "--dry-run", action="store_true", help="only show what would be moved")


def planned(present: "Mapping[TopicPartition, list[int]]", to: Sequence[int], *, spread: bool) -> list[Move]:
    """All partitions go to all brokers, or each to one of them in turn."""
    return [
        Move(place, before, [to[turn % len(to)]] if spread else list(to))
        for turn, (place, before) in enumerate(present.items())
    ]


async def _move(arguments: argparse.Namespace, console: Console) -> ExitCode:
    async with admin_of(arguments) as admin:
        places = await partitions_of(admin.client, arguments.topic, arguments.partition)
        view = await admin.client.metadata([arguments.topic])
        unknown = [node for node in arguments.to if node not in view.nodes]
        if unknown:
            there = ", ".join(map(str, sorted(view.nodes)))
            raise NotFoundError(f"there is no broker {unknown[0]}", f"the brokers are {there}")
        known = view.topics[arguments.topic].partitions
        moves = planned(
            {place: list(known[place.partition].replicas) for place in places}, arguments.to, spread=arguments.spread
        )
        if arguments.dry_run:
            return _show_moves(moves, dict.fromkeys(places, PLANNED), {}, console)
        refused = await _refusals(admin, {each.place: each.after for each in moves})
        going = await _wait(admin, [place for place in places if place not in refused], arguments.wait)
    states = {place: REFUSED if place in refused else MOVING if place in going else MOVED for place in places}
    return _show_moves(moves, states, refused, console)


async def _refusals(
    admin: "Admin", wanted: "Mapping[TopicPartition, list[int] | None]"
) -> "dict[TopicPartition, KafkaError]":
    """Reassign; the partitions that the broker refuses, with its reasons."""
    from horolog.client.values.errors import KafkaError, PartialFailure

    try:
        await admin.reassign(wanted)
    except PartialFailure as error:
        return dict(error.failures)
    except KafkaError as error:
        if len(wanted) > 1:
            raise
        return dict.fromkeys(wanted, error)
    return {}


async def _wait(admin: "Admin", places: "list[TopicPartition]", wait_ms: int) -> "set[TopicPartition]":
    """The partitions that are still being moved at the end of the time."""
    import asyncio
    import time

    deadline = time.monotonic() + wait_ms / 1000
    while going := set(await admin.reassignments(places)) if places else set():
        if time.monotonic() > deadline:
            break
        await asyncio.sleep(LOOK_AGAIN_SECONDS)
    return going


def _show_moves(
    moves: list[Move],
    states: "Mapping[TopicPartition, str]",
    refused: "Mapping[TopicPartition, KafkaError]",
    console: Console,
) -> ExitCode:
    if console.as_json:
        console.json(
            [
                {
                    "topic": each.place.topic,
                    "partition": each.place.partition,
                    "from": each.before,
                    "to": each.after,
                    "state": states[each.place],
                    "error": refused[each.place].message if each.place in refused else None,
                }
                for each in moves
            ]
        )
    else:
        console.table(
            ("TOPIC", "PARTITION", "FROM", "TO", "STATE"),
            [
                (
                    each.place.topic,
                    each.place.partition,
                    _numbers(each.before),
                    _numbers(each.after),
                    states[each.place],
                )
                for each in moves
            ],
        )
        for error in refused.values():
            console.error(error.message)
    return ExitCode.FAILED if refused else ExitCode.OK


def _numbers(nodes: Sequence[int]) -> str:
    return ",".join(map(str, nodes))


# -- list, cancel


def _list_arguments(_: argparse.ArgumentParser) -> None:
    """All moves of the cluster: nothing to choose."""


async def _list(arguments: argparse.Namespace, console: Console) -> ExitCode:
    async with admin_of(arguments) as admin:
        found = sorted((await admin.reassignments()).items())
    if console.as_json:
        console.json(
            [
                {
                    "topic": place.topic,
                    "partition": place.partition,
                    "replicas": list(each.replicas),
                    "adding": list(each.adding),
                    "removing": list(each.removing),
                }
                for place, each in found
            ]
        )
    else:
        rows: list[tuple[Any, ...]] = [
            (place.topic, place.partition, _numbers(each.replicas), _numbers(each.adding), _numbers(each.removing))
            for place, each in found
        ]
        console.table(("TOPIC", "PARTITION", "REPLICAS", "ADDING", "REMOVING"), rows)
    return ExitCode.OK


async def _cancel(arguments: argparse.Namespace, console: Console) -> ExitCode:
    async with admin_of(arguments) as admin:
        places = await partitions_of(admin.client, arguments.topic, arguments.partition)
        if arguments.partition is None:
            places = sorted(await admin.reassignments(places))
        if not places:
            raise NotFoundError(
                f"no partition of {arguments.topic} is being moved", "`horolog reassign list` shows moves"
            )
        refused = await _refusals(admin, dict.fromkeys(places))
    return show_outcomes([_cancelled(place, refused.get(place)) for place in places], console)


def _cancelled(place: "TopicPartition", refused: "KafkaError | None") -> Outcome:
    members = {"topic": place.topic, "partition": place.partition, "cancelled": refused is None}
    return Outcome(str(place), members, "cancelled", None if refused is None else refused.message)


ACTIONS = (
    Action(
        "move",
        "move partitions of a topic to other brokers",
        _move_arguments,
        _move,
        (
            "horolog reassign move orders --to 2 --dry-run",
            "horolog reassign move orders --to 1,2,3 --spread",
            "horolog reassign move orders --partition 0 --to 2,3",
        ),
    ),
    Action("list", "list the moves in progress", _list_arguments, _list, ("horolog reassign list",)),
    Action(
        "cancel",
        "cancel a topic's moves in progress",
        _add_places,
        _cancel,
        ("horolog reassign cancel orders",),
    ),
)
