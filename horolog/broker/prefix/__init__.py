"""The prefix of a bucket as a whole, for commands: it is verified without a broker."""

__all__ = [
    "findings",
    "journal_check",
    "manifest_check",
    "partition_check",
    "prefix_reader",
    "segment_check",
    "verifying",
    "wal_check",
]
