"""`horolog produce`: lines of text or JSON from files or standard input become records."""

import argparse
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from horolog.commands.arguments import add_output, add_zone, describe, whole_number
from horolog.commands.console import Console
from horolog.commands.errors import UsageError
from horolog.commands.exit_codes import ExitCode
from horolog.commands.online.connecting import add_connection, connected, partitions_of
from horolog.commands.online.encoding import add_encoding, encoders_of, encoding

if TYPE_CHECKING:
    from horolog.commands.online.record_text import Line
    from horolog.commands.online.sending import Sending
    from horolog.commands.online.units import Timestamps, UnitInDoubt

STDIN = "-"
UNITS = ("s", "ms", "us", "ns")
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
SHOWN_REFUSALS = 20
PATIENCE_MS = 30_000
"""The minimum time for retrying a record if the broker goes away: it may only be restarting."""


def configure(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Produce a record from each line of files or standard input. If the broker refuses a record, print its line and the reason and stop; with --on-error continue, send the rest. The exit code is 1 if any line was not written.",
        "echo 'hello' | horolog produce greetings",
        "horolog produce logs access.log --timestamp 2h-ago --codec zstd",
        "horolog produce users users.txt --key-separator : --on-error continue",
        "horolog consume logs --since 1h -o json | horolog produce copy --format json",
        "horolog produce orders orders.json --registry http://schemas:8081",
    )
    parser.add_argument("topic", metavar="TOPIC")
    parser.add_argument(
        "files", metavar="FILE", nargs="*", default=[STDIN], help="files; - is standard input (default)"
    )
    parser.add_argument(
        "--format", choices=("lines", "json"), default="lines", help="the format of a line (default: lines)"
    )
    parser.add_argument("-K", "--key-separator", metavar="TEXT", help="the text between key and value (\\t is a tab)")
    parser.add_argument("-k", "--key", metavar="KEY", help="the key of records without their own")
    parser.add_argument(
        "-H",
        "--header",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="a header for all records; repeatable",
    )
    parser.add_argument("--timestamp", metavar="TIME", help="the time of records without their own (default: now)")
    parser.add_argument(
        "--timestamp-unit",
        choices=UNITS,
        help="the unit of times that are plain numbers (default: milliseconds; a number that looks like another unit is refused)",
    )
    parser.add_argument(
        "-p",
        "--partition",
        type=whole_number,
        metavar="N",
        help="the partition (default: chosen by the key, or the fullest batch)",
    )
    parser.add_argument(
        "-Z",
        "--null-empty",
        action="store_true",
        help="send empty values as null, which deletes keys in compacted topics",
    )
    parser.add_argument("-z", "--codec", choices=CODECS, default="none", help="compression (default: none)")
    parser.add_argument(
        "--acks", choices=("all", "1", "0"), default="all", help="acknowledgements to wait for (default: all)"
    )
    parser.add_argument(
        "--on-error",
        choices=("stop", "continue"),
        default="stop",
        help="what to do after a refused record (default: stop)",
    )
    parser.add_argument(
        "--create", action="store_true", help="create the topic if it does not exist, with the broker's defaults"
    )
    add_encoding(parser)
    add_connection(parser)
    add_zone(parser)
    add_output(parser)


async def run(arguments: argparse.Namespace, console: Console) -> ExitCode:
    from horolog.client.producing.producer import Producer
    from horolog.commands.online.sending import Sending
    from horolog.commands.online.units import Timestamps, UnitInDoubt, ask

    times = Timestamps(arguments.timestamp_unit, lambda text: console.time(text, "--timestamp").ms, console.show_time)

    async def settle(doubt: UnitInDoubt) -> bool:
        """Ask for the unit, unless the records come from standard input."""
        unit = None if STDIN in arguments.files else await ask(doubt, console)
        if unit is not None:
            times.settle(doubt.unit, unit)
        return unit is not None

    keys, values = await encoders_of(arguments)
    read = encoding(reader(arguments, times), keys, values)
    own_key = None if arguments.key is None else arguments.key.encode()
    headers = tuple(header(text) for text in arguments.header)
    time_ms = await given_time(arguments.timestamp, times, settle) if arguments.timestamp else None
    if time_ms is not None:
        console.note(f"--timestamp is {console.show_time(time_ms)}")
    async with connected(arguments) as client:
        if arguments.create:
            await client.topic(arguments.topic, create=True)
        await partitions_of(client, arguments.topic, None if arguments.partition is None else [arguments.partition])
        codec = None if arguments.codec == "none" else arguments.codec
        patience_ms = max(arguments.timeout, PATIENCE_MS)
        async with Producer(
            client,
            acks=arguments.acks,
            compression=codec,
            delivery_timeout_ms=patience_ms,
            on_expired=lambda expired: console.warn(expired.sentence(console.show_time)),
        ) as producer:
            sending = Sending(
                producer,
                arguments.topic,
                key=own_key if keys is None else keys.encode(own_key),
                headers=headers,
                timestamp_ms=time_ms,
                partition=arguments.partition,
                null_empty=arguments.null_empty,
                stop_at_error=arguments.on_error == "stop",
                settle_doubt=settle,
            )
            await send_files(sending, arguments.files, read, console)
            await producer.flush()
    return report(sending, arguments.topic, console)


async def send_files(sending: "Sending", files: list[str], read: "Callable[[bytes], Line]", console: Console) -> None:
    """Send file after file, until one of them stops."""
    with console.progress("bytes", size_of(files)) as progress:
        for path in files:
            if not await sending.file(path, console.stdin, read, progress.advance):
                break


async def given_time(text: str, times: "Timestamps", settle: "Callable[[UnitInDoubt], Awaitable[bool]]") -> int:
    """The time of `--timestamp`; nothing is sent before its unit is certain."""
    from horolog.commands.online.record_text import RecordTextError
    from horolog.commands.online.units import UnitInDoubt

    try:
        try:
            return times.text(text)
        except UnitInDoubt as doubt:
            if not await settle(doubt):
                raise
        return times.text(text)
    except RecordTextError as error:
        raise UsageError(f"--timestamp {text}: {error}") from error


def reader(arguments: argparse.Namespace, times: "Timestamps") -> "Callable[[bytes], Line]":
    """The reader that turns a line into a record."""
    from horolog.commands.online import record_text

    separator = arguments.key_separator
    if arguments.format == "json":
        if separator is not None:
            raise UsageError("--key-separator is for lines", "in JSON the key is the member `key`")
        return lambda line: record_text.read_json(line, times)
    if separator == "":
        raise UsageError("--key-separator must not be empty")
    found = None if separator is None else separator.encode().decode("unicode_escape").encode()
    return lambda line: record_text.read_plain(line, found)


def header(text: str) -> tuple[bytes, bytes | None]:
    name, found, value = text.partition("=")
    if not found:
        raise UsageError(f"--header {text!r}: expected NAME=VALUE")
    return name.encode(), value.encode()


def size_of(paths: list[str]) -> int | None:
    """How many bytes there are to send, if known."""
    import os

    if STDIN in paths:
        return None
    return sum(os.stat(path).st_size for path in paths)  # noqa: PTH116 - pathlib would cost 10 ms


def report(sending: "Sending", topic: str, console: Console) -> ExitCode:
    refusals = list(sending.refusals())
    if console.as_json:
        console.json(
            {
                "topic": topic,
                "written": sending.written,
                "refused_count": sending.refused,
                "refused": [each._asdict() for each in refusals],
                "bytes": sending.written_bytes,
                "seconds": round(sending.seconds, 3),
            }
        )
    else:
        for each in refusals[:SHOWN_REFUSALS]:
            console.error(f"{each.source}, line {each.line}: {each.reason}")
        if sending.refused > SHOWN_REFUSALS:
            console.error(f"and {sending.refused - SHOWN_REFUSALS} more")
        console.note(summary(sending))
    return ExitCode.FAILED if refusals else ExitCode.OK


def summary(sending: "Sending") -> str:
    words = f"{sending.written} written, {sending.refused} refused"
    if sending.stopped_early:
        words += "; stopped there, so later lines were not sent (use --on-error continue to send them)"
    return words
