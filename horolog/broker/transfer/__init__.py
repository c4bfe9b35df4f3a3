"""Data folders into the prefix of a bucket, and out of it: for commands, without a broker."""

__all__ = [
    "founding_entries",
    "importing",
    "log_pieces",
    "partition_import",
    "piece_objects",
    "waiting_store",
]
