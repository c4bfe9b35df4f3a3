"""Copies of data folders in an object store, as they were at moments: taken while a broker runs, verified, and restored."""

__all__ = [
    "keeping",
    "looking",
    "moment",
    "objects",
    "pacing",
    "process",
    "restoring",
    "rounds",
    "shipping",
    "silence",
    "verifying",
]
