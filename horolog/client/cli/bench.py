"""`horolog bench`: measures a broker on this machine with the bundled client: produce, consume, latency, lookups by time."""

import argparse
from typing import TYPE_CHECKING, Any

from horolog.commands.arguments import add_output, describe, positive_number
from horolog.commands.console import Console
from horolog.commands.errors import UsageError
from horolog.commands.exit_codes import ExitCode
from horolog.commands.online.connecting import add_connection, admin_of

if TYPE_CHECKING:
    from horolog.client.wire.client import Client
    from horolog.commands.online.measuring import Figures

PARTS = ("produce", "consume", "latency", "lookup")
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def configure(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Measure a broker together with this client: records produced and consumed per second, end-to-end "
        "latency, and lookups by time. The command creates a topic for the measurement, and deletes it at "
        "the end.",
        "horolog bench",
        "horolog bench produce consume --records 1000000 --size 100 --codec lz4",
        "horolog bench latency --rate 1000 -o json",
    )
    parser.add_argument("parts", metavar="PART", nargs="*", default=[], help=f"{', '.join(PARTS)} (default: all)")
    parser.add_argument(
        "-n",
        "--records",
        type=positive_number,
        default=200_000,
        metavar="N",
        help="number of records (default: 200000)",
    )
    parser.add_argument(
        "-s",
        "--size",
        type=positive_number,
        default=100,
        metavar="BYTES",
        help="size of a value in bytes (default: 100)",
    )
    parser.add_argument(
        "-p", "--partitions", type=positive_number, default=1, metavar="N", help="partitions of the topic (default: 1)"
    )
    parser.add_argument("-z", "--codec", choices=CODECS, default="none", help="compression (default: none)")
    parser.add_argument(
        "--acks", choices=("all", "1", "0"), default="all", help="acknowledgements to wait for (default: all)"
    )
    parser.add_argument(
        "--rate", type=positive_number, default=500, metavar="N", help="records per second for latency (default: 500)"
    )
    parser.add_argument(
        "--lookups", type=positive_number, default=1000, metavar="N", help="number of lookups by time (default: 1000)"
    )
    add_connection(parser)
    add_output(parser)


async def run(arguments: argparse.Namespace, console: Console) -> ExitCode:
    from secrets import token_hex

    unknown = [part for part in arguments.parts if part not in PARTS]
    if unknown:
        raise UsageError(f"cannot measure {unknown[0]!r}", f"{', '.join(PARTS)} can be measured")
    parts = [part for part in PARTS if part in (arguments.parts or PARTS)]
    topic = f"horolog-bench-{token_hex(4)}"
    async with admin_of(arguments) as admin:
        await admin.create_topic(topic, arguments.partitions)
        try:
            figures = await measure(admin.client, topic, parts, arguments, console)
        finally:
            await admin.delete_topics([topic])
    show(figures, arguments, console)
    return ExitCode.OK


async def measure(
    client: "Client", topic: str, parts: list[str], arguments: argparse.Namespace, console: Console
) -> "list[Figures]":
    """Run the parts in order; producing always comes first, shown or not, since the others read its records."""
    from horolog.commands.online import measuring

    codec = None if arguments.codec == "none" else arguments.codec
    figures = []
    with console.progress("records", arguments.records) as progress:
        produced = await measuring.produce(
            client,
            topic,
            arguments.records,
            size_bytes=arguments.size,
            codec=codec,
            acks=arguments.acks,
            advance=progress.advance,
        )
    if "produce" in parts:
        figures.append(produced)
    if "consume" in parts:
        with console.progress("records", arguments.records) as progress:
            figures.append(await measuring.consume(client, topic, arguments.records, progress.advance))
    if "latency" in parts:
        figures.append(await measuring.latency(client, topic, arguments.rate, arguments.size, arguments.acks))
    if "lookup" in parts:
        figures.append(await measuring.look_ups(client, topic, arguments.lookups))
    return figures


def show(figures: "list[Figures]", arguments: argparse.Namespace, console: Console) -> None:
    if console.as_json:
        settings = {name: getattr(arguments, name) for name in ("records", "size", "partitions", "codec", "acks")}
        console.json({**settings, "results": [_as_json(each) for each in figures]})
        return
    console.table(
        ("PART", "COUNT", "SECONDS", "PER SECOND", "MB/S", "P50 MS", "P99 MS", "P99.9 MS", "MAX MS"),
        [
            (
                each.part,
                each.count,
                f"{each.seconds:.2f}",
                f"{each.per_second:,.0f}",
                None if each.megabytes is None else f"{each.megabytes / each.seconds:.1f}",
                *(_milliseconds(each.latency_ms(share)) for share in (0.5, 0.99, 0.999, 1.0)),
            )
            for each in figures
        ],
    )


def _milliseconds(value: float | None) -> str | None:
    return None if value is None else f"{value:.2f}"


def _as_json(each: "Figures") -> dict[str, Any]:
    found: dict[str, Any] = {
        "part": each.part,
        "count": each.count,
        "seconds": round(each.seconds, 4),
        "per_second": round(each.per_second, 1),
    }
    if each.megabytes is not None:
        found["megabytes_per_second"] = round(each.megabytes / each.seconds, 2)
    for name, share in (("p50_ms", 0.5), ("p99_ms", 0.99), ("p999_ms", 0.999), ("max_ms", 1.0)):
        latency = each.latency_ms(share)
        if latency is not None:
            found[name] = round(latency, 3)
    return found
