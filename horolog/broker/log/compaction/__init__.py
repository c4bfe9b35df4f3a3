"""Compaction: the last record of every key is kept."""

from horolog.broker.log.compaction.cleaner import Cleaned
from horolog.broker.log.compaction.compaction import Compactor, Pass

__all__ = [
    "Cleaned",
    "Compactor",
    "Pass",
]
