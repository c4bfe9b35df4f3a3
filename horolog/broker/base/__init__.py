"""What every room of the broker may use: metrics, names, periodic jobs, sockets."""

__all__ = [
    "answers",
    "backup_figures",
    "expiry_clock",
    "java_hash",
    "late_answers",
    "malloc",
    "metrics",
    "one_port",
    "own_thread",
    "periodic",
    "principal",
    "store_figures",
    "topic_names",
    "unix_sockets",
]
