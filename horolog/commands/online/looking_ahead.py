"""Options of commands that merge records by time: how far to look for late records, and the sentences about them afterwards."""

import argparse
import re
from typing import TYPE_CHECKING

from horolog.commands.console import Console

if TYPE_CHECKING:
    from horolog.client.moments.look_ahead import LookAhead
    from horolog.client.moments.moment import Report

DEFAULT = "10m, at most 32 MiB"
_SIZE = re.compile(r"([0-9]{1,9})\s*(k|m|g)i?b", re.IGNORECASE)
_SHIFTS = {"k": 10, "m": 20, "g": 30}


def add_look_ahead(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--look-ahead",
        type=look_ahead,
        metavar="BOUND",
        help=f"how far past the range to look for late records: 1h, 64MiB, or all (default: {DEFAULT})",
    )


def look_ahead(text: str) -> "LookAhead":
    """For `type=`."""
    from horolog.client.moments.look_ahead import TO_THE_END, LookAhead
    from horolog.client.values.times import TimeTextError, parse_duration

    if text.strip().lower() == "all":
        return TO_THE_END
    size = _SIZE.fullmatch(text.strip())
    if size is not None:
        return LookAhead(None, int(size[1]) << _SHIFTS[size[2].lower()])
    try:
        return LookAhead(parse_duration(text), None)
    except TimeTextError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a duration (1h), a size (64MiB) or all") from error


def tell(report: "Report", console: Console) -> None:
    """Tell what the shown records do not say by themselves."""
    from horolog.client.values.times import format_duration

    if report.late:
        most = format_duration(report.most_late_ms)
        console.note(f"{report.late} of {report.records} records came late, by up to {most}")
    for sentence in report.notes():
        console.note(sentence)
    for sentence in report.warnings():
        console.warn(f"{sentence}; --look-ahead all reads to the end" if "look-ahead" in sentence else sentence)
