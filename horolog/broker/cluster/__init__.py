"""The cluster: which topics there are with which settings, who leads what, and how brokers agree on each change."""

__all__ = [
    "changes",
    "cluster",
    "cluster_start",
    "cluster_state",
    "entry_lines",
    "file_journal",
    "hand_over",
    "left_folders",
    "legible_record",
    "link",
    "membership",
    "new_topics",
    "peers",
    "placement",
    "settling",
    "topic",
    "worker_checkpoints",
    "worker_context",
    "worker_folder_checkpoints",
    "worker_membership",
]
