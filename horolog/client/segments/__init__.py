"""What a broker's segments hold at which times, and which of them retention deletes next."""

__all__ = [
    "day_sizes",
    "retention",
    "segments",
    "segments_look",
]
