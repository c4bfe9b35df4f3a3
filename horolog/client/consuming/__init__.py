"""The consumer: fetching, positions, lookups by time, and membership of a group."""

__all__ = [
    "consumer",
]
