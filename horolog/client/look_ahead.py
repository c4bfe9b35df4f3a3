"""The path by which programs import the names of `client.moments.look_ahead`."""

from horolog.client.moments.look_ahead import (
    BEYOND_ALL_MS,
    DEFAULT,
    QUIET_RECORDS,
    SMALLEST_SHARE_BYTES,
    TO_THE_END,
    Ended,
    LookAhead,
    Search,
    most_late_ms,
)

__all__ = [
    "BEYOND_ALL_MS",
    "DEFAULT",
    "QUIET_RECORDS",
    "SMALLEST_SHARE_BYTES",
    "TO_THE_END",
    "Ended",
    "LookAhead",
    "Search",
    "most_late_ms",
]
