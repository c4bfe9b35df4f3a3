"""Records of several partitions in the order of their times, whether they lie in the past or still come."""

__all__ = [
    "lagging",
    "live_order",
    "look_ahead",
    "moment",
    "moment_source",
    "sorting",
]
