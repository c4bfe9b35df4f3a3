"""Counts the rows of a task and digests them, in any order: shows whether a task that runs again has the same rows."""

from collections.abc import Iterable, Iterator
from zlib import crc32

import numpy as np
import pyarrow as pa

from horolog.pipeline.base.varints import Array

COLUMNS = ("key", "value", "topic", "partition", "timestamp", "headers")
_NULL = 1 << 32  # no checksum of 32 bits
_FACTORS = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F))


class Tally:
    """Of all columns that make a record, but not of times that are taken from the clock."""

    def __init__(self) -> None:
        self.rows = 0
        self.digest = 0

    def of(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The same batches, counted as they pass."""
        for batch in batches:
            self.add(batch)
            yield batch

    def add(self, batch: pa.RecordBatch) -> None:
        hashes: Array = np.ones(batch.num_rows, np.uint64)
        for name in COLUMNS:
            if name in batch.schema.names:
                hashes = hashes * _FACTORS[0] + _checks(batch.column(name))
                hashes = (hashes ^ (hashes >> np.uint64(29))) * _FACTORS[1]
        hashes = hashes ^ (hashes >> np.uint64(32))
        self.rows += batch.num_rows
        self.digest = (self.digest + int(hashes.sum(dtype=np.uint64))) & 0x7FFF_FFFF_FFFF_FFFF


def _checks(column: pa.Array) -> Array:
    """A number for each value."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        column = column.view(pa.int64())
    elif not pa.types.is_integer(kind):
        if not _is_text(kind):
            return np.fromiter((crc32(repr(each).encode()) for each in column.to_pylist()), np.uint64, len(column))
        found = (_NULL if each is None else crc32(each) for each in column.cast(pa.binary()).to_pylist())
        return np.fromiter(found, np.uint64, len(column))
    values = np.array(column.cast(pa.int64()).fill_null(0), np.int64).view(np.uint64)
    return values + np.array(column.is_null()).astype(np.uint64) * np.uint64(_NULL)


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_large_string(kind)
