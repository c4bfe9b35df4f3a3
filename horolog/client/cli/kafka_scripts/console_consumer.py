"""`kafka-console-consumer`: records as lines, from the beginning, from an offset, or as they come."""

import argparse
import re
from typing import TYPE_CHECKING

from horolog.client.cli.kafka_scripts.options import add_bootstrap, add_unused, properties
from horolog.client.cli.kafka_scripts.record_lines import RecordLines
from horolog.commands.arguments import positive_number, whole_number
from horolog.commands.console import Console
from horolog.commands.errors import NotFoundError, UsageError
from horolog.commands.exit_codes import ExitCode
from horolog.commands.online.connecting import connected, partitions_of

if TYPE_CHECKING:
    from horolog.client.consuming.consumer import Consumer
    from horolog.client.values.types import TopicPartition
    from horolog.client.wire.client import Client

PATIENCE_MS = 86_400_000
"""How long one poll waits if no limit is set; then it polls again."""
COMMIT_MS = 5_000
DEFAULT_FORMATTERS = ("kafka.tools.DefaultMessageFormatter", "org.apache.kafka.tools.consumer.DefaultMessageFormatter")


def configure(parser: argparse.ArgumentParser) -> None:
    add_bootstrap(parser, "--command-config", "--consumer.config")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--topic", metavar="TOPIC")
    where.add_argument("--include", "--whitelist", dest="include", metavar="PATTERN", help="all matching topics")
    parser.add_argument("--from-beginning", action="store_true")
    parser.add_argument("--partition", type=whole_number, metavar="N")
    parser.add_argument(
        "--offset", default="latest", metavar="N", help="earliest, latest, or a number (default: latest)"
    )
    parser.add_argument("--group", metavar="GROUP")
    parser.add_argument("--max-messages", type=positive_number, metavar="N", help="stop after this many records")
    parser.add_argument(
        "--timeout-ms", type=positive_number, metavar="MS", help="stop when no record has arrived for this long"
    )
    parser.add_argument("--isolation-level", choices=("read_committed", "read_uncommitted"), default="read_uncommitted")
    parser.add_argument(
        "--property",
        "--formatter-property",
        dest="property",
        action="append",
        metavar="KEY=VALUE",
        help="print.key=true",
    )
    parser.add_argument(
        "--consumer-property", "--command-property", dest="client_property", action="append", metavar="KEY=VALUE"
    )
    parser.add_argument("--formatter", choices=DEFAULT_FORMATTERS, help=argparse.SUPPRESS)
    add_unused(parser, "--key-deserializer", "--value-deserializer", "--formatter-config")
    add_unused(parser, "--skip-message-on-error", "--enable-systest-events", takes_value=False)


async def run(arguments: argparse.Namespace, console: Console) -> ExitCode:
    from horolog.client.consuming.consumer import Consumer

    lines = RecordLines(properties(arguments.property))
    group = arguments.group or arguments.client_settings.get("group.id")
    if arguments.partition is not None and (group or arguments.topic is None):
        raise UsageError("--partition needs one --topic, and no group")
    if arguments.offset != "latest" and (arguments.partition is None or arguments.from_beginning):
        raise UsageError("--offset needs --partition, and cannot be used with --from-beginning")
    options = {"group": group, "auto_commit_ms": COMMIT_MS} if group else {}
    async with (
        connected(arguments) as client,
        Consumer(
            client,
            start="earliest" if arguments.from_beginning else _reset_of(arguments),
            isolation=arguments.isolation_level,
            **options,
        ) as consumer,
    ):
        if group:
            await _subscribe(consumer, arguments)
        else:
            await _assign(consumer, client, arguments)
        written = 0
        try:
            written = await _print(consumer, lines, arguments, console)
        finally:
            console.out.flush()
            console.err.write(f"Processed a total of {written} messages\n")
    return ExitCode.OK


def _reset_of(arguments: argparse.Namespace) -> str:
    chosen = arguments.client_settings.get("auto.offset.reset", "latest")
    if chosen not in {"earliest", "latest", "none"}:
        raise UsageError(f"auto.offset.reset={chosen}: expected earliest, latest or none")
    return str(chosen)


async def _subscribe(consumer: "Consumer", arguments: argparse.Namespace) -> None:
    if arguments.topic is not None:
        await consumer.subscribe([arguments.topic])
    else:
        await consumer.subscribe(pattern=arguments.include)


async def _assign(consumer: "Consumer", client: "Client", arguments: argparse.Namespace) -> None:
    if arguments.topic is None:
        pattern = re.compile(arguments.include)
        names = [name for name in sorted((await client.metadata()).topics) if pattern.fullmatch(name)]
        if not names:
            raise NotFoundError(f"no topic matches {arguments.include!r}")
    else:
        names = [arguments.topic]
        await client.topic(arguments.topic, create=True)
    wanted = None if arguments.partition is None else [arguments.partition]
    places = [place for name in names for place in await partitions_of(client, name, wanted)]
    consumer.assign(places)
    await _seek(consumer, places, arguments.offset)


async def _seek(consumer: "Consumer", places: "list[TopicPartition]", offset: str) -> None:
    if offset == "latest":
        return  # the consumer's start is set already
    if offset == "earliest":
        await consumer.seek_to_beginning(places)
    elif offset.isascii() and offset.isdigit():
        for place in places:
            consumer.seek(place, int(offset))
    else:
        raise UsageError(f"--offset {offset}: expected earliest, latest or a number of 0 or more")


async def _print(consumer: "Consumer", lines: RecordLines, arguments: argparse.Namespace, console: Console) -> int:
    """Print records until there are enough, or none came within the timeout; returns their number."""
    written = 0
    most = arguments.max_messages
    while most is None or written < most:
        records = await consumer.poll(arguments.timeout_ms or PATIENCE_MS, None if most is None else most - written)
        if not records and arguments.timeout_ms is not None:
            break
        console.write_bytes(b"".join(map(lines.write, records)))
        written += len(records)
    return written
