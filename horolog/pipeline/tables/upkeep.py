"""Removal from a table: whole old dates, versions that are no longer needed, files that no commit names."""

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass

from horolog.pipeline.tables.layout import BY_DATE, DATE, Folders

NO_TIME = "1970-01-01"
"""Records without a time lie in a date up to this one. They have no age, so they stay."""


@dataclass(frozen=True, slots=True)
class Part:
    """A file of rows, as a table's commits know it."""

    name: str
    date: str
    size_bytes: int
    records: int


@dataclass(frozen=True, slots=True)
class Gone:
    """What was removed, or would be."""

    files: int = 0
    records: int = 0
    size_bytes: int = 0
    dates: tuple[str, ...] = ()


def gone(parts: Iterable[Part]) -> Gone:
    found = list(parts)
    dates = tuple(sorted({part.date for part in found}))
    return Gone(len(found), sum(part.records for part in found), sum(part.size_bytes for part in found), dates)


def first_kept(folders: Folders | None, older_than_ms: int) -> dt.date:
    """The first date, by the clocks of the table's zone, that may have a row of that time or a later one; pure."""
    dates = Folders(DATE, (folders or BY_DATE).zone)
    kept: dt.date = dates.values(dates.first(older_than_ms))[0]
    return kept


def is_old(date: str, keep_from: dt.date) -> bool:
    """Whether a date's rows are removed; pure."""
    return NO_TIME < date < keep_from.isoformat()


def old_rows(keep_from: dt.date) -> str:
    """The same as a filter on rows."""
    return f"{DATE} > '{NO_TIME}' AND {DATE} < '{keep_from}'"


def date_of_file(name: str) -> str:
    """Of the folder that a file of rows lies in."""
    return name.rpartition(f"{DATE}=")[2].partition("/")[0]
