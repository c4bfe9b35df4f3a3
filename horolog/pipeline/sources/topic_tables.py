"""Topics as tables of SQL: a database with a view of each topic, for plain SELECT, SHOW TABLES and DESCRIBE.

Spark takes a catalogue as a Java class (`spark.sql.catalog.NAME`), which a Python data source does not have. Nor does it pass a table's
options to the readers of such a source, only those after WITH in a query. So one table has no options at all, and each view
brings its own:

    CREATE TABLE horolog.topics (...) USING horolog
    CREATE VIEW log.shop AS SELECT * FROM horolog.topics WITH (`kafka.bootstrap.servers` = ..., `subscribe` = 'shop')

Filters go through views to the source. Every user of the database can read the views' text, so it must have no secrets.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import TYPE_CHECKING

from horolog.broker.log.storage import ReadOnlyStorage
from horolog.pipeline.base.positions import OptionError
from horolog.pipeline.options.brokers import BOOTSTRAP
from horolog.pipeline.options.options import ReadOptions, Selection, parse_read
from horolog.pipeline.reading.folders import find_partitions
from horolog.pipeline.reading.object_files import ObjectFiles
from horolog.pipeline.reading.prefixes import prefix_at
from horolog.pipeline.spark.spark_session import HIDDEN

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

SOURCES = "horolog"
"""The database of the tables that views read from, one for each set of columns."""
_NOTE = "a topic, by horolog: "
_SECRET = re.compile(HIDDEN)
_USER_IN_URL = re.compile(r"://[^/]*@")
_NOT_HERE = ("subscribe", "subscribePattern", "assign")
_NAME = re.compile(r"\w+", re.ASCII)
NOTHING = Selection(pattern="")
"""The names of topics are wanted, and nothing of their partitions."""


@dataclass(slots=True)
class Catalogue:
    """The views of a database, by name with the topic of each. `refresh` has it follow the topics that come and go."""

    spark: "SparkSession"
    name: str
    options: Mapping[str, str]
    tables: dict[str, str] = field(default_factory=dict)
    undecoded: dict[str, str] = field(default_factory=dict)
    """By topic why its keys or values are bytes, although the options say a format: the registry has no schema for them."""

    def refresh(self) -> "Catalogue":
        """Create views of new topics, and drop those of topics that are gone."""
        topics = topics_of(parse_read({"subscribePattern": ".*", **self.options}, 0))
        wanted = view_names(topics)
        self.spark.sql(f"CREATE DATABASE IF NOT EXISTS {_quoted(SOURCES)}")
        self.spark.sql(f"CREATE DATABASE IF NOT EXISTS {_quoted(self.name)}")
        own = self._own_views()
        for name in own.keys() - wanted.keys():
            self.spark.sql(f"DROP VIEW IF EXISTS {_quoted(self.name)}.{_quoted(name)}")
        self.undecoded = {}
        for name, topic in wanted.items():
            self._make_view(name, topic)
        self.tables = wanted
        return self

    def _own_views(self) -> dict[str, str]:
        """The views that were made here before, by name with their topics."""
        found = self.spark.catalog.listTables(self.name)
        notes = {one.name: one.description or "" for one in found if not one.isTemporary}
        return {name: note.removeprefix(_NOTE) for name, note in notes.items() if note.startswith(_NOTE)}

    def _make_view(self, name: str, topic: str) -> None:
        given, source = self._read_as(topic)
        said = ", ".join(f"{_quoted(key)} = {_literal(value)}" for key, value in given.items())
        view, note = f"{_quoted(self.name)}.{_quoted(name)}", _literal(_NOTE + topic)
        text = f"SELECT * FROM {source} WITH ({said})"  # noqa: S608 - all is quoted
        self.spark.sql(f"CREATE OR REPLACE VIEW {view} COMMENT {note} AS {text}")

    def _read_as(self, topic: str) -> tuple[dict[str, str], str]:
        """The options of a topic's view, and the table to read from: keys or values without a schema are left undecoded."""
        from horolog.pipeline.reading.preparing import NoSchemaOfTopic
        from horolog.pipeline.sources.source import HorologSource
        from horolog.pipeline.typed.options import without_part

        given = {**self.options, "subscribe": topic}
        while True:
            try:
                return given, self._source(HorologSource(given).schema())
            except NoSchemaOfTopic as error:
                self.undecoded[topic] = "; ".join(filter(None, (self.undecoded.get(topic), str(error))))
                given = without_part(given, error.part)

    def _source(self, schema: "StructType") -> str:
        """The table with these columns."""
        from horolog.pipeline.sources.source import SCHEMA

        text = schema.toDDL()
        number = sha256(text.encode()).hexdigest()[:8]
        table = f"{_quoted(SOURCES)}.{_quoted('topics' if schema == SCHEMA else f'topics_{number}')}"
        self.spark.sql(f"CREATE TABLE IF NOT EXISTS {table} ({text}) USING horolog")
        return table


def catalogue(
    spark: "SparkSession",
    name: str,
    bootstrap: str | None = None,
    path: str | None = None,
    options: Mapping[str, str] | None = None,
) -> Catalogue:
    """A database `name` with a view of each topic of a cluster or of a folder; `options` are those of reading, for all of them."""
    given = dict(options or {})
    given |= {BOOTSTRAP: bootstrap} if bootstrap is not None else {}
    given |= {"path": path} if path is not None else {}
    if not _NAME.fullmatch(name) or name.lower() == SOURCES:
        raise OptionError(f"{name!r} cannot name a database of topics: use letters, digits and _, but not {SOURCES!r}")
    for option, value in given.items():
        if option in _NOT_HERE:
            raise OptionError(f"{option}: each topic has a view of its own")
        if _SECRET.search(option) or _USER_IN_URL.search(value):
            raise OptionError(
                f"{option} would be visible to everyone who can read the database {name};"
                " put it into a file on the driver's machine, and name that with kafka.config.file"
            )
    return Catalogue(spark, name, given).refresh()


def topics_of(options: ReadOptions) -> list[str]:
    """The topics there are, without internal ones."""
    if options.path is not None:
        with prefix_at(replace(options, selection=NOTHING)) as prefix:
            files = prefix or (ReadOnlyStorage() if options.place is None else ObjectFiles(options.place))
            found = {one.topic for one in find_partitions(options.path, files)}
        return sorted(topic for topic in found if not topic.startswith("__"))
    from horolog.pipeline.reading.broker_log import BrokerLog

    with BrokerLog(options) as broker:
        return sorted({one.topic for one in broker.partitions(options.selection)})


def view_names(topics: Iterable[str]) -> dict[str, str]:
    """Names that Spark accepts for views: dots and dashes become _; topics that would share a name each get a view."""
    found: dict[str, str] = {}
    for topic in sorted(topics):
        plain = re.sub(r"\W", "_", topic, flags=re.ASCII).lower()
        name = plain
        number = 2
        while name in found:
            name, number = f"{plain}_{number}", number + 1
        found[name] = topic
    return found


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _literal(text: str) -> str:
    escaped = str(text).replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
