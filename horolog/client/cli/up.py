"""`horolog up`: a broker and its console together, on free ports, for a first look and for development."""

import argparse

from horolog.base import interrupts
from horolog.commands.arguments import add_output, add_zone, describe, whole_number
from horolog.commands.console import Console
from horolog.commands.errors import CommandError, UsageError
from horolog.commands.exit_codes import ExitCode

BROKER_PORT, CONSOLE_PORT = 9092, 8080
HIGHEST_PORT = 65_535


def configure(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Start a broker and its console, which listen on this machine only, and print their addresses and "
        "commands to try. Ctrl-C stops both and deletes their data, unless you keep it in a folder with "
        "--data.",
        "horolog up",
        "horolog up --demo",
        "horolog up --data ./data --port 19092",
    )
    parser.add_argument("--demo", action="store_true", help="fill in sample data of the last three days")
    parser.add_argument("--data", metavar="DIR", help="keep the data in this folder (default: a temporary one)")
    parser.add_argument(
        "--port",
        type=port,
        metavar="N",
        help=f"the broker's port; 0 means any free port (default: {BROKER_PORT} if it is free)",
    )
    parser.add_argument(
        "--console-port",
        type=port,
        metavar="N",
        help=f"the console's port; 0 means any free port (default: {CONSOLE_PORT} if it is free)",
    )
    parser.add_argument("--no-console", action="store_true", help="start only the broker")
    parser.add_argument(
        "--set",
        dest="settings",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a setting of the broker; repeatable",
    )
    add_zone(parser)
    add_output(parser)


def port(text: str) -> int:
    """For `type=`: a port, 0 included."""
    number = whole_number(text)
    if number > HIGHEST_PORT:
        raise argparse.ArgumentTypeError(f"{text} is not a port: the highest is {HIGHEST_PORT}")
    return number


def run(arguments: argparse.Namespace, console: Console) -> ExitCode:
    interrupts.end_at_once()  # until the session handles signals itself
    from horolog.broker.base.one_port import LISTEN, CannotListen
    from horolog.broker.config.setting_types import SettingsError
    from horolog.broker.log.storage import DataFolderError, StorageFault
    from horolog.client.cli.starting import pages, session
    from horolog.client.values.errors import KafkaError
    from horolog.commands.online.actions import assignments

    if arguments.no_console and arguments.console_port is not None:
        raise UsageError("--console-port and --no-console are both given", "give only one of them")
    if arguments.console_port and not pages.free(arguments.console_port):
        fault = f"cannot listen on {pages.HOST}:{arguments.console_port}: address already in use"
        raise CommandError(fault, "--console-port N chooses another port, --console-port 0 any free one")
    ports = [
        pages.free(default) if given is None else given
        for given, default in ((arguments.port, BROKER_PORT), (arguments.console_port, CONSOLE_PORT))
    ]
    options = session.UpOptions(
        arguments.data,
        ports[0],
        None if arguments.no_console else ports[1],
        arguments.demo,
        assignments(arguments.settings),
    )
    try:
        session.run(options, console)
    except SettingsError as error:
        raise UsageError(str(error)) from error
    except CannotListen as error:
        if error.names != LISTEN:
            raise
        raise CommandError(error.fault, "--port N chooses another port, --port 0 any free one") from error
    except (DataFolderError, StorageFault) as error:
        raise CommandError(str(error)) from error
    except KafkaError as error:
        raise CommandError(f"the sample data was not written: {error.message}") from error
    return ExitCode.OK
