"""`horolog transactions`: lists and describes transactions, and aborts one that its producer has left open."""

import argparse
from typing import TYPE_CHECKING, Any

from horolog.commands.arguments import add_zone, duration, whole_number
from horolog.commands.console import Console
from horolog.commands.errors import NotFoundError
from horolog.commands.exit_codes import ExitCode
from horolog.commands.online.actions import Action, add_actions, add_yes, confirmed, run_action
from horolog.commands.online.connecting import admin_of, partitions_of

if TYPE_CHECKING:
    from horolog.client.admin.admin import Admin
    from horolog.client.admin.admin_cluster import TransactionDescription

STATES = (
    *("Empty", "Ongoing", "PrepareCommit", "PrepareAbort"),
    *("CompleteCommit", "CompleteAbort", "Dead", "PrepareEpochFence"),
)


def configure(parser: argparse.ArgumentParser) -> None:
    add_actions(parser, "List and describe transactions, and abort hanging ones.", ACTIONS)


async def run(arguments: argparse.Namespace, console: Console) -> ExitCode:
    return await run_action(ACTIONS, arguments, console)


# -- list


def _list_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--state", choices=STATES, action="append", default=[], help="only transactions in this state; repeatable"
    )
    parser.add_argument(
        "--longer-than",
        type=duration,
        metavar="DURATION",
        help="only transactions that have been open for longer than this",
    )


async def _list(arguments: argparse.Namespace, console: Console) -> ExitCode:
    longer_than_ms = -1 if arguments.longer_than is None else arguments.longer_than
    async with admin_of(arguments) as admin:
        found = await admin.list_transactions(arguments.state, longer_than_ms=longer_than_ms)
    if console.as_json:
        console.json(
            [
                {"transactional_id": each.transactional_id, "producer_id": each.producer_id, "state": each.state}
                for each in found
            ]
        )
    else:
        console.table(
            ("TRANSACTIONAL ID", "PRODUCER", "STATE"),
            [(each.transactional_id, each.producer_id, each.state) for each in found],
        )
    return ExitCode.OK


# -- describe


def _describe_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ids", metavar="TRANSACTIONAL_ID", nargs="+")
    add_zone(parser)


async def _transaction(admin: "Admin", name: str) -> "TransactionDescription":
    from horolog.client.values.errors import KafkaError
    from horolog.protocol.errors import ErrorCode

    try:
        return (await admin.describe_transactions([name]))[name]
    except KafkaError as error:
        if error.code != ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            raise
        advice = "list those that exist with `horolog transactions list`"
        raise NotFoundError(f"there is no transactional id {name!r}", advice) from error


async def _describe(arguments: argparse.Namespace, console: Console) -> ExitCode:
    async with admin_of(arguments) as admin:
        rows = [described(await _transaction(admin, name)) for name in arguments.ids]
    if console.as_json:
        console.json(rows)
    else:
        console.table(
            ("TRANSACTIONAL ID", "STATE", "PRODUCER", "EPOCH", "TIMEOUT", "BEGAN", "PARTITIONS"),
            [_cells(row, console) for row in rows],
        )
    return ExitCode.OK


def described(found: "TransactionDescription") -> dict[str, Any]:
    return {
        "transactional_id": found.transactional_id,
        "state": found.state,
        "producer_id": found.producer_id,
        "epoch": found.epoch,
        "timeout_ms": found.timeout_ms,
        "start_timestamp": None if found.start_ms < 0 else found.start_ms,
        "partitions": [{"topic": place.topic, "partition": place.partition} for place in found.partitions],
    }


def _cells(row: dict[str, Any], console: Console) -> tuple[str | int | None, ...]:
    from horolog.base.readable import format_duration

    began = row["start_timestamp"]
    return (
        row["transactional_id"],
        row["state"],
        row["producer_id"],
        row["epoch"],
        format_duration(row["timeout_ms"]),
        None if began is None else console.show_time(began),
        ", ".join(f"{one['topic']}-{one['partition']}" for one in row["partitions"]) or None,
    )


# -- abort


def _abort_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topic", metavar="TOPIC")
    parser.add_argument("partition", type=whole_number, metavar="PARTITION")
    parser.add_argument(
        "--start-offset",
        type=whole_number,
        required=True,
        metavar="N",
        help="where the transaction begins in the partition, as `horolog producers TOPIC --open` shows it",
    )
    add_yes(parser)


async def _abort(arguments: argparse.Namespace, console: Console) -> ExitCode:
    async with admin_of(arguments) as admin:
        (place,) = await partitions_of(admin.client, arguments.topic, [arguments.partition])
        known = await admin.describe_producers(place)
        found = next((one for one in known if one.transaction_start_offset == arguments.start_offset), None)
        if found is None:
            raise NotFoundError(
                f"no transaction of {place} begins at offset {arguments.start_offset}",
                f"`horolog producers {place.topic} --open` shows where they begin",
            )
        if not await confirmed(
            arguments, console, f"aborting the transaction of producer {found.producer_id} in {place}"
        ):
            return ExitCode.FAILED
        await admin.abort_transaction(place, found)
    if console.as_json:
        console.json(
            {"topic": place.topic, "partition": place.partition, "producer_id": found.producer_id, "aborted": True}
        )
    else:
        console.print(f"{place}: aborted the transaction of producer {found.producer_id}")
    return ExitCode.OK


ACTIONS = (
    Action(
        "list",
        "list transactions and their states",
        _list_arguments,
        _list,
        ("horolog transactions list --state Ongoing --longer-than 10m",),
    ),
    Action(
        "describe",
        "show a transaction's producer, timeout and partitions",
        _describe_arguments,
        _describe,
        ("horolog transactions describe payments-1",),
    ),
    Action(
        "abort",
        "abort a hanging transaction in one partition",
        _abort_arguments,
        _abort,
        ("horolog transactions abort orders 0 --start-offset 1234",),
    ),
)
