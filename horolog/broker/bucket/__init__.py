"""Brokers that share an object store: the formats of its objects, the journal, write-ahead logs and fences, without an event loop."""

__all__ = [
    "fence",
    "journal_objects",
    "lease",
    "mark",
    "names",
    "sealed_lines",
    "seams",
    "shipped_partition",
    "shipped_safety",
    "store_access",
    "store_journal",
    "unshipped_runs",
    "wal_fencing",
    "wal_merging",
    "wal_numbers",
    "wal_object",
    "wal_writer",
]
