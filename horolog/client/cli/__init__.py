"""The command line `horolog`."""

__all__ = [
    "main",
]
