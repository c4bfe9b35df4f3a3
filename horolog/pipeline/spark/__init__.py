"""Spark itself: sessions, the Java that runs them, versions, processes of workers, messages and notes."""

__all__ = [
    "notes",
    "short_errors",
    "spark_session",
    "spark_versions",
    "worker_daemon",
    "workers",
]
