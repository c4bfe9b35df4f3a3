"""`horolog producers`: the producers that the partitions of a topic know, and their open transactions."""

import argparse
from typing import TYPE_CHECKING, Any

from horolog.commands.arguments import add_output, add_zone, describe, partitions
from horolog.commands.console import Console
from horolog.commands.exit_codes import ExitCode
from horolog.commands.online.connecting import add_connection, admin_of, partitions_of

if TYPE_CHECKING:
    from horolog.client.admin.admin_cluster import ActiveProducer
    from horolog.client.values.types import TopicPartition


def configure(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Show the idempotent and transactional producers of each partition of a topic: their last sequence "
        "number and time, and the offset at which an open transaction begins. Consumers that read only "
        "committed records wait at that offset.",
        "horolog producers orders",
        "horolog producers orders --partition 0 --open",
    )
    parser.add_argument("topic", metavar="TOPIC")
    parser.add_argument("-p", "--partition", type=partitions, metavar="N", help="only these partitions: 0,3,5-7")
    parser.add_argument("--open", action="store_true", help="only producers with an open transaction")
    add_connection(parser)
    add_zone(parser)
    add_output(parser)


async def run(arguments: argparse.Namespace, console: Console) -> ExitCode:
    async with admin_of(arguments) as admin:
        places = await partitions_of(admin.client, arguments.topic, arguments.partition)
        found = [(place, each) for place in places for each in await admin.describe_producers(place)]
    rows = [producer_row(place, each) for place, each in found]
    rows = [row for row in rows if row["open_from_offset"] is not None or not arguments.open]
    if console.as_json:
        console.json(rows)
    else:
        console.table(
            ("PARTITION", "PRODUCER", "EPOCH", "LAST SEQUENCE", "LAST TIME", "OPEN FROM OFFSET"),
            [
                (
                    row["partition"],
                    row["producer_id"],
                    row["epoch"],
                    row["last_sequence"],
                    None if row["last_timestamp"] is None else console.show_time(row["last_timestamp"]),
                    row["open_from_offset"],
                )
                for row in rows
            ],
        )
    return ExitCode.OK


def producer_row(place: "TopicPartition", producer: "ActiveProducer") -> dict[str, Any]:
    return {
        "topic": place.topic,
        "partition": place.partition,
        "producer_id": producer.producer_id,
        "epoch": producer.epoch,
        "last_sequence": _known(producer.last_sequence),
        "last_timestamp": _known(producer.last_timestamp_ms),
        "coordinator_epoch": _known(producer.coordinator_epoch),
        "open_from_offset": _known(producer.transaction_start_offset),
    }


def _known(number: int) -> int | None:
    """The protocol's -1 stands for no value."""
    return None if number < 0 else number
