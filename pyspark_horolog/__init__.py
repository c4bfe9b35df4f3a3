"""Spark looks into packages named `pyspark_...` for data sources: this one has `horolog`, so that nobody has to register it."""

from horolog.pipeline.sources.source import HorologSource as DefaultSource

__all__ = ["DefaultSource"]
