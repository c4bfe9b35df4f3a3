"""Consumer groups of both protocols and the offsets that they commit."""

__all__ = [
    "assignors",
    "classic",
    "classic_events",
    "classic_group",
    "commits",
    "consumer_group",
    "coordinator",
    "group_settings",
    "offset_fetch",
    "offsets",
    "records",
    "registry",
    "share",
    "streams",
    "topic_patterns",
]
