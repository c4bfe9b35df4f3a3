"""When appended records are safe: they are written and synced together, and requests wait for them here."""

__all__ = [
    "committer",
    "safety",
    "waiting",
]
