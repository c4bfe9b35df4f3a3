"""Conversations with brokers: connections, versions, the view of the cluster, retries, and the requests that all parts make."""

__all__ = [
    "addresses",
    "client",
    "cluster_view",
    "connection",
    "decode",
    "fetch",
    "group_state",
    "group_wire",
    "http_get",
    "offsets",
    "retry",
    "troubles",
    "versions",
]
