"""The prefix of a bucket as a whole, for programs that are no broker: it is verified, and read like a data folder."""

__all__ = [
    "findings",
    "history_objects",
    "journal_check",
    "manifest_check",
    "meta_objects",
    "month_forecast",
    "partition_check",
    "prefix_files",
    "prefix_reader",
    "segment_check",
    "stored_partitions",
    "verifying",
    "wal_check",
]
