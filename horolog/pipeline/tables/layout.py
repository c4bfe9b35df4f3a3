"""The layout of a table's rows: their columns, and the folders by date, or by date and hour, into which they are partitioned.

A folder is a number: days, or hours, since 1970 on the clock of the table's zone. Spark computes it for each row; here it
becomes a path (`date=2026-11-24/hour=07`) and back. Clocks are put back, so a later time may belong to a folder with a smaller
number: a range of times covers the folders of all offsets that the zone has around its ends. Two hours of one name share a folder.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

from horolog.pipeline.tables.table import TableError

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from pyspark.sql import Column, DataFrame, SparkSession

    Compare = Callable[[Column, Column], Column]

DATE, HOUR = "date", "hour"
BY = (DATE, HOUR)
NUMBER = "_folder"
"""The column with the number of a row's folder, while rows are on their way to it."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY = _EPOCH.toordinal()
_HOUR_MS, _DAY_MS = 3_600_000, 86_400_000
_FIRST_MS, _LAST_MS = (
    (datetime.fromisoformat(text) - _EPOCH) // timedelta(milliseconds=1)
    for text in ("0001-01-03T00:00Z", "9999-12-29T00:00Z")
)
"""Times before and after lie in the folders of these: other readers know dates of four digits only."""
_ZONES_DIFFER_MS = _HOUR_MS
"""By how much the offset that a writer's JVM knows may differ from Python's: governments change zones."""


@dataclass(frozen=True)
class Folders:
    """Which folder a row goes into: by the date, or the date and the hour, that its time has in a zone."""

    by: str = DATE
    zone: str = "UTC"

    def __str__(self) -> str:
        return f"{' and '.join(self.names)} in {self.zone}"

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that the names of folders have."""
        return BY if self.by == HOUR else (DATE,)

    @property
    def _unit_ms(self) -> int:
        return _HOUR_MS if self.by == HOUR else _DAY_MS

    @cached_property
    def _zone(self) -> "ZoneInfo":
        from zoneinfo import ZoneInfo

        return ZoneInfo(self.zone)

    # -- of rows, in Spark

    def check(self, spark: "SparkSession") -> None:
        """Raise TableError for a zone that is too new for this Java."""
        from pyspark.errors import PySparkException
        from pyspark.sql import functions as f

        try:
            spark.range(1).select(f.from_utc_timestamp(f.lit("2000-01-01"), self.zone)).collect()
        except PySparkException as error:
            raise TableError(f"Java does not support the time zone {self.zone} here") from error

    def number(self) -> "Column":
        """Of each row; a record without a time is of the hour before 1970, as its -1 ms is."""
        from pyspark.sql import functions as f

        time = f.least(
            f.greatest("timestamp", f.timestamp_millis(f.lit(_FIRST_MS))), f.timestamp_millis(f.lit(_LAST_MS))
        )
        local = time if self.zone == "UTC" else f.from_utc_timestamp(time, self.zone)
        return f.floor(f.unix_millis(local) / self._unit_ms).cast("int")

    def columns(self, number: "Column") -> "list[Column]":
        """What the folder's name has, of its number."""
        from pyspark.sql import functions as f

        days = f.floor(number / 24).cast("int") if self.by == HOUR else number
        dated = f.date_add(f.lit("1970-01-01").cast("date"), days).alias(DATE)
        return [dated, f.pmod(number, f.lit(24)).alias(HOUR)] if self.by == HOUR else [dated]

    def in_range(self, rows: "DataFrame", since_ms: int | None, until_ms: int | None) -> "DataFrame":
        """Rows of a range of times, by folder first: files of other folders are not opened."""
        if since_ms is not None:
            rows = rows.where(_at_least(self.names, self.values(self.first(since_ms))))
        if until_ms is not None:
            rows = rows.where(_at_most(self.names, self.values(self.last(until_ms))))
        return _by_time(rows, since_ms, until_ms)

    # -- of times, here

    def first(self, since_ms: int) -> int:
        """The first folder that may have a row at or after that time."""
        return self._number(since_ms, min(self._offsets(since_ms, 1)) - self._slack_ms)

    def last(self, until_ms: int) -> int:
        """The last folder that may have a row before that time."""
        return self._number(until_ms - 1, max(self._offsets(until_ms - 1, -1)) + self._slack_ms)

    @property
    def _slack_ms(self) -> int:
        return 0 if self.zone == "UTC" else _ZONES_DIFFER_MS

    def _offsets(self, ms: int, direction: int) -> set[int]:
        """The zone's offsets in the day and an hour behind that time, or before it: clocks were never put back by more."""
        if self.zone == "UTC":
            return {0}
        moments = (_EPOCH + timedelta(milliseconds=_inside(ms), hours=direction * hours) for hours in range(26))
        offsets = (moment.astimezone(self._zone).utcoffset() for moment in moments)
        return {offset // timedelta(milliseconds=1) for offset in offsets if offset is not None}

    def _number(self, ms: int, offset_ms: int) -> int:
        return (_inside(ms) + offset_ms) // self._unit_ms

    # -- of numbers

    def values(self, number: int) -> tuple[Any, ...]:
        """What the columns of the folder's name have: its date, and its hour."""
        days, hour = divmod(number, 24) if self.by == HOUR else (number, 0)
        return (date.fromordinal(_EPOCH_DAY + days), hour)[: len(self.names)]

    def path(self, number: int) -> str:
        day, *hour = self.values(number)
        return "/".join([f"{DATE}={day.isoformat()}", *(f"{HOUR}={one:02}" for one in hour)])

    def number_of(self, path: str) -> int:
        """Of the folder that a file lies in."""
        found = dict(part.split("=", 1) for part in path.split("/") if "=" in part)
        try:
            days = date.fromisoformat(found[DATE]).toordinal() - _EPOCH_DAY
            return days * 24 + int(found[HOUR]) if self.by == HOUR else days
        except (KeyError, ValueError) as error:
            raise TableError(f"{path} is not in a folder by {self}") from error


def in_any_zone(rows: "DataFrame", since_ms: int | None, until_ms: int | None) -> "DataFrame":
    """Rows of a range of times whose folders are of an unknown zone: its dates are those of UTC, and one beside them."""
    from pyspark.sql import functions as f

    if since_ms is not None:
        rows = rows.where(f.col(DATE) >= f.lit(BY_DATE.values(BY_DATE.first(since_ms - _DAY_MS))[0]))
    if until_ms is not None:
        rows = rows.where(f.col(DATE) <= f.lit(BY_DATE.values(BY_DATE.last(until_ms + _DAY_MS))[0]))
    return _by_time(rows, since_ms, until_ms)


def _by_time(rows: "DataFrame", since_ms: int | None, until_ms: int | None) -> "DataFrame":
    from pyspark.sql import functions as f

    if since_ms is not None:
        rows = rows.where(f.unix_millis("timestamp") >= since_ms)
    return rows if until_ms is None else rows.where(f.unix_millis("timestamp") < until_ms)


def _at_least(names: Sequence[str], values: Sequence[Any]) -> "Column":
    """Of folders, by the columns of their names."""
    return _beyond(names, values, lambda column, value: column >= value, lambda column, value: column > value)


def _at_most(names: Sequence[str], values: Sequence[Any]) -> "Column":
    return _beyond(names, values, lambda column, value: column <= value, lambda column, value: column < value)


def _beyond(names: Sequence[str], values: Sequence[Any], reaches: "Compare", passes: "Compare") -> "Column":
    from pyspark.sql import functions as f

    day = f.col(names[0])
    found = reaches(day, f.lit(values[0]))
    return (
        found
        if len(names) == 1
        else found & (passes(day, f.lit(values[0])) | reaches(f.col(names[1]), f.lit(values[1])))
    )


def _inside(ms: int) -> int:
    return min(max(ms, _FIRST_MS), _LAST_MS)


BY_DATE = Folders()
"""The default, also of tables that do not say."""


def wanted_folders(has: Folders | None, by: str | None, zone: str | None) -> Folders:
    """The folders of the rows: those of the table; TableError if others are asked for."""
    known = has or BY_DATE
    wanted = Folders(by or known.by, zone or known.zone)
    if has is not None and wanted != has:
        raise TableError(f"the table has folders by {has}, not by {wanted}; use another folder for those")
    return wanted
