"""The consumer: fetching, positions, look-ups by time, and membership of a group."""

__all__ = [
    "consumer",
]
