"""Streams groups (KIP-1071): their topology, its internal topics, their members and the tasks that these run."""

__all__ = [
    "configured_topology",
    "endpoints",
    "sticky_assignor",
    "streams_coordinator",
    "streams_decisions",
    "streams_group",
    "streams_loading",
    "tasks",
]
