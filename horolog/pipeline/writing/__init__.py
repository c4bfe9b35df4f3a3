"""Writes rows into topics, each exactly once."""

__all__ = [
    "exactly_once",
    "outgoing",
    "sending",
    "transacting",
    "write",
]
