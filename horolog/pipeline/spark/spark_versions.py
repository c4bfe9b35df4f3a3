"""Which Spark this is, and what an older one does not have.

Spark has data sources in Python since 4.0. There topics are read, in batches and as a stream, and data frames are written; 4.1 added
filters that are handed over and Arrow for what a stream writes, 4.2 limits on what a batch of a stream reads.
"""

import re
from typing import Any

OLDEST = (4, 0)
NEEDED = "horolog needs Spark 4.0 or newer, the first with data sources in Python; this is pyspark {version}"


class UnsupportedSparkError(ImportError):
    """A Spark without data sources in Python."""


class ReadLimit:
    """Stands for the limits that Spark 4.2 passes to a stream, before that version."""


class ReadAllAvailable(ReadLimit):
    """Everything that there is."""


class ReadMaxRows(ReadLimit):
    """So many rows."""

    def __init__(self, max_rows: int) -> None:
        self.max_rows = max_rows


class SupportsTriggerAvailableNow:
    """What a stream is that can end at what there is when it starts; before 4.2 Spark takes all of that in one batch."""


def number_of(version: str) -> tuple[int, int]:
    """The first two numbers of a version; pure."""
    found = re.match(r"(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def this_spark() -> tuple[int, int]:
    import pyspark

    return number_of(pyspark.__version__)


def require_data_sources() -> None:
    """Raise UnsupportedSparkError, in one sentence, before names are imported that an older Spark does not have."""
    import pyspark

    if number_of(pyspark.__version__) < OLDEST:
        raise UnsupportedSparkError(NEEDED.format(version=pyspark.__version__))


def limits_of_streams() -> tuple[Any, Any, Any, Any]:
    """ReadAllAvailable, ReadLimit, ReadMaxRows and SupportsTriggerAvailableNow: Spark's own, or what stands for them before 4.2."""
    try:
        from pyspark.sql.streaming import datasource
    except ImportError:
        return ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
    return (
        datasource.ReadAllAvailable,
        datasource.ReadLimit,
        datasource.ReadMaxRows,
        datasource.SupportsTriggerAvailableNow,
    )


def arrow_writer_of_streams() -> Any:
    """The class that a stream's writer is of; before 4.1 Spark has none that takes Arrow (`has_arrow_writer_of_streams`)."""
    from pyspark.sql import datasource

    return getattr(datasource, "DataSourceStreamArrowWriter", datasource.DataSourceStreamWriter)


def has_arrow_writer_of_streams() -> bool:
    return this_spark() >= (4, 1)


def has_limits_of_streams() -> bool:
    return this_spark() >= (4, 2)
