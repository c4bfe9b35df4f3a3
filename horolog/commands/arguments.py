"""The arguments that commands share, so that an option means the same everywhere."""

import argparse
import os
import re
import textwrap
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NoReturn

DEFAULT_BOOTSTRAP = "localhost:9092"
BOOTSTRAP_VARIABLE = "HOROLOG_BOOTSTRAP"
COMMAND_CONFIG_VARIABLE = "HOROLOG_COMMAND_CONFIG"
PROFILE_VARIABLE = "HOROLOG_PROFILE"
ZONE_VARIABLE = "HOROLOG_TZ"
OUTPUTS = ("text", "json")
_NOT_AN_OPTION = re.compile(r"-[0-9]")


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Wraps sentences, and keeps examples as written; names of commands and options have their own column."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        """An indented line is an example; the lines between two of them, or between empty ones, are one paragraph."""
        blocks = groupby(text.splitlines(), lambda line: bool(line.strip()) and not line.startswith(" "))
        return "\n".join(
            textwrap.fill(" ".join(lines), width, initial_indent=indent, subsequent_indent=indent)
            if is_prose
            else "\n".join(indent + line for line in lines)
            for is_prose, lines in blocks
        )


class Parser(argparse.ArgumentParser):
    """An argument parser that shows its examples as written, accepts no abbreviated options, reports an error of usage in
    two lines, and lets a value begin with a minus and a digit: `-48h` is a time.
    """

    def __init__(self, **settings: object) -> None:
        settings.setdefault("formatter_class", Formatter)
        settings.setdefault("allow_abbrev", False)
        super().__init__(**settings)  # type: ignore[arg-type]
        self._negative_number_matcher = _NOT_AN_OPTION

    def parse_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> argparse.Namespace:
        found, unknown = self.parse_known_args(args, namespace)
        if unknown:
            from horolog.commands import usage

            parser = usage.chosen(self, found)
            parser.error(usage.unknown(parser, unknown))
        return found

    def error(self, message: str) -> NoReturn:
        from horolog.commands import usage

        self.exit(2, usage.two_lines(self, message))

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Suggest the likely value in place of one that is not among an argument's choices."""
        if action.choices is None or value in action.choices:
            return
        from horolog.commands.suggestions import action_like

        names = [str(one) for one in action.choices]
        like = action_like(str(value), names)
        advice = f"do you mean {like!r}?" if like is not None else f"expected one of {', '.join(names)}"
        raise argparse.ArgumentError(action, f"there is no {value!r}; {advice}")


def describe(parser: argparse.ArgumentParser, description: str, *examples: str) -> None:
    """Set the text of `--help` for a command: a description, and examples as a user would type them."""
    parser.description = description
    parser.epilog = "examples:\n" + "\n".join(f"  {example}" for example in examples)


def add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", choices=OUTPUTS, default="text", help="the output format (default: text)")


def add_broker_settings(parser: argparse.ArgumentParser) -> None:
    """--config and --set: the settings that a broker on these folders would have."""
    parser.add_argument("--config", type=Path, metavar="FILE", help="the broker's settings, as for serve")
    parser.add_argument(
        "--set",
        dest="assigned",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a setting of the broker; repeatable",
    )


def add_zone(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--tz",
        metavar="ZONE",
        default=os.environ.get(ZONE_VARIABLE),
        help=f"the time zone for input and output: Europe/Berlin, UTC, +02:00 (default: {ZONE_VARIABLE}, then the machine's)",
    )


def add_isolation(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--isolation",
        choices=("read_committed", "read_uncommitted"),
        default="read_committed",
        help="read_uncommitted also reads records of open and aborted transactions (default: read_committed)",
    )


def add_broker(parser: argparse.ArgumentParser, *, several_clusters: bool = False) -> None:
    """For commands that talk to a broker; `connection.settle` chooses one if none is named."""
    more = "; repeat it for another cluster" if several_clusters else ""
    parser.add_argument(
        "-b",
        "--bootstrap",
        action="append" if several_clusters else "store",
        metavar="HOST:PORT",
        help=f"brokers to connect to, separated by commas (default: {BOOTSTRAP_VARIABLE}, then {DEFAULT_BOOTSTRAP}){more}",
    )


def duration(text: str) -> int:
    """For `type=`: a duration in milliseconds."""
    from horolog.client.values.times import TimeTextError, parse_duration

    try:
        return parse_duration(text)
    except TimeTextError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def whole_number(text: str) -> int:
    """For `type=`: a number from 0."""
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of 0 or more")
    return int(text)


def positive_number(text: str) -> int:
    """For `type=`: a number from 1."""
    number = whole_number(text)
    if number == 0:
        raise argparse.ArgumentTypeError("expected a number of 1 or more")
    return number


def partitions(text: str) -> list[int]:
    """For `type=`: `0,3,5-7` as partition numbers."""
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        start = whole_number(first)
        end = whole_number(last) if dash else start
        if end < start or end - start > 100_000:
            raise argparse.ArgumentTypeError(f"{part!r} is not a range of partitions such as 5-7")
        found.extend(range(start, end + 1))
    return list(dict.fromkeys(found))


def add_data_folders(parser: argparse.ArgumentParser) -> None:
    """`--data`: folders in place of a broker."""
    parser.add_argument(
        "--data",
        action="append",
        default=[],
        metavar="DIR",
        help="the data folder of a stopped broker, instead of a running one; repeat it for each folder of log.dirs",
    )


def add_endpoint(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--endpoint", default="", metavar="URL", help="an S3 server other than Amazon's")


def is_store(text: str) -> bool:
    """Whether an argument is the URL of a store, and no path of this machine."""
    return "://" in text
