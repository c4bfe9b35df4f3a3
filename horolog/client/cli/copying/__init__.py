"""`horolog topics copy`: records of one topic go into another, with their times, keys and headers."""

__all__ = ["topic_copy"]
