"""Share groups' partitions: which record is whose, what became of it, and where that is kept."""

__all__ = [
    "records",
    "state_batches",
]
