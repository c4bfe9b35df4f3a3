"""The broker as a whole: it puts the parts together, starts and stops them in order, and keeps them up."""

__all__ = [
    "app",
    "backup_child",
    "hot_path",
    "over_store",
    "process",
    "start_notes",
    "store_report",
    "store_run",
]
