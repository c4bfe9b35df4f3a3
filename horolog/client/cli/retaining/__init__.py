"""What the broker's own rule will delete of a topic next, from its segments or from lookups."""

__all__ = [
    "retention_look",
    "segment_retention",
]
