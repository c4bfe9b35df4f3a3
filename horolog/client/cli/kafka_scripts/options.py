"""Shared by Kafka's scripts: the broker to ask, files of client settings, lists of KEY=VALUE."""

import argparse
import re
from pathlib import Path
from typing import Any

from horolog.commands.arguments import DEFAULT_BOOTSTRAP, add_broker, duration, whole_number
from horolog.commands.connection import NOTHING, SourcedSettings, read_file, security_of
from horolog.commands.console import Console
from horolog.commands.errors import UsageError

DEFAULT_TIMEOUT = "60s"
"""As in Kafka's clients: init containers rely on the first command to wait for the broker."""
_BETWEEN_ASSIGNMENTS = re.compile(r",(?![^\[]*\])")


def add_version(parser: argparse.ArgumentParser) -> None:
    from horolog.version import __version__

    parser.add_argument("--version", action="version", version=f"horolog {__version__}")


def add_bootstrap(parser: argparse.ArgumentParser, *config_options: str) -> None:
    """`--bootstrap-server`, and files of client settings under the script's option names."""
    add_broker(parser)
    parser.set_defaults(bootstrap=None, timeout=duration(DEFAULT_TIMEOUT))
    parser.add_argument("--bootstrap-server", "--broker-list", dest="bootstrap", metavar="HOST:PORT")
    parser.add_argument("--zookeeper", metavar="HOST:PORT", help=argparse.SUPPRESS)
    parser.add_argument(
        *(config_options or ("--command-config",)),
        dest="settings_file",
        type=Path,
        metavar="FILE",
        help="a setting of the client",
    )


def add_actions(parser: argparse.ArgumentParser, *names: str) -> None:
    """One option for each action, of which a command line has exactly one."""
    action = parser.add_mutually_exclusive_group(required=True)
    for name in names:
        action.add_argument(f"--{name}", dest="action", action="store_const", const=name)


def check_connection(arguments: argparse.Namespace, console: Console) -> None:
    """Turn the connection options into what `connected` expects. Raises UsageError."""
    if arguments.zookeeper is not None and arguments.bootstrap is None:
        raise UsageError(
            f"--zookeeper {arguments.zookeeper}: there is no ZooKeeper here",
            f"use --bootstrap-server {DEFAULT_BOOTSTRAP}",
        )
    if arguments.bootstrap is None:
        arguments.bootstrap = DEFAULT_BOOTSTRAP
    file = NOTHING if arguments.settings_file is None else read_file(arguments.settings_file, console)
    given = {**file.settings, **assignments(getattr(arguments, "client_property", None))}
    arguments.security = security_of(SourcedSettings(file.source or "the settings of the client", given))
    for key in ("default.api.timeout.ms", "request.timeout.ms"):
        if key in given:
            arguments.timeout = _number(key, given[key])
            break
    arguments.client_settings = given


def _number(key: str, text: str) -> int:
    try:
        return whole_number(text)
    except argparse.ArgumentTypeError as error:
        raise UsageError(f"{key}={text}: {error}") from error


def assignments(texts: list[str] | None) -> dict[str, str]:
    """`KEY=VALUE` of repeatable options; one may hold several, separated by commas, and a value in [] may contain commas."""
    found: dict[str, str] = {}
    for text in texts or ():
        for part in _BETWEEN_ASSIGNMENTS.split(text):
            key, sign, value = part.partition("=")
            if not key.strip() or not sign:
                raise UsageError(f"{part!r}: expected KEY=VALUE")
            bracketed = value.startswith("[") and value.endswith("]")
            found[key.strip()] = value[1:-1] if bracketed else value
    return found


def properties(texts: list[str] | None) -> dict[str, str]:
    r"""`KEY=VALUE` of `--property`, one in each; \t, \n and the like in values stay as the shell passes them."""
    found: dict[str, str] = {}
    for text in texts or ():
        key, sign, value = text.partition("=")
        if not key:
            raise UsageError(f"{text!r}: expected KEY=VALUE")
        found[key] = value if sign else ""
    return found


def is_true(given: dict[str, str], key: str, default: bool = False) -> bool:
    text = given.get(key, "").strip().lower()
    return text == "true" if text else default


def add_unused(parser: argparse.ArgumentParser, *names: str, takes_value: bool = True) -> None:
    """Options that tune Kafka's own clients: accepted, so that scripts need no edits, but ignored."""
    for name in names:
        options: dict[str, Any] = {"metavar": "VALUE"} if takes_value else {"action": "store_true"}
        parser.add_argument(name, help=argparse.SUPPRESS, dest="unused", **options)
