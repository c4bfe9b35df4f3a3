"""Record batches as columns of Arrow, without a Python object for each record."""

__all__ = [
    "columns",
    "decode",
]
