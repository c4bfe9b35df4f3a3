"""Share groups' partitions: which record is whose, what became of it, and where that is kept."""

__all__ = [
    "acknowledging",
    "journal",
    "leader",
    "partition",
    "persister",
    "records",
    "sessions",
    "shares",
    "state",
    "state_batches",
    "state_keeper",
    "terms",
]
