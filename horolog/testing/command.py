"""`horolog test-broker`: a broker for the tests of any language, with a control endpoint; it ends with its parent process.

It writes one line to standard output once it is ready. It ends when its standard input, if that is a pipe, is closed, when its
parent is gone, by a signal, or by a request to the control endpoint.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import stat
from contextlib import nullcontext, suppress

from horolog.commands.arguments import describe, whole_number
from horolog.commands.console import Console, system_now_ms
from horolog.commands.errors import UsageError
from horolog.commands.exit_codes import ExitCode

INPUT = 0
"""The descriptor of the standard input."""
LOOK_AT_PARENT_S = 0.25
PIECE_BYTES = 4096
HIGHEST_PORT = 65_535


def configure(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Run a broker for a test: in memory, on a free port of this machine, with an HTTP endpoint that moves its clock, injects faults and checks records. It prints its addresses. It ends when the process that started it ends, or when its standard input is closed.",
        "horolog test-broker --json",
        'horolog test-broker --clock "2026-11-17 10:05" --topic orders:3 --set log.retention.hours=1',
    )
    parser.add_argument(
        "--port", type=port, default=0, metavar="N", help="the broker's port (default: 0, any free port)"
    )
    parser.add_argument(
        "--control-port",
        type=port,
        default=0,
        metavar="N",
        help="the port of the control endpoint (default: 0, any free port)",
    )
    parser.add_argument("--json", action="store_true", help="print the addresses as one line of JSON")
    parser.add_argument(
        "--clock",
        type=moment,
        metavar="TIME",
        help="stop the clock at this time until the test moves it (default: the clock runs)",
    )
    parser.add_argument(
        "--set", dest="settings", action="append", default=[], metavar="KEY=VALUE", help="a setting; repeatable"
    )
    parser.add_argument(
        "--topic", action="append", default=[], metavar="NAME:PARTITIONS", help="create a topic; repeatable"
    )
    parser.add_argument(
        "--registry", action="store_true", help="also run a schema registry with Confluent's REST interface"
    )
    parser.add_argument("--data", metavar="DIR", help="keep the data in this folder, not in memory")
    parser.add_argument(
        "--detached",
        action="store_true",
        help="end only on a signal or by the control endpoint, not with the parent process",
    )


def port(text: str) -> int:
    """For `type=`: a port, 0 included."""
    number = whole_number(text)
    if number > HIGHEST_PORT:
        raise argparse.ArgumentTypeError(f"{text} is not a port: the highest is {HIGHEST_PORT}")
    return number


def moment(text: str) -> int:
    """For `type=`: a time in milliseconds."""
    from horolog.client.values.times import TimeTextError
    from horolog.testing.clock import milliseconds

    try:
        return milliseconds(text, system_now_ms())
    except TimeTextError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


async def run(arguments: argparse.Namespace, console: Console) -> ExitCode:
    """Run until a request, a signal, or the end of the parent or the input."""
    from horolog.broker.config.setting_types import SettingsError
    from horolog.testing.control import Control, refusal
    from horolog.testing.embedded import horolog_broker
    from horolog.testing.json_server import JsonServer
    from horolog.testing.registry_server import horolog_registry
    from horolog.testing.runs import MEMORY

    ended, parent = asyncio.Event(), os.getppid()  # taken first: the reader of the line may end at once
    try:
        async with (
            horolog_broker(
                clock=arguments.clock, storage=arguments.data or MEMORY, settings=settings_of(arguments)
            ) as broker,
            horolog_registry() if arguments.registry else nullcontext() as registry,
        ):
            server = JsonServer(Control(broker, ended.set).answer, refusal)
            await server.start(arguments.control_port)
            try:
                url = None if registry is None else registry.url
                _tell(console, broker.bootstrap, server.url, url, as_json=arguments.json)
                await _until_over(ended, None if arguments.detached else parent)
            finally:
                server.stop()
    except SettingsError as error:
        raise UsageError(str(error)) from error
    except asyncio.CancelledError:
        pass  # a signal: a normal end
    return ExitCode.OK


def settings_of(arguments: argparse.Namespace) -> dict[str, object]:
    """The settings of the arguments; `--set` takes precedence. Raises UsageError."""
    settings: dict[str, object] = {"listeners": f"PLAINTEXT://127.0.0.1:{arguments.port}"}
    if arguments.topic:
        settings["horolog.create.topics"] = ",".join(arguments.topic)
    for text in arguments.settings:
        key, separator, value = text.partition("=")
        if not (key.strip() and separator):
            raise UsageError(f"--set {text}: expected KEY=VALUE")
        settings[key.strip()] = value
    return settings


def _tell(console: Console, bootstrap: str, control: str, registry: str | None, *, as_json: bool) -> None:
    from horolog.version import __version__

    addresses = {"bootstrap": bootstrap, "control": control, **({} if registry is None else {"registry": registry})}
    if as_json:
        console.json_line({**addresses, "pid": os.getpid(), "version": __version__})
    else:
        more = "" if registry is None else f", registry on {registry}"
        console.print(
            f"horolog {__version__} test broker on {bootstrap}, control on {control}{more}, process {os.getpid()}"
        )
    console.out.flush()


async def _until_over(ended: asyncio.Event, parent: int | None) -> None:
    """Wait until the event is set; with a parent, also until the parent has changed, or the input is closed."""
    if parent is None:
        await ended.wait()
        return
    loop = asyncio.get_running_loop()
    watched = is_pipe(INPUT)
    if watched:
        loop.add_reader(INPUT, _read_on, loop, INPUT, ended)
    try:
        while os.getppid() == parent and not ended.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), LOOK_AT_PARENT_S)
    finally:
        if watched:
            loop.remove_reader(INPUT)


def is_pipe(descriptor: int) -> bool:
    """Whether the input is a pipe or a socket, which the parent holds open; a terminal, a file and /dev/null say nothing about it."""
    try:
        mode = os.fstat(descriptor).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def _read_on(loop: asyncio.AbstractEventLoop, descriptor: int, ended: asyncio.Event) -> None:
    """Read until the end; nothing else is expected."""
    try:
        is_over = not os.read(descriptor, PIECE_BYTES)
    except BlockingIOError:
        return
    except OSError:
        is_over = True
    if is_over:
        loop.remove_reader(descriptor)
        ended.set()
