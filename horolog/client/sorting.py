"""The path by which programs import the names of `client.moments.sorting`."""

from horolog.client.moments.sorting import OVERHEAD_BYTES, Hold, Placed, Sorter

__all__ = [
    "OVERHEAD_BYTES",
    "Hold",
    "Placed",
    "Sorter",
]
