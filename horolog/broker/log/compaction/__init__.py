"""Compaction: of every key the last record stays."""

from horolog.broker.log.compaction.cleaner import Cleaned
from horolog.broker.log.compaction.compaction import Compactor, Pass

__all__ = [
    "Cleaned",
    "Compactor",
    "Pass",
]
