"""The path by which programs import the names of `client.moments.moment`."""

from horolog.client.moments.moment import (
    FETCHED_BYTES,
    LARGEST_FETCH_BYTES,
    SMALLEST_FETCH_BYTES,
    STEP_RECORDS,
    MergedRecords,
    Offsets,
    Open,
    Report,
    merge,
)

__all__ = [
    "FETCHED_BYTES",
    "LARGEST_FETCH_BYTES",
    "SMALLEST_FETCH_BYTES",
    "STEP_RECORDS",
    "MergedRecords",
    "Offsets",
    "Open",
    "Report",
    "merge",
]
