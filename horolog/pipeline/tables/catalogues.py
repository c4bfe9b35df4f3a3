"""Iceberg tables that a catalogue knows by name: REST, SQL, Glue and whatever else `pyiceberg` loads, and how to get at their files.

A catalogue is named as `pyiceberg` names it: its properties are those of `.pyiceberg.yaml`, of the environment (`PYICEBERG_CATALOG__...`), and
those of a `CatalogueTable`; a kind (`rest`, `sql`, `glue`) that no configuration has as a name stands for the kind. Files are
opened with the credentials that the catalogue returns or its configuration has, else with those of other tables.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from horolog.pipeline.stores.file_systems import HDFS
from horolog.pipeline.stores.object_stores import Place, hadoop_options, is_url
from horolog.pipeline.stores.store import place_of
from horolog.pipeline.tables.table import CommitLost, TableError
from horolog.stores.faults import StoreError
from horolog.stores.place import S3

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_KINDS = ("rest", "sql", "glue", "hive", "dynamodb")
_KEY = "s3.access-key-id"
_LIBRARIES = {
    "pyiceberg", "pyarrow", "requests", "urllib3", "sqlalchemy", "sqlite3", "psycopg2", "botocore", "boto3", "thrift", "pydantic_core",
}  # fmt: skip
"""Libraries whose errors are raised as the catalogue's."""
_HADOOP_NAMES = {
    _KEY: "fs.s3a.access.key",
    "s3.secret-access-key": "fs.s3a.secret.key",
    "s3.session-token": "fs.s3a.session.token",
    "s3.endpoint": "fs.s3a.endpoint",
    "s3.region": "fs.s3a.endpoint.region",
}


@dataclass(frozen=True, slots=True)
class CatalogueTable:
    """`table` is namespace.name; `location` is where its files go, if the catalogue does not choose."""

    catalogue: str
    table: str
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    location: str | None = None

    def __post_init__(self) -> None:
        if not all(self.table.split(".")) or "." not in self.table:
            raise TableError(f"{self.table}: a table in a catalogue is NAMESPACE.NAME")

    def __str__(self) -> str:
        return f"{self.table} in the catalogue {self.catalogue}"

    @property
    def namespace(self) -> str:
        return self.table.rpartition(".")[0]

    @property
    def known_as(self) -> str:
        """What distinguishes this table from others, as far as it is known."""
        where = [f"{name}={self.properties[name]}" for name in ("uri", "warehouse") if name in self.properties]
        return " ".join([self.catalogue, *where, self.table])

    def load(self, spark: "SparkSession") -> Any:
        """The catalogue, by pyiceberg; TableError if it cannot be opened."""
        from pyiceberg.catalog import load_catalog
        from pyiceberg.utils.config import Config

        with self.told():
            known = {**(Config().get_catalog_config(self.catalogue) or {}), **self.properties}
            if not known.keys() & {"type", "uri", "py-catalog-impl"} and self.catalogue not in _KINDS:
                raise TableError(
                    f"there are no settings for a catalogue {self.catalogue}: neither its uri, nor its type"
                    f" ({', '.join(_KINDS)}), nor a section in .pyiceberg.yaml"
                )
            if self.catalogue in _KINDS and not known.keys() & {"type", "py-catalog-impl"}:
                known["type"] = self.catalogue
            own = {} if _KEY in known else file_properties(spark, self.location or known.get("warehouse"))
            try:
                return load_catalog(self.catalogue, **{**own, **known})
            except ValueError as error:
                raise TableError(f"the catalogue {self.catalogue}: {_sentence(error)}") from None

    @contextmanager
    def told(self) -> Iterator[None]:
        """Raises a catalogue's errors as TableError in one sentence; conflicts as CommitLost."""
        try:
            with told_of_conflicts():
                yield
        except (TableError, StoreError):
            raise
        except Exception as error:
            if type(error).__module__.partition(".")[0] not in _LIBRARIES and not isinstance(error, OSError):
                raise
            raise TableError(f"{self}: {_sentence(error)}") from None


@contextmanager
def told_of_conflicts() -> Iterator[None]:
    from pyiceberg.exceptions import CommitFailedException, TableAlreadyExistsError, ValidationException

    try:
        yield
    except (CommitFailedException, TableAlreadyExistsError, ValidationException) as error:
        raise CommitLost(
            f"another job has committed to the table in the meantime; nothing was added ({_sentence(error)})"
        ) from None


def _sentence(error: Exception) -> str:
    """The first line of an error, without a login that is in a URL."""
    if type(error).__name__ in {"ConnectionError", "ConnectTimeout", "EndpointConnectionError"}:
        return "it cannot be reached"
    text = re.sub(r"://[^/@\s]*@", "://", str(error).strip().partition("\n")[0])[:300]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def file_properties(spark: "SparkSession", location: str | None) -> dict[str, str]:
    """The properties that open files for pyiceberg if the catalogue has none: of the location's store, or else of S3."""
    with suppress(StoreError):
        place = place_of(location if location and is_url(location) else "s3a://any-bucket", spark)
        if isinstance(place, Place):
            return place.as_iceberg_properties()
    return {}


def place_at(location: str, spark: "SparkSession", given: Mapping[str, Any]) -> str | Place:
    """The place of an Iceberg location; `given` is what its files are opened with in pyiceberg."""
    scheme = urlsplit(location).scheme
    if scheme in {"", "file"}:
        return location.removeprefix("file:").removeprefix("//") if scheme else location  # pyiceberg decodes no path
    if scheme in HDFS:
        return Place.of(location, {name: str(value) for name, value in given.items()} | hadoop_options(spark, location))
    if scheme not in S3 or not given.get(_KEY):
        return place_of(location, spark)
    said = {theirs: str(given[own]) for own, theirs in _HADOOP_NAMES.items() if given.get(own)}
    others = (*_HADOOP_NAMES.values(), "fs.s3a.bucket.")
    hadoop = {
        name: value for name, value in hadoop_options(spark, location).items() if not name.lower().startswith(others)
    }
    return Place.of(location, hadoop | said)
