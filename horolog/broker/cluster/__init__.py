"""The cluster: which topics there are with which settings, who leads what, and how brokers agree on each change."""

__all__ = [
    "changes",
    "cluster",
    "cluster_start",
    "cluster_state",
    "company",
    "entry_lines",
    "file_journal",
    "hand_over",
    "left_folders",
    "legible_record",
    "link",
    "new_topics",
    "peers",
    "placement",
    "settling",
    "topic",
    "worker_checkpoints",
    "worker_company",
    "worker_context",
    "worker_folder_checkpoints",
]
