"""The producer: batches of records, their sending, sequences and transactions."""

__all__ = [
    "accumulator",
    "partitioner",
    "producer",
    "sequences",
    "transaction",
]
