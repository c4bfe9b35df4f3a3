"""The record of the cluster and its forms on the disk: topics, rules, and why the cluster refuses a change."""

__all__ = [
    "checked_lines",
    "cluster_errors",
    "cluster_file",
    "internal_topics",
    "stored_rules",
]
