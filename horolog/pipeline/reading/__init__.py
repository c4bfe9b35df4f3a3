"""Reads topics by time, from brokers or from segment files, in batches and in streams."""

__all__ = [
    "broker_log",
    "dead_letters",
    "folders",
    "object_files",
    "offline",
    "online",
    "pins",
    "prefixes",
    "preparing",
    "pushdown",
    "stream",
]
