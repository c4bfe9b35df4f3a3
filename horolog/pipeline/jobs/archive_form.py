"""The form of records in an archive: the folders of their rows, and the columns that keys and values are decoded to.

The bytes of keys and values stay unchanged, so that `replay` sends the original; decoded columns are added.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from horolog.client.decoding.registry_access import CA_FILE, TOKEN, USER_INFO
from horolog.commands.errors import UsageError
from horolog.commands.online.decoding import registry_access
from horolog.pipeline.base.positions import OptionError
from horolog.pipeline.tables.layout import BY, BY_DATE, DATE, Folders, wanted_folders
from horolog.pipeline.typed.options import (
    BY_SCHEMA,
    DEAD_LETTERS,
    FORMATS,
    MODES,
    NAMES,
    PARTS,
    RAW,
    TIME_FIELD,
    TIME_UNIT,
    TIME_UNITS,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from horolog.pipeline.tables.table import Table

_OF_PART = {
    "schema": ("TEXT|FILE", "the schema or a file with it: Spark's DDL (for JSON, MessagePack), Avro, .proto or .desc"),
    "message": ("NAME", "the message, if a .proto file has several"),
    "subject": ("NAME", "the subject in the registry whose schema gives the columns (default: TOPIC-{part})"),
    "version": ("N", "the version of that subject (default: the newest, looked up in each round)"),
}


@dataclass(frozen=True, slots=True)
class Form:
    """What the user asks for; by default folders are those of the table, and nothing is decoded."""

    partition_by: str | None = None
    zone: str | None = None
    typed: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The data source's options of typed columns: `value.format`, ..."""

    def folders(self, has: Folders | None) -> Folders:
        """Raises TableError if the table has others."""
        return wanted_folders(has, self.partition_by, self.zone)

    def check(self, spark: "SparkSession", has: Folders | None) -> None:
        """Raise TableError for what this table, or this Java, does not take."""
        folders = self.folders(has)
        if folders.zone != BY_DATE.zone:
            folders.check(spark)

    @property
    def options(self) -> dict[str, str]:
        """For the data source."""
        return {**self.typed, RAW: "true"} if self.typed else {}

    def check_options(self, topics: Sequence[str]) -> None:
        """Raise UsageError for options that make no columns of these topics."""
        try:
            if self.typed:
                self.columns(topics)
        except OptionError as error:
            raise UsageError(str(error)) from error

    def check_columns(self, topics: Sequence[str], table: "Table") -> None:
        """Raise TableError if the table's columns cannot become what schemas say now."""
        if self.typed:
            table.grown(self.columns(topics))

    def lacking(self, topics: Sequence[str], has: "pa.Schema") -> list[str]:
        """The decoded columns of the table that this run leaves null."""
        new = set(self.columns(topics).names) if len(has) else set()
        return [name for name in has.names if name not in new]

    def columns(self, topics: Sequence[str]) -> "pa.Schema":
        """What records of these topics are decoded to, by their present schemas. Raises OptionError."""
        from horolog.pipeline.arrow.columns import SCHEMA_WITH_HEADERS
        from horolog.pipeline.options.options import parse_columns
        from horolog.pipeline.sources.source import decoding_of
        from horolog.pipeline.tables.evolution import NONE, beyond, storable

        known = {name.lower() for name in NAMES}
        for name in self.typed:
            if name.lower() not in known:
                raise OptionError(f"{name} is not an option for typed columns")
        typed, selection, _ = parse_columns({**self.options, "subscribe": ",".join(topics)})
        decoding = decoding_of(typed, selection, include_headers=True)
        return NONE if decoding is None else storable(beyond(decoding.schema(SCHEMA_WITH_HEADERS), ()))


AS_IT_IS = Form()


def add_form(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--partition-by",
        choices=BY,
        help=f"folders by date, or by date and hour, of the records' times (default: unchanged; {DATE} for a new table)",
    )
    parser.add_argument(
        "--zone",
        metavar="ZONE",
        help="the time zone of those dates and hours, such as Europe/Berlin (default: unchanged; UTC for a new table)",
    )
    _add_typed(parser.add_argument_group("decoded columns beside the bytes"))


def _add_typed(group: "argparse._ArgumentGroup") -> None:
    for part in reversed(PARTS):
        group.add_argument(f"--{part}-format", choices=FORMATS, help=f"the format of a {part}, for {part}_decoded")
        for name, (metavar, text) in _OF_PART.items():
            group.add_argument(f"--{part}-{name}", metavar=metavar, help=text.format(part=part))
    group.add_argument(
        "--registry",
        metavar="URL",
        help="the schema registry; a profile may have it (`registry`), with its credentials",
    )
    group.add_argument(
        "--mode",
        type=str.lower,
        choices=MODES,
        help="what to do with broken records: keep them with the reason in _corrupt (permissive, the default), "
        "leave them out, or end the job",
    )
    group.add_argument(
        "--dead-letter-topic", metavar="TOPIC", help="the topic for broken records, instead of the table"
    )
    group.add_argument("--timestamp-field", metavar="FIELD", help="the field of the value that becomes event_time")
    group.add_argument(
        "--timestamp-unit", choices=TIME_UNITS, help="the unit of that field, if the size of a number does not show it"
    )


def form_of(arguments: argparse.Namespace) -> Form:
    """Raises UsageError."""
    return Form(arguments.partition_by, _zone(arguments.zone), typed_of(arguments))


def typed_of(arguments: argparse.Namespace) -> dict[str, str]:
    """The options of the data source that the command line has."""
    words = {f"{part}.{name}": f"{part}_{name}" for part in PARTS for name in ("format", *_OF_PART)}
    words |= {"mode": "mode", DEAD_LETTERS: "dead_letter_topic"}
    words |= {TIME_FIELD: "timestamp_field", TIME_UNIT: "timestamp_unit"}
    given = {name: str(value) for name, word in words.items() if (value := getattr(arguments, word)) is not None}
    needs_registry = any(given.get(f"{part}.format") in BY_SCHEMA and f"{part}.schema" not in given for part in PARTS)
    if arguments.registry is not None or needs_registry:
        given |= _registry(arguments)
    return given


def _registry(arguments: argparse.Namespace) -> dict[str, str]:
    """The registry, with the credentials that a profile or a file has for it."""
    access = registry_access(arguments)
    if access is None:
        return {}
    said = {"registry": access.url, USER_INFO[0]: access.user_info, TOKEN[0]: access.token, CA_FILE[0]: access.ca_file}
    return {name: value for name, value in said.items() if value is not None}


def _zone(text: str | None) -> str | None:
    """The zone of that name, which Java must know as well."""
    if text is None or text.upper() == "UTC":
        return text and "UTC"
    from zoneinfo import available_timezones

    from horolog.client.values.times import TimeTextError, parse_zone

    try:
        name = getattr(parse_zone(text), "key", None)
    except TimeTextError as error:
        raise UsageError(f"--zone: {error}") from error
    if name not in available_timezones():
        raise UsageError(
            f"--zone: {text!r} is not the name of a time zone, such as Europe/Berlin; other readers need one to find the same dates"
        )
    return str(name)
