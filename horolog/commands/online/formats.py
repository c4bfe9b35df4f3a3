"""`--format` of commands that show records: the output of each."""

import argparse
from typing import TYPE_CHECKING

from horolog.commands.console import Console
from horolog.commands.errors import UsageError

if TYPE_CHECKING:
    from horolog.commands.online.decoding import DecodedWriter
    from horolog.commands.online.record_text import Writer


def add_format(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--format",
        default=None,
        metavar="FORMAT",
        help="text, json, raw (values only), or a template such as '%%D %%k %%s\\n'",
    )


def format_of(arguments: argparse.Namespace, console: Console) -> str:
    """`text`, `json`, `raw` or a template."""
    wanted: str = arguments.format or ("json" if console.as_json else "text")
    if console.as_json and wanted != "json":
        raise UsageError(f"-o json and --format {wanted} are both given", "give only one of them")
    if wanted not in {"text", "json", "raw"} and "%" not in wanted:
        raise UsageError(f"--format {wanted!r}: expected text, json, raw or a template that contains %s")
    return wanted


def writer(arguments: argparse.Namespace, console: Console) -> "Writer":
    from horolog.commands.online import record_text
    from horolog.commands.tables import printable

    wanted = format_of(arguments, console)
    if wanted == "json":
        return record_text.json_writer
    if wanted == "raw":
        return record_text.raw_writer
    if wanted == "text":
        return record_text.text_writer(console.show_time, printable)
    try:
        return record_text.template_writer(wanted, console.show_time)
    except record_text.TemplateError as error:
        raise UsageError(f"--format: {error}") from error


def decoded_writer(arguments: argparse.Namespace, console: Console) -> "DecodedWriter | None":
    """None for undecoded values."""
    from horolog.commands.online import decoding

    wanted = format_of(arguments, console)
    if wanted == "raw":
        return None
    return decoding.json_writer if wanted == "json" else decoding.as_text(writer(arguments, console))
