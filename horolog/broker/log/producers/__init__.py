"""The state of a partition's idempotent and transactional producers, and the files that keep it."""

from horolog.broker.log.producers import producers_file, snapshot_file
from horolog.broker.log.producers.producer_state import (
    LARGEST_SEQUENCE,
    Completed,
    Duplicate,
    KnownProducer,
    ProducerBatch,
    ProducerStates,
    Rejected,
    comes_after,
    next_sequence,
)
from horolog.broker.log.producers.producers_file import Remembered
from horolog.broker.log.producers.row_file import RowFileError
from horolog.broker.log.producers.snapshot_file import SnapshotEntry

__all__ = [
    "LARGEST_SEQUENCE",
    "Completed",
    "Duplicate",
    "KnownProducer",
    "ProducerBatch",
    "ProducerStates",
    "Rejected",
    "Remembered",
    "RowFileError",
    "SnapshotEntry",
    "comes_after",
    "next_sequence",
    "producers_file",
    "snapshot_file",
]
