"""Draws counts of records over time, as text and as pictures."""

__all__ = [
    "drawing",
    "png",
]
