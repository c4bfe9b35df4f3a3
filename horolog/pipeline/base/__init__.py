"""What every room of the pipeline may use: positions in topics, ids of topics, headers, varints."""

__all__ = [
    "headers",
    "positions",
    "topic_ids",
    "varints",
]
