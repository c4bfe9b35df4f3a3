"""`kafka-console-producer`: the lines of standard input as records."""

import argparse
from collections.abc import Mapping

from horolog.base.readable import counted
from horolog.client.cli.kafka_scripts.line_reader import LineReader
from horolog.client.cli.kafka_scripts.options import add_bootstrap, add_unused, properties
from horolog.commands.arguments import whole_number
from horolog.commands.console import Console
from horolog.commands.errors import CommandError, UsageError
from horolog.commands.exit_codes import ExitCode
from horolog.commands.online.connecting import connected
from horolog.commands.online.lines import STDIN

TUNING = (
    *(
        "--batch-size",
        "--timeout",
        "--max-block-ms",
        "--message-send-max-retries",
        "--retry-backoff-ms",
        "--line-reader",
    ),
    *("--socket-buffer-size", "--max-partition-memory-bytes", "--max-memory-bytes", "--metadata-expiry-ms"),
    "--request-timeout-ms",
)


def configure(parser: argparse.ArgumentParser) -> None:
    add_bootstrap(parser, "--command-config", "--producer.config", "--reader-config")
    parser.add_argument("--topic", required=True, metavar="TOPIC")
    parser.add_argument(
        "--property", "--reader-property", dest="property", action="append", metavar="KEY=VALUE", help="parse.key=true"
    )
    parser.add_argument(
        "--producer-property", "--command-property", dest="client_property", action="append", metavar="KEY=VALUE"
    )
    parser.add_argument("--compression-codec", nargs="?", const="gzip", metavar="CODEC")
    parser.add_argument("--request-required-acks", metavar="ACKS")
    parser.add_argument("--sync", action="store_true", help="send one record after the other")
    add_unused(parser, *TUNING)


async def run(arguments: argparse.Namespace, console: Console) -> ExitCode:
    from horolog.client.producing.producer import Producer
    from horolog.commands.online.sending import Sending

    reader = LineReader(properties(arguments.property))
    options = producer_options(arguments, arguments.client_settings)
    async with connected(arguments) as client:
        try:
            producer = Producer(client, **options)  # type: ignore[arg-type]
        except ValueError as error:
            raise UsageError(str(error)) from error
        async with producer:
            sending = Sending(producer, arguments.topic, stop_at_error=not reader.ignores_errors)
            await sending.file(STDIN, console.stdin, reader.read, lambda _: None)
            await producer.flush()
    for refusal in sending.refusals():
        console.error(f"{refusal.source}, line {refusal.line}: {refusal.reason}")
    if sending.refused and not reader.ignores_errors:
        raise CommandError(f"the broker refused {counted(sending.refused, 'line')}")
    return ExitCode.OK


def producer_options(arguments: argparse.Namespace, given: Mapping[str, str]) -> dict[str, str | int]:
    """The options of our producer for Kafka's."""
    codec = arguments.compression_codec or given.get("compression.type", "none")
    options: dict[str, str | int] = {"acks": arguments.request_required_acks or given.get("acks", "all")}
    if codec != "none":
        options["compression"] = codec
    for key, option in (("linger.ms", "linger_ms"), ("batch.size", "batch_bytes")):
        if key in given:
            try:
                options[option] = whole_number(given[key])
            except argparse.ArgumentTypeError as error:
                raise UsageError(f"{key}: {error}") from error
    if arguments.sync:
        options |= {"linger_ms": 0, "batch_bytes": 1}
    return options
