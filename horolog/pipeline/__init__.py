"""The data pipeline on Spark: reads topics by time from a broker or from segment files, and writes them with their times."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from horolog.pipeline.reading.offline import plan
    from horolog.pipeline.sources.topic_tables import catalogue
    from horolog.pipeline.spark.spark_session import activate, session
    from horolog.pipeline.tables.table import table

__all__ = ["activate", "catalogue", "plan", "session", "table"]

_HOMES = {
    "activate": "horolog.pipeline.spark.spark_session",
    "catalogue": "horolog.pipeline.sources.topic_tables",
    "plan": "horolog.pipeline.reading.offline",
    "session": "horolog.pipeline.spark.spark_session",
    "table": "horolog.pipeline.tables.table",
}


def __getattr__(name: str) -> Any:
    """The names of `__all__`, imported on first use: reading segment files needs no Spark, and the reverse."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
